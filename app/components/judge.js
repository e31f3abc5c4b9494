// One label after the other: suspects of numbers and of sets of classes, and samples drawn at random of these and of
// masks. Buttons, keys and
// the list of keys are those of the bench. The next one shows at once; the outbox keeps each answer until it is in the
// database. The page runs only when what it sent is answered, or taken back.

const JUDGE_ACTIONS = [
  { id: "class", key: "l", text: "type another number; Enter saves it, Esc leaves the field", when: (item) => item && "number" in item },
  { id: "save", key: "s", text: "save the labels as they are marked", when: (item) => item && item.chips },
  { id: "undo", key: "z", text: "undo your last answer", when: () => true },
  { id: "colours", key: "g", text: "show or hide the classes in their colours", when: (item) => item && item.legend },
  { id: "large", key: "v", text: "the picture large; Esc closes", when: (item) => item && !item.layers },
];
const JUDGE_FIXED = [["?", "this list"]];
const JUDGE_MOVES = [["← →", "the one before, the next one; neither is an answer"]]; // as on the bench
const MOST_ANSWERED = 24; // pictures of checked numbers at the end
const CHIP_KEYS = "1234567890adfghijkopbtuxym"; // of classes by their place, where they have no digit of their own
const nameOf = ({ draw, sample }) => `${draw ?? ""}/${sample}`;

class Judge {
  constructor(root) {
    this.done = new Set(); // names of what was answered here
    this.answers = new Map(); // by sample the number that was answered, null where there is none
    this.refusedAt = -STARTLED_MS;
    this.notice = new Notice();
    this.stage = el("div", { class: "stage" });
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Answer" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.live = el("div", { class: "sr-only", "aria-live": "polite" });
    this.viewer = new Viewer(() => this.server);
    this.box = el("div", { class: "bench", "data-testid": "judge" }, [
      this.stage, el("div", { class: "dock" }, [this.notice.node, this.actions]), this.layer, this.live, this.viewer.node,
    ]);
    root.append(this.box);
    watchWidth(this.box, () => this.data && this.drawActions());
  }

  update(data) {
    this.data = data;
    if (this.server) this.server.connection = data.connection;
    else {
      this.server = new Server(data.connection);
      this.outbox = new Outbox(this.server, data.route, (count, error) => this.notice.tell(count ? `${whyWaiting(error)} Answers are kept in this browser and sent when the server answers again.` : "", "bad"));
      this.outbox.restore(({ dataset }) => dataset === data.connection.dataset, ({ sample }, error) => this.refused(sample, error));
    }
    this.outbox.flush();
    this.last ||= data.last;
    this.items = data.items.filter((item) => !this.done.has(nameOf(item)));
    const back = this.items.find((item) => nameOf(item) === this.back);
    if (back) this.items = [back, ...this.items.filter((item) => item !== back)];
    this.draw();
  }

  get item() {
    return this.items[0];
  }

  button(id, text, action, tone = "") {
    return actionButton(this.keymap.shown(id), text, action, tone, { title: text, "data-action": id });
  }

