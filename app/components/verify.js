// Blind verification: one random sample at a time, its given label shown, no suggestion. The next sample shows at
// once; the outbox keeps each verdict until it is in the database, and one that the server refuses brings its sample
// back. After every ten saved verdicts the page is told, so that it can say what is known.

// Keys beside those of the verdicts, which the page sends (``vocabulary.py``).
const CLASS_KEYS = [
  ["1 – 9", "it should be the class that has this key"],
  ["L", "any other class: type its name"],
];
const VERIFY_KEYS = [
  ["Z", "undo your last verdict"],
  ["V", "the picture large; Esc closes"],
  ["?", "this list"],
];

class Verify {
  constructor(root) {
    this.items = [];
    this.done = new Set();
    this.last = null; // the reviewer's newest verdict, which undo takes back
    this.notice = new Notice();
    this.toldTens = 0;
    this.refusals = 0;
    this.refusedAt = -STARTLED_MS;
    this.stage = el("div", { class: "stage" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.live = el("div", { class: "sr-only", "aria-live": "polite" });
    this.viewer = new Viewer(() => this.server);
    this.box = el("div", { class: "bench verify", "data-testid": "verify" }, [
      this.notice.node, this.stage, this.layer, this.live, this.viewer.node,
    ]);
    root.append(this.box);
  }

  update(data) {
    const whose = JSON.stringify([data.reviewer, data.connection.dataset]);
    const inView = whose === this.whose ? this.item : undefined;
    if (!this.last || whose !== this.whose) this.last = data.last;
    this.whose = whose;
    const isNew = !this.data || JSON.stringify(data.items) !== JSON.stringify(this.data.items);
    this.data = data;
    if (this.server) this.server.connection = data.connection;
    else {
      this.server = new Server(data.connection);
      this.outbox = new Outbox(this.server, "blind", (count, error) => this.showWaiting(count, error));
      this.outbox.restore(
        (verdict) => verdict.dataset === data.connection.dataset,
        (verdict, error) => this.tell(`Sample ${verdict.sample} is not judged: ${error.message}`, "bad"),
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

  // Names that end in a digit of their own ("3", "digit 3") have it as their key, others their place.
  // 0 means "no class fits" here as on Suspects, so that a tenth class, or one named 0, has no digit.
  keyOf(label) {
    const names = this.data.classNames;
    if (names.length > 10) return null;
    const digits = names.map((name) => (/(?:^|[^0-9])([0-9])$/.exec(name) || [])[1]);
    const areOwn = digits.every(Boolean) && new Set(digits).size === names.length;
    const digit = areOwn ? digits[label] : String(label + 1);
    return /^[1-9]$/.test(digit) ? digit : null;
  }

  enlarge() {
    const { sample, given } = this.item || {};
    if (this.item) this.viewer.show([{ sample, text: `Sample ${sample} · given ${this.data.classNames[given]}` }]);
  }

  draw() {
    const item = this.item;
    this.box.setAttribute("data-judged", this.judged);
    if (!item) {
      this.stage.replaceChildren(el("div", { class: "empty", "data-testid": "verified" }, [el("strong", { text: "Every drawn sample is judged." })]));
      return;
    }
    const name = this.data.classNames[item.given];
    const picture = el("img", { class: "picture", src: this.server.image(item.sample, 640), alt: `Sample ${item.sample}`, "data-testid": "picture" });
    const button = (key, text, action, tone = "") =>
      el("button", { class: `action ${tone}`, onclick: action, title: text }, [
        ...[...(key || "")].map((one) => el("kbd", { text: one })), el("span", { text }),
      ]);
    const others = this.data.classNames
      .map((other, label) => (label === item.given ? null : button(this.keyOf(label), other, () => this.judgeClass(label))))
      .filter(Boolean);
    const verdicts = (takesClass) =>
      Object.entries(this.data.verdicts)
        .filter(([, { takes }]) => (takes === "class") === takesClass)
        .map(([name, { keys, button: text }]) =>
          button(keys.join("").toUpperCase(), text, () => this.give(name), takesClass ? "keep" : ""));
    const many = this.data.classNames.length > 24;
    const [done, total] = [this.judged, this.data.total];
    const progress = el("div", { class: "progress", title: `${done} of ${total} judged` }, [el("i", { style: `width:${(100 * done) / total}%` })]);
    this.stage.replaceChildren(
      el("div", { class: "judge", "data-testid": "judge", "data-sample": item.sample }, [
        el("div", { class: "pane" }, [zoomable(picture, "Show the picture large (V)", () => this.enlarge()), el("kbd", { text: "V" })]),
        el("div", { class: "question" }, [
          progress,
          el("small", { text: `${done + 1} of ${total} · sample ${item.sample}`, title: item.filepath }),
          el("div", { class: "given", text: "The given label is" }),
          el("div", { class: "big", text: name, title: name, "data-testid": "given" }),
          el("div", { class: "row" }, verdicts(true)),
          el("h4", { text: "Or it should be" }),
          el("div", { class: "row classes" }, many ? [] : others),
          el("div", { class: "row" }, [
            button("L", "Find a class", () => this.pickClass()), ...verdicts(false),
            button("Z", "Undo", () => this.undo()),
            button("?", "Keys", () => this.help()),
          ]),
        ]),
      ]),
    );
    this.live.textContent = `Given label ${name}`;
    for (const next of this.items.slice(1, 4)) new Image().src = this.server.image(next.sample, 640);
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
      this.tell(`Sample ${item.sample} is not judged: ${error.message}`, "bad");
    }
  }

  // What somebody else judged meanwhile is done; only the sample in view stays.
  leaveToOthers(item, answer) {
    for (const name of answer.judged || []) if (!this.item || name !== this.nameOf(this.item)) this.done.add(name);
    this.items = this.items.filter((other) => !this.done.has(this.nameOf(other)));
    const who = answer.judged_before_by;
    if (who) this.tell(`${who} had judged sample ${item.sample} already; the later verdict counts, and that is yours.`, "warn");
  }

  // The sample waits to be judged again, before those that follow it in the draw.
  comeBack(item) {
    this.done.delete(this.nameOf(item));
    const others = this.items.filter((other) => this.nameOf(other) !== this.nameOf(item));
    this.items = [item, ...others];
    this.toldTens = Math.min(this.toldTens, Math.floor(this.judged / 10));
    this.draw();
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
    this.tell(`Undone: judge sample ${item.sample} again.`);
  }

  help() {
    const rows = Object.values(this.data.verdicts).flatMap(({ keys, help, takes }) => [
      [keys.join(" or ").toUpperCase(), help], ...(takes === "class" ? CLASS_KEYS : []),
    ]);
    showKeys(this.layer, [...rows, ...VERIFY_KEYS]);
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
    if (!this.layer.hidden) {
      if (event.key === "Escape" || this.layer.anyKeyCloses) hideLayer(this.layer);
      return;
    }
    if (event.repeat) return;
    if (waitsForUndo(this, event)) return;
    const named = this.data.classNames.findIndex((_, label) => this.keyOf(label) === key);
    const { verdicts } = this.data;
    const verdict = Object.keys(verdicts).find((name) => verdicts[name].keys.includes(key));
    if (verdict) this.give(verdict);
    else if (key === "z") this.undo();
    else if (key === "l") this.pickClass();
    else if (key === "v") this.enlarge();
    else if (key === "?") this.help();
    else if (named >= 0) this.judgeClass(named);
    else return;
    event.preventDefault();
  }
}

export default mount(Verify);
