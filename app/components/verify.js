// Blind verification: one random sample at a time, its given label shown, no suggestion. The next sample shows at
// once; the outbox keeps each verdict until it is in the database, and one that the server refuses brings its sample
// back. After every ten saved verdicts the page is told, so that it can say what is known.

const VERIFY_ACTIONS = [
  { id: "class", key: "l", text: "any other class: type a part of its name, Enter takes the first" },
  { id: "undo", key: "z", text: "undo your last verdict" },
  { id: "large", key: "v", text: "the picture large; Esc closes" },
];
const VERIFY_FIXED = [["?", "this list"]];
const AHEAD = 8; // as many as the page leases (readers.LEASED_AHEAD)
const BEAT_MS = 30000;
const RECENT = 4; // of one's last verdicts, to see what was said

// The given label is right: on the review bench that is "keep", so both have one key.
const keyId = (verdicts, name) => (verdicts[name].takes === "class" ? "keep" : name);

const verifyKeys = (verdicts) =>
  new Keymap([...Object.entries(verdicts).map(([name, { keys, help }]) => ({ id: keyId(verdicts, name), key: keys[0], text: help })), ...VERIFY_ACTIONS]);

class Verify {
  constructor(root) {
    this.items = [];
    this.done = new Set();
    this.recent = []; // [item, verdict in words] of this window, the newest first
    this.last = null; // the reviewer's newest verdict, which undo takes back
    this.notice = new Notice();
    this.toldTens = 0;
    this.refusals = 0;
    this.refusedAt = -STARTLED_MS;
    this.leased = new Set();
    this.beat = setInterval(() => {
      if (!root.isConnected) clearInterval(this.beat);
      else if (document.visibilityState === "visible" && this.box.offsetParent !== null && this.data) this.lease(true);
    }, BEAT_MS);
    this.stage = el("div", { class: "stage" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.live = el("div", { class: "sr-only", "aria-live": "polite" });
    this.viewer = new Viewer(() => this.server);
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Verdict" }); // of a phone
    this.box = el("div", { class: "bench verify", "data-testid": "verify" }, [
      this.stage, el("div", { class: "dock" }, [this.notice.node, this.actions]), this.layer, this.live, this.viewer.node,
    ]);
    root.append(this.box);
    watchWidth(this.box, () => this.data && this.draw());
  }

  update(data) {
    const whose = JSON.stringify([data.reviewer, data.connection.dataset]);
    if (whose !== this.whose) this.recent = [];
    const inView = whose === this.whose ? this.item : undefined;
    if (!this.last || whose !== this.whose) this.last = data.last;
    this.whose = whose;
    const isNew = !this.data || JSON.stringify(data.items) !== JSON.stringify(this.data.items);
    this.data = data;
    this.keymap ||= verifyKeys(data.verdicts);
    if (this.server) this.server.connection = data.connection;
    else {
      this.server = new Server(data.connection);
      this.outbox = new Outbox(this.server, "blind", (count, error) => this.showWaiting(count, error));
      this.outbox.restore(
        (verdict) => verdict.dataset === data.connection.dataset,
        (verdict, error) => this.tell(`Sample ${verdict.sample} is not checked: ${error.message}`, "bad"),
      );
    }
    this.outbox.flush();
    if (isNew) {
      // The page sends what was left to judge when it looked; this tab may be some samples further. What is in view
      // stays there, even where somebody else judged it meanwhile: a key is meant for what one sees.
      this.items = data.items.filter((item) => !this.done.has(this.nameOf(item)));
      if (inView) this.items = [inView, ...this.items.filter((item) => this.nameOf(item) !== this.nameOf(inView))];
      this.draw();
    }
  }

  get item() {
    return this.items[0];
  }

  get judged() {
    return this.data.total - this.items.length;
  }

  nameOf(item) {
    return `${item.draw}/${item.sample}`;
  }

  // What comes next is ours before it shows; what others look at waits behind the rest.
  async lease(isDue = false) {
    const samples = this.items.slice(0, AHEAD).map((item) => item.sample);
    if (this.leasing || !samples.length || (!isDue && samples.slice(0, AHEAD / 2).every((one) => this.leased.has(one)))) return;
    this.leasing = true;
    try {
      const { dataset } = this.data.connection;
      const { held } = await this.server.post("lease", { dataset, reviewer: this.data.reviewer, samples });
      for (const sample of samples) if (!(sample in held)) this.leased.add(sample);
      const [inView, ...rest] = this.items;
      const isTheirs = (item) => item.sample in held;
      if (inView) this.items = [inView, ...rest.filter((item) => !isTheirs(item)), ...rest.filter(isTheirs)];
    } catch (error) {
      // The next look asks again.
    }
    this.leasing = false;
  }

  enlarge() {
    const { sample, given } = this.item || {};
    if (this.item) this.viewer.show([{ sample, text: `Sample ${sample} · given ${this.data.classNames[given]}` }]);
  }

  draw() {
    const item = this.item;
    this.box.setAttribute("data-judged", this.judged);
    this.actions.replaceChildren();
    if (!item) {
      // The page below says what is known now; here is what can still be taken back.
      this.stage.replaceChildren(el("div", { class: "finished", "data-testid": "verified" }, [
        el("strong", { text: `Done: ${this.judged} of ${this.data.total} checked` }),
        this.last ? actionButton(this.keymap.shown("undo"), "Undo your last verdict", () => this.undo()) : null,
      ].filter(Boolean)));
      return;
    }
    const name = this.data.classNames[item.given];
    const picture = el("img", { class: "picture", decoding: "sync", src: this.server.image(item.sample, paneSide()), alt: `Sample ${item.sample}`, "data-testid": "picture" });
    const button = (id, text, action, tone = "") => actionButton(this.keymap.shown(id), text, action, tone, { title: text });
    const digit = (label) => this.keymap.digit(this.data.classNames, label);
    const labels = labelsOf(this.data.classNames);
    const others = labels.filter((label) => label !== item.given)
      .map((label) => [label, this.data.classNames[label]])
      .map(([label, other]) => actionButton(digit(label), other, () => this.judgeClass(label), "", { title: other }));
    const verdicts = (takesClass) =>
      Object.entries(this.data.verdicts)
        .filter(([, { takes }]) => (takes === "class") === takesClass)
        .map(([name, { button: text }]) => button(keyId(this.data.verdicts, name), text, () => this.give(name), takesClass ? "keep large" : ""));
    const narrow = isNarrow(this.box);
    const other = button("class", "Other class", () => this.pickClass(), narrow ? "large" : "");
    if (narrow) this.actions.append(...toolbar(this.box, [...verdicts(true), other], verdicts(false), [], undoButton(this.box, this.keymap, () => this.undo()), null));
    const many = labels.length > 24;
    const [done, total] = [this.judged, this.data.total];
    const progress = el("div", { class: "progress", title: `${done} of ${total} checked` }, [el("i", { style: `width:${(100 * done) / total}%` })]);
    this.stage.replaceChildren(
      el("div", { class: "judge", "data-testid": "judge", "data-sample": item.sample }, [
        el("div", { class: "pane" }, [zoomable(picture, "Show the picture large (V)", () => this.enlarge()), el("kbd", { text: this.keymap.shown("large") })]),
        el("div", { class: "question" }, [
          progress,
          el("small", { text: `${done + 1} of ${total} · sample ${item.sample}`, title: item.filepath }),
          el("div", { class: "given", text: "The given label is" }),
          el("div", { class: "big", text: name, title: name, "data-testid": "given" }),
          narrow ? null : el("div", { class: "row" }, verdicts(true)),
          el("h4", { text: "Or it should be" }),
          el("div", { class: "row classes" }, many ? [] : others),
          narrow ? null : el("div", { class: "row" }, [
            other, ...verdicts(false),
            button("undo", "Undo", () => this.undo()), actionButton("?", "Keys", () => this.help(), "", { "aria-label": "Keys" }),
          ]),
          ...this.examples(item.given, name),
          this.recent.length ? el("h4", { class: "of-recent", text: "Your last verdicts" }) : null,
          el("div", { class: "recent" }, this.recent.map(([one, text]) => el("figure", {}, [
            el("img", { src: this.server.image(one.sample, 96), alt: `Sample ${one.sample}` }), el("figcaption", { text, title: text }),
          ]))),
        ].filter(Boolean)),
      ]),
    );
    this.lease();
    this.live.textContent = `Given label ${name}`;
    for (const next of this.items.slice(1, 4)) new Image().src = this.server.image(next.sample, paneSide());
  }

  // What others look like that were given the same label.
  examples(label, name) {
    const room = this.recent.length ? 4 : 8; // one's last verdicts stand below
    const samples = (this.data.examples[label] || []).slice(0, room);
    if (!samples.length) return [];
    return [
      el("h4", { class: "of-recent", text: `Others given ${name}` }),
      el("div", { class: "recent", "data-testid": "examples" }, samples.map((sample) => el("figure", {}, [
        el("img", { src: this.server.image(sample, 128), alt: `Sample ${sample}, given ${name}`, loading: "lazy" }),
      ]))),
    ];
  }

  tell(text, tone = "info") {
    this.notice.tell(text, tone);
  }

  showWaiting(count, error) {
    if (count) this.tell(`${whyWaiting(error)} Verdicts are kept in this browser and sent when the server answers again.`, "bad");
    else if (this.wasWaiting) this.tell("");
    this.wasWaiting = count > 0;
  }

  // What a verdict's own key and button say: of one that names a class, the given one.
  give(name) {
    if (this.data.verdicts[name].takes === "class") this.judgeClass(this.item?.given);
    else this.judge(name);
  }

  judgeClass(label) {
    const { verdicts } = this.data;
    this.judge(Object.keys(verdicts).find((name) => verdicts[name].takes === "class"), label);
  }

  async judge(decision, label = null) {
    const item = this.item;
    if (!item || performance.now() - this.refusedAt < STARTLED_MS) return;
    this.done.add(this.nameOf(item));
    this.items = this.items.filter((other) => other !== item);
    const text = label === null ? this.data.verdicts[decision].button : this.data.classNames[label];
    this.recent = [[item, text], ...this.recent].slice(0, RECENT);
    this.notice.hush();
    const saved = this.send(item, decision, label);
    this.draw();
    await saved;
    await this.outbox.drained(); // only now it is known what comes back
    const tens = this.item ? Math.floor(this.judged / 10) : Infinity;
    if (tens <= this.toldTens) return;
    this.toldTens = tens;
    this.component.setTriggerValue("milestone", this.judged);
  }

  async send(item, decision, label) {
    const { dataset } = this.data.connection;
    try {
      const verdict = { dataset, draw: item.draw, sample: item.sample, decision, label, reviewer: this.data.reviewer };
      const answer = await this.outbox.send(verdict);
      this.last = item;
      this.leaveToOthers(item, answer);
    } catch (error) {
      this.refusals += 1;
      this.refusedAt = performance.now();
      if (dataset === this.data.connection.dataset) this.comeBack(item);
      this.tell(`Sample ${item.sample} is not checked: ${error.message}`, "bad");
    }
  }

  // What somebody else judged meanwhile is done; only the sample in view stays.
  leaveToOthers(item, answer) {
    for (const name of answer.judged || []) if (!this.item || name !== this.nameOf(this.item)) this.done.add(name);
    this.items = this.items.filter((other) => !this.done.has(this.nameOf(other)));
    if (answer.asks) this.tell(`Sample ${item.sample}: ${answer.asks}`, "warn");
  }

  // The sample waits to be judged again, before those that follow it in the draw.
  comeBack(item) {
    this.done.delete(this.nameOf(item));
    this.recent = this.recent.filter(([one]) => this.nameOf(one) !== this.nameOf(item));
    const others = this.items.filter((other) => this.nameOf(other) !== this.nameOf(item));
    this.items = [item, ...others];
    this.toldTens = Math.min(this.toldTens, Math.floor(this.judged / 10));
    this.draw();
  }

  get undoes() {
    return this.last ? `your verdict on sample ${this.last.sample}` : undefined;
  }

  undo() {
    undoOnce(this);
  }

  async takeBack() {
    const { refusals } = this;
    await this.outbox.drained();
    if (refusals !== this.refusals) return; // the newest verdict was refused, so nothing of it is to be undone
    const item = this.last;
    if (!item) {
      this.tell("You have no verdict to undo here.");
      return;
    }
    let answer;
    try {
      const undone = { draw: item.draw, sample: item.sample, reviewer: this.data.reviewer };
      answer = await this.server.post("blind-undo", undone);
    } catch (error) {
      this.tell(error.message, "bad");
      return;
    }
    this.last = answer.last;
    if (answer.refused) {
      this.tell(answer.refused, "warn");
      return;
    }
    this.comeBack(item);
    this.tell(`Undone: check sample ${item.sample} again.`);
    this.component.setTriggerValue("milestone", this.judged);
  }

  verdictOf(id) {
    return Object.keys(this.data.verdicts).find((name) => keyId(this.data.verdicts, name) === id);
  }

  help() {
    showKeys(this.layer, "Verify", this.keymap, this.data.classNames, VERIFY_FIXED, () => this.draw());
  }

  pickClass() {
    showPicker(this.layer, this.data.classNames, "Which class is it?", (label) => {
      hideLayer(this.layer);
      this.judgeClass(label);
    });
  }

  onKey(event) {
    if (!this.data || this.box.offsetParent === null) return;
    const key = event.key.toLowerCase();
    if (this.viewer.isOpen) {
      this.viewer.onKey(event);
      return;
    }
    if (keyOfLayer(this.layer, event)) return;
    if (event.repeat) return;
    if (waitsFor(this.undoing, this, event)) return;
    const named = this.keymap.isOff ? -1 : classOfDigit(this.data.classNames, key);
    const id = this.keymap.idOf(key, event.shiftKey);
    const others = { class: () => this.item && this.pickClass(), undo: () => this.undo(), large: () => this.enlarge() };
    if (key === "?") this.help();
    else if (id) (others[id] || (() => this.give(this.verdictOf(id))))();
    else if (named >= 0) this.judgeClass(named);
    else return;
    event.preventDefault();
  }
}

export default mount(Verify);