  drawActions() {
    const focused = this.actions.contains(this.active) ? this.active.dataset.action : null;
    const answers = this.item ? this.data.actions : [];
    const [given, suggested] = (this.item?.sides || []).map(({ value }) => value);
    const named = suggested === undefined ? {} : { keep: `Keep ${given}`, relabel: `Change to ${suggested}` };
    const isLarge = ({ tone }) => ["keep", "relabel"].includes(tone);
    const answer = (one) => this.button(one.id, named[one.id] || one.button, () => this.answer(one.id), isLarge(one) ? `${one.tone} large` : one.tone);
    // On a phone the field may lie below the buttons.
    const types = isNarrow(this.box) && this.item?.sides && "number" in this.item ? [this.button("class", "Another number", () => this.field.focus())] : [];
    this.actions.replaceChildren(...toolbar(this.box, answers.filter(isLarge).map(answer), [...types, ...answers.filter((one) => !isLarge(one)).map(answer)], [
      this.place ? el("span", { class: "turn", text: this.place, "data-testid": "place" }) : null,
      ...(this.canMove ? [actionButton("←", "Back", () => this.go(-1), "", { "data-action": "back" }), actionButton("→", "Next", () => this.go(1), "", { "data-action": "next" })] : []),
    ].filter(Boolean), undoButton(this.box, this.keymap, () => this.undo(), { title: "Undo your last answer", disabled: !this.last }), () => this.help()));
    if (focused) this.actions.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  get active() {
    return this.box.getRootNode().activeElement;
  }

  // Suspects may be put off; a random sample is answered in its order.
  get canMove() {
    return Boolean(this.item?.sides) && this.items.length > 1;
  }

  // What is put off comes again behind the others.
  go(step) {
    const { items } = this;
    this.items = step > 0 ? [...items.slice(1), items[0]] : [items[items.length - 1], ...items.slice(0, -1)];
    this.draw();
  }

  // The sample of a dot in the chart: of those that are here, or the page sends it.
  pick(sample) {
    const found = this.items.find((item) => item.sample === sample);
    if (!found) {
      this.done.delete(nameOf({ sample })); // one that was answered comes back
      return void this.component.setTriggerValue("point", sample);
    }
    this.items = [found, ...this.items.filter((item) => item !== found)];
    this.draw();
  }

  draw() {
    const { item } = this;
    const { chart } = this.data;
    this.keymap = new Keymap([...this.data.actions, ...JUDGE_ACTIONS.filter(({ when }) => when(item))]);
    this.drawActions();
    const wasTyping = this.active === this.field && this.field !== undefined;
    this.field = undefined;
    this.box.setAttribute("data-sample", item ? item.sample : "");
    if (!item) {
      this.stage.replaceChildren(
        el("div", { class: "finished" }, [el("strong", { text: this.data.finished }), ...this.steps()]),
        ...(chart ? [this.answered(chart)] : []),
      );
      return;
    }
    const answer = [
      item.question && item.alike ? el("div", { class: "mask-head", text: item.question }) : null,
      item.sides ? el("div", { class: "sides" }, item.sides.map((one) => this.side(one))) : null,
      item.chips ? this.chips(item) : null,
      "number" in item ? this.form(item.number) : null,
    ];
    const said = [
      el("small", { text: this.progress }), ...(this.open > 0 ? [] : this.steps().slice(0, 1)),
      item.path ? el("p", { class: "path", text: item.path, title: item.path }) : null,
      item.question && !item.alike ? el("div", { class: "mask-head", text: item.question }) : null,
      item.legend ? this.legend(item.legend) : null,
    ];
    const pane = el("div", { class: "pane" }, this.picture(item));
    const where = `Sample ${item.sample}${item.path ? ` · ${item.path}` : ""}`;
    // Of a suspect each number stands above what has about that number, and the photo alone beside them.
    const [left, right] = chart && item.sides
      ? [[pane, this.form(item.number)], [
        el("small", { text: item.standing || this.progress, title: where }), ...(this.open > 0 || item.standing ? [] : this.steps().slice(0, 1)),
        el("div", { class: "mask-head", text: item.question }),
        el("div", { class: "sides" }, item.sides.map((one, at) => this.side(one, item.alike[at]))),
        this.beside(chart, item.sample),
      ]]
      : item.alike
      ? [[pane, el("div", { class: "answered" }, answer.filter(Boolean))], [...said, el("div", { class: "both" }, item.alike.map((one) => this.alike(one)))]]
      : [[pane], [...said, ...answer]];
    this.stage.replaceChildren(el("div", { class: `judge ${chart ? "charted" : item.alike ? "compared" : ""}` }, [
      el("div", {}, left), el("div", { class: "question" }, right.filter(Boolean)),
    ]));
    // Who types one number after the other stays in the field; beside a suggestion keys come next.
    if (wasTyping && !item.sides) this.field?.focus();
    this.live.textContent = `Sample ${item.sample}. ${item.question || ""}`;
    for (const next of this.items.slice(1, 4)) new Image().src = this.server.image(next.sample, paneSide());
  }

  // How many are left, these and those that follow; those that are no suspects are not counted.
  get open() {
    const counted = (items) => items.filter(({ other }) => !other).length;
    return this.data.left - counted(this.data.items) + counted(this.items);
  }

  // "1 of 8": which of the suspects is in view.
  get place() {
    const { item, data: { items, total } } = this;
    if (!total || !item || item.other) return "";
    const here = items.filter((one) => !one.other && !this.done.has(nameOf(one)));
    return `${total - this.open + 1 + here.indexOf(item)} of ${total.toLocaleString("en")}`;
  }

  // What follows when they are all answered, the one to do first before the others.
  steps() {
    const go = (id) => () => this.component.setTriggerValue("next", id);
    return this.data.next.map(({ id, text }, i) => el("button", { class: `action ${i ? "" : "primary"}`, text, onclick: go(id) }));
  }

  get progress() {
    const { open, data: { noun } } = this;
    return open > 0 ? `${open.toLocaleString("en")} ${noun}${open === 1 ? "" : "s"} to check · sample ${this.item.sample}` : `Every ${noun} is checked; what follows is less suspicious.`;
  }

  legend(classes) {
    const rows = classes.map(({ name, colour }) => el("li", {}, [el("i", { style: `background:${colour}` }), el("span", { text: name })]));
    const text = this.isPlain ? "Show the classes" : "Hide the classes";
    return el("div", { class: "legend-of" }, [
      el("ul", { class: "legend long", "aria-label": "Classes of this mask" }, rows), this.button("colours", text, () => this.showColours()),
    ]);
  }

  showColours() {
    this.isPlain = !this.isPlain;
    this.draw();
  }

  picture({ sample, layers, colours, shape }) {
    const attributes = { src: this.server.image(sample, paneSide()), alt: `Sample ${sample}`, "data-testid": "picture" };
    if (layers) {
      const under = el("img", { class: "under-layers", ...attributes });
      return [el("div", { class: "layers", style: `--shape:${shape[0]} / ${shape[1]}` }, [under, ...[...(colours && !this.isPlain ? [colours] : []), ...layers].map((path) => this.over(path))])];
    }
    const image = el("img", { class: "picture", decoding: "sync", ...attributes });
    return [zoomable(image, "Show the picture large (V)", () => this.enlarge()), el("kbd", { text: this.keymap.shown("large") })];
  }

  over(path) {
    const { base, token, version } = this.data.connection;
    return el("img", { class: "over", alt: "", src: `${base}/bench/${path}?v=${version}&t=${token}` });
  }

  // Where the sample lies among all numbers; without one, all of them.
  beside(chart, sample) {
    const said = new Map([...chart.answers, ...this.answers]);
    const there = new Set(chart.points.map((one) => dotKind(one, said)));
    const kinds = ["suspect", "checked", "other"].filter((kind) => there.has(kind));
    const legend = el("p", { class: "scatter-keys" }, kinds.flatMap((kind) => [el("i", { class: kind }), el("span", { text: kind })]));
    return el("div", { class: "of-chart" }, [
      scatter(chart, said, sample, (one) => this.pick(one)),
      el("div", { title: chart.sentence }, [el("p", { text: "The farther from the line, the likelier wrong." }), legend]),
    ]);
  }

  // At the end: what was checked, with the number that it has now, the changed ones first, and all in the chart.
  answered(chart) {
    const said = new Map([...chart.answers, ...this.answers]);
    const checked = chart.points.filter(([sample]) => said.has(sample)).map(([sample, given]) => [sample, given, said.get(sample) ?? given]);
    const isChanged = ([, given, now]) => now !== given;
    const figures = [...checked.filter(isChanged), ...checked.filter((one) => !isChanged(one))].slice(0, MOST_ANSWERED).map(([sample, given, now]) =>
      el("figure", {}, [
        zoomable(el("img", { src: this.server.image(sample, 256), alt: "", loading: "lazy" }), `Sample ${sample}`, () => this.pick(sample)),
        el("figcaption", {}, now === given ? [el("span", { text: `${given} kept` })] : [el("span", { class: "given", text: String(given) }), el("span", { text: " → " }), el("b", { class: "suggested", text: String(now) })]),
      ]));
    return el("div", { class: "checked-numbers" }, [el("div", { class: "figures" }, figures), this.beside(chart, null)]);
  }

  // ``alike``: samples that have about that number.
  side({ kind, title, note, value }, alike = null) {
    return el("div", { class: `side ${kind}` }, [
      el("span", { class: "kind", text: title }), el("b", { text: value, title: value }), note ? el("span", { class: "hint", text: note }) : null,
      alike ? this.alike(alike) : null,
    ].filter(Boolean));
  }

  alike({ kind, title, samples }) {
    const figures = samples.map(([sample, text]) => el("figure", {}, [
      el("img", { src: this.server.image(sample, 96), alt: `Sample ${sample}: ${text}`, loading: "lazy" }), el("figcaption", { text }),
    ]));
    return el("div", { class: `exemplars named ${kind}` }, [el("h4", { text: title }), el("div", { class: "thumbs" }, figures)]);
  }

  form(number) {
    this.field = el("input", { type: "number", step: "any", placeholder: "type a number", class: "number" });
    this.field.addEventListener("keydown", (event) => event.key === "Escape" && this.field.blur());
    const save = (event) => {
      event.preventDefault();
      if (this.field.value === "") this.field.focus();
      else this.send({ name: this.data.typed, number: Number(this.field.value) });
    };
    const label = el("label", {}, [el("kbd", { text: this.keymap.shown("class") }), el("span", { text: (number === null ? "The number that you see" : "Another number") + (this.data.unit ? `, in ${this.data.unit}` : "") }), this.field]);
    return el("form", { class: "typed", onsubmit: save }, [label, el("button", { class: `action ${number === null ? "primary" : ""}`, type: "submit" }, [el("span", { text: "Save this number" })])]);
  }

  // A button a class: pressed where it is in the set that would be saved.
  chips(item) {
    if (this.chipsOf !== nameOf(item)) {
      this.chipsOf = nameOf(item);
      this.chosen = new Set(item.given);
    }
    const names = item.chips.map(({ name }) => name);
    const buttons = item.chips.map(({ name, doubt }, label) => {
      const key = this.chipKey(names, label);
      const isOn = this.chosen.has(label);
      return el("button", { class: `chip ${isOn ? "on" : ""} ${doubt || ""}`, "aria-pressed": String(isOn), "data-label": label, "data-key": key, onclick: () => this.toggle(label) }, [
        key ? el("kbd", { text: key.toUpperCase() }) : null, el("span", { text: name }), doubt ? el("small", { text: `${doubt}?` }) : null,
      ].filter(Boolean));
    });
    const save = actionButton(this.keymap.shown("save"), "Save as marked", () => this.save(), "", { "data-action": "save" });
    return el("div", { class: "chips", role: "group", "aria-label": "Labels" }, [...buttons, save]);
  }

  chipKey(names, label) {
    if (this.keymap.isOff) return "";
    const free = [...CHIP_KEYS].filter((key) => this.keymap.idOf(key) === undefined);
    return this.keymap.digit(names, label) || free[label] || "";
  }

  toggle(label) {
    if (!this.chosen.delete(label)) this.chosen.add(label);
    const focused = this.active?.dataset?.label;
    this.draw();
    if (focused !== undefined) this.stage.querySelector(`[data-label="${focused}"]`)?.focus();
  }

  save() {
    this.send({ name: this.data.typed, labels: [...this.chosen].sort((one, other) => one - other) });
  }

  answer(id) {
    const { name } = this.data.actions.find((one) => one.id === id);
    if (!this.item.chips) return void this.send({ name, number: name === this.data.takes ? this.item.suggested : null });
    const labels = name === this.data.takes ? this.item.suggested : name === this.data.typed ? this.item.given : null;
    this.send({ name, labels });
  }

  // An answer is meant for the sample in view; where it is refused that sample comes back.
  async send({ name, number, labels }) {
    const { item, data } = this;
    if (!item || performance.now() - this.refusedAt < STARTLED_MS) return;
    const decision = name === data.typed && data.takes ? data.takes : name;
    this.done.add(nameOf(item));
    this.answers.set(item.sample, number ?? (decision === "keep" ? item.number : null));
    this.items = this.items.slice(1);
    this.notice.hush();
    this.last = item;
    this.draw();
    try {
      const { dataset } = data.connection;
      const { sample, draw } = item;
      const answer = await this.outbox.send({ dataset, sample, decision, number, labels, reviewer: data.reviewer, ...(data.takes ? { audit: data.audit } : { draw }) });
      if (answer.asks) this.notice.tell(`Sample ${sample}: ${answer.asks}`, "warn");
    } catch (error) {
      this.done.delete(nameOf(item));
      this.answers.delete(item.sample);
      this.items = [item, ...this.items];
      this.refused(item.sample, error);
      this.draw();
    }
    if (!this.items.length) this.more();
  }

  refused(sample, error) {
    this.refusedAt = performance.now();
    this.notice.tell(`Sample ${sample} is not answered: ${error.message}`, "bad");
  }

  // The page runs: it sends what follows, or says what is known now.
  async more() {
    await this.outbox.drained();
    this.component.setTriggerValue("more", performance.now());
  }

  undo() {
    undoOnce(this);
  }

  async takeBack() {
    await this.outbox.drained();
    if (!this.last) return;
    const { audit, reviewer, takes } = this.data;
    const { draw, sample } = this.last;
    try {
      const undone = takes ? await this.server.post("mask-undo", { audit, reviewer }) : await this.server.post("blind-undo", { draw, sample, reviewer });
      if (undone.refused) return void this.notice.tell(undone.refused, "warn");
      this.back = nameOf(takes ? undone : this.last);
      this.done.delete(this.back);
      const { sample: again } = takes ? undone : this.last;
      this.answers.delete(again);
      this.last = undone.last;
      this.update(this.data); // where the page sends what it had sent before, nothing comes
      this.notice.tell(`Undone: sample ${again} is open again.`);
      await this.more();
    } catch (error) {
      this.notice.tell(error.message, "bad");
    }
  }

  enlarge() {
    const { sample, path } = this.item;
    this.viewer.show([{ sample, text: path || `Sample ${sample}` }]);
  }

  help() {
    showKeys(this.layer, "this page", this.keymap, [], [...(this.canMove ? JUDGE_MOVES : []), ...JUDGE_FIXED], () => this.draw());
  }

  onKey(event) {
    if (!this.data || this.box.offsetParent === null) return;
    if (this.viewer.isOpen) return void this.viewer.onKey(event);
    if (keyOfLayer(this.layer, event) || event.repeat || waitsFor(this.undoing, this, event)) return;
    const key = event.key.toLowerCase();
    const id = this.keymap.idOf(key, event.shiftKey);
    const chip = this.item?.chips?.findIndex((_, label, all) => this.chipKey(all.map(({ name }) => name), label) === key) ?? -1;
    const others = { class: () => this.field.focus(), save: () => this.save(), undo: () => this.undo(), large: () => this.enlarge(), colours: () => this.showColours() };
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (key === "?") this.help();
    else if (step && this.canMove) this.go(step);
    else if (chip >= 0) this.toggle(chip);
    else if (id && (id in others || this.item)) (others[id] || (() => this.answer(id)))();
    else return;
    event.preventDefault();
  }
}

export default mount(Judge);
