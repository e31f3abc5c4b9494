// One label after the other where the page draws itself anew after each answer: numbers, and samples drawn at random of
// numbers and masks. Buttons, keys and the list of keys are those of the bench; the page records what is answered.

const JUDGE_ACTIONS = [
  { id: "class", key: "l", text: "type another number; Enter saves it, Esc leaves the field", when: ({ item }) => item && "number" in item },
  { id: "undo", key: "z", text: "undo your last answer", when: ({ canUndo }) => canUndo },
  { id: "large", key: "v", text: "the picture large; Esc closes", when: ({ item }) => item && !item.layers },
];
const JUDGE_FIXED = [["?", "this list"]];

class Judge {
  constructor(root) {
    this.stage = el("div", { class: "stage" });
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Answer" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.live = el("div", { class: "sr-only", "aria-live": "polite" });
    this.viewer = new Viewer(() => this.server);
    this.box = el("div", { class: "bench", "data-testid": "judge" }, [
      this.stage, this.actions, this.layer, this.live, this.viewer.node,
    ]);
    root.append(this.box);
  }

  update(data) {
    this.isSent = false; // the page has run: what was answered stands, or the page says why not
    if (this.server) this.server.connection = data.connection;
    else this.server = new Server(data.connection);
    const isOther = JSON.stringify([data.item, data.finished]) !== JSON.stringify([this.data?.item, this.data?.finished]);
    this.data = data;
    this.keymap = new Keymap([...data.actions, ...JUDGE_ACTIONS.filter(({ when }) => when(data))]);
    if (isOther) this.draw();
    this.drawActions();
  }

  button(id, text, action, tone = "") {
    return actionButton(this.keymap.shown(id), text, action, tone, { title: text, "data-action": id });
  }

  drawActions() {
    const focused = this.actions.contains(this.active) ? this.active.dataset.action : null;
    const answers = this.data.item ? this.data.actions : [];
    this.actions.replaceChildren(...[
      ...answers.map(({ id, button, tone }) => this.button(id, button, () => this.answer(id), tone)),
      el("span", { class: "gap" }),
      this.data.canUndo ? this.button("undo", "Undo", () => this.undo()) : null,
      actionButton("?", "Keys", () => this.help(), "", { "aria-label": "Keys", "data-action": "keys" }),
    ].filter(Boolean));
    if (focused) this.actions.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  get active() {
    return this.box.getRootNode().activeElement;
  }

  draw() {
    const { item, finished } = this.data;
    const wasTyping = this.active === this.field && this.field !== undefined;
    this.field = undefined;
    this.box.setAttribute("data-sample", item ? item.sample : "");
    if (!item) {
      this.stage.replaceChildren(el("div", { class: "finished" }, [el("strong", { text: finished })]));
      return;
    }
    const said = [
      item.progress ? el("small", { text: item.progress }) : null,
      item.path ? el("p", { class: "path", text: item.path, title: item.path }) : null,
      item.question ? el("div", { class: "mask-head", text: item.question }) : null,
      item.sides ? el("div", { class: "sides" }, item.sides.map((one) => this.side(one))) : null,
      "number" in item ? this.form(item.number) : null,
      item.alike ? el("div", { class: "both" }, item.alike.map((one) => this.alike(one))) : null,
    ];
    this.stage.replaceChildren(el("div", { class: "judge" }, [
      el("div", { class: "pane" }, this.picture(item)),
      el("div", { class: "question" }, said.filter(Boolean)),
    ]));
    // Who types one number after the other stays in the field; beside a suggestion keys come next.
    if (wasTyping && !item.sides) this.field?.focus();
    this.live.textContent = `Sample ${item.sample}. ${item.question || ""}`;
  }

  picture({ sample, layers, shape }) {
    const attributes = { src: this.server.image(sample, paneSide()), alt: `Sample ${sample}`, "data-testid": "picture" };
    if (layers) {
      const under = el("img", { class: "under-layers", ...attributes });
      return [el("div", { class: "layers", style: `--shape:${shape[0]} / ${shape[1]}` }, [under, ...layers.map((path) => this.over(path))])];
    }
    const image = el("img", { class: "picture", ...attributes });
    return [zoomable(image, "Show the picture large (V)", () => this.enlarge()), el("kbd", { text: this.keymap.shown("large") })];
  }

  over(path) {
    const { base, token, version } = this.data.connection;
    return el("img", { class: "over", alt: "", src: `${base}/bench/${path}?v=${version}&t=${token}` });
  }

  side({ kind, title, note, value }) {
    return el("div", { class: `side ${kind}` }, [
      el("span", { class: "kind", text: title }), note ? el("span", { class: "odds", text: note }) : null, el("b", { text: value, title: value }),
    ].filter(Boolean));
  }

  alike({ kind, title, samples }) {
    const figures = samples.map(([sample, text]) => el("figure", {}, [
      el("img", { src: this.server.image(sample, 96), alt: `Sample ${sample}: ${text}`, loading: "lazy" }), el("figcaption", { text }),
    ]));
    return el("div", { class: `exemplars named ${kind}` }, [el("h4", { text: title }), el("div", { class: "thumbs" }, figures)]);
  }

  form(number) {
    this.field = el("input", { type: "number", step: "any", value: number, class: "number" });
    this.field.addEventListener("keydown", (event) => event.key === "Escape" && this.field.blur());
    const save = (event) => {
      event.preventDefault();
      if (this.field.value === "") this.field.focus();
      else this.send({ name: this.data.typed, number: Number(this.field.value) });
    };
    const label = el("label", {}, [el("kbd", { text: this.keymap.shown("class") }), el("span", { text: "Another number" }), this.field]);
    return el("form", { class: "typed", onsubmit: save }, [label, el("button", { class: "action", type: "submit" }, [el("span", { text: "Save this number" })])]);
  }

  answer(id) {
    const { name, number } = this.data.actions.find((one) => one.id === id);
    this.send({ name, number: number ?? null });
  }

  undo() {
    if (this.data.canUndo) this.send({ name: "undo", number: null });
  }

  // An answer is meant for the sample in view: until the page has run there is none to answer.
  send(said) {
    if (this.isSent) return;
    this.isSent = true;
    const { sample = null, draw = null } = this.data.item || {};
    this.component.setTriggerValue("answer", { sample, draw, ...said });
  }

  enlarge() {
    const { sample, path } = this.data.item;
    this.viewer.show([{ sample, text: path || `Sample ${sample}` }]);
  }

  help() {
    showKeys(this.layer, this.keymap, [], JUDGE_FIXED, () => { this.draw(); this.drawActions(); });
  }

  onKey(event) {
    if (!this.data || this.box.offsetParent === null) return;
    if (this.viewer.isOpen) return void this.viewer.onKey(event);
    if (keyOfLayer(this.layer, event) || event.repeat) return;
    const key = event.key.toLowerCase();
    const id = this.keymap.idOf(key);
    const others = { class: () => this.field.focus(), undo: () => this.undo(), large: () => this.enlarge() };
    if (key === "?") this.help();
    else if (id && (id in others || this.data.item)) (others[id] || (() => this.answer(id)))();
    else return;
    event.preventDefault();
  }
}

export default mount(Judge);
