// The lens: a suspect, the best of its given class and the best of the suggested one, at one size. Space lays two of
// them over one another, in turn: what differs moves. Of the keys that decide, those of the two classes work here
// for this sample alone: it is decided, or on a card ticked or left as it is. Tiles of a grid may be several.

class Lens {
  constructor(bench) {
    this.bench = bench;
    this.stage = el("div", { class: "panes" });
    this.said = el("span", { class: "about", role: "status" });
    this.node = el("dialog", { class: "viewer lens", "aria-label": "Lens", "data-testid": "lens" }, [
      this.stage, el("div", { class: "under" }, [this.said, el("span", { class: "magnify" }, [
        el("button", { class: "plain", text: "Blink between two (Space)", onclick: () => this.blink() }),
        el("button", { class: "plain", text: "Close (Esc)", onclick: () => this.node.close() }),
      ])]),
    ]);
  }

  get isOpen() {
    return this.node.open;
  }

  // Keys that are pressed while it is on its way are meant for it: ``coming`` is there that long.
  show(item) {
    this.coming = this.bring(item).finally(() => {
      this.coming = null;
    });
    return this.coming;
  }

  async bring(item) {
    const { bench } = this;
    const { exemplars } = await bench.card(item.sample);
    if (bench.item !== item || bench.viewer.isOpen) return; // another sample came meanwhile
    Object.assign(this, { item, exemplars, at: 0, over: null, shown: null });
    this.against = item.suggested === item.given || !exemplars.suggested.length ? "given" : "suggested";
    if (!this.isOpen) this.node.showModal();
    this.node.tabIndex = -1;
    this.node.focus();
    this.draw();
  }

  // Given, suspect, suggested: each class beside the suspect. A class that nothing is trusted of has none.
  get sides() {
    const { bench, item, exemplars } = this;
    const best = (kind, key, label) => {
      const of = exemplars[kind];
      if (!of.length) return null;
      const name = bench.className(label);
      const verb = bench.mode === "cards" ? "Mark as" : kind === "given" ? "Keep" : "Change to";
      const decides = bench.mode === "grid" ? {} : { key, says: `${verb} ${name}` };
      return { kind, sample: of[this.at % of.length].sample, text: `${kind === "given" ? "Given" : "Suggested"}: ${name}`, ...decides };
    };
    return [
      best("given", "keep", item.given), { kind: "suspect", sample: item.sample, text: "This picture", says: item.odds },
      item.suggested === item.given ? null : best("suggested", "relabel", item.suggested),
    ].filter(Boolean);
  }

  pane({ kind, sample, text, key, says }) {
    const image = el("img", { src: this.bench.server.image(sample, LARGEST), alt: `${kind}: sample ${sample}`, draggable: "false" });
    dress(image, this.bench.look || {});
    const below = key ? actionButton(this.bench.keymap.shown(key), says, () => this.decide(key), "decides", { title: says }) : el("span", { text: says || "" });
    const pane = el("div", { class: `pane-of ${kind}`, "data-kind": kind, "data-sample": sample }, [el("b", { title: text, text }), image, below]);
    image.addEventListener("load", () => { pane.dataset.aspect = image.naturalWidth / image.naturalHeight; this.level(); });
    return pane;
  }

  decide(id) {
    this.node.close();
    if (this.bench.mode === "cards") this.bench.pairs.say(this.item.sample, id === "keep");
    else this.bench.act(id);
  }

  draw() {
    this.stage.style.gridTemplateColumns = "";
    const panes = this.sides.map((side) => this.pane(side));
    this.stage.classList.toggle("one", this.over !== null);
    this.stage.replaceChildren(...panes);
    this.turn();
    const most = Math.max(this.exemplars.given.length, this.exemplars.suggested.length);
    this.said.textContent = `${most > 1 ? "← → other examples of the classes · " : ""}${this.over === null ? "Space lays two over one another" : "Space: the other one · ↑ ↓ the other class"}`;
  }

  // Beside one another all have one height: each is as wide as its picture is, of what there is.
  level() {
    const panes = [...this.stage.children];
    const isRow = this.over === null && new Set(panes.map((one) => one.offsetTop)).size === 1;
    const isKnown = panes.every((one) => one.dataset.aspect);
    this.stage.style.gridTemplateColumns = isRow && isKnown ? panes.map((one) => `minmax(180px, ${one.dataset.aspect}fr)`).join(" ") : "";
  }

  // Of two that lie over one another only one shows; both are loaded, so that the change is at once.
  turn() {
    for (const pane of this.stage.children) pane.classList.toggle("hidden", this.over !== null && pane.dataset.kind !== this.over);
  }

  blink() {
    const isFirst = this.over === null;
    this.over = isFirst || this.over === this.against ? "suspect" : this.against;
    if (isFirst) this.draw();
    else this.turn();
  }

  onKey(event) {
    const { keymap } = this.bench;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const id = keymap.idOf(key, event.shiftKey);
    const { mode } = this.bench;
    const isVerdict = ["keep", "relabel"].includes(id) && mode !== "grid";
    if ((isVerdict || id === "alike") && !event.repeat) {
      if (isVerdict) this.decide(id);
      else {
        this.node.close();
        this.bench.act(id);
      }
    } else if (id === "smooth") {
      this.bench.toggleSmooth();
      this.draw();
    } else if (key === "Escape" || id === "lens") this.node.close();
    else if (key === " ") this.blink();
    else if (key === "ArrowLeft" || key === "ArrowRight") {
      const most = Math.max(1, this.exemplars.given.length, this.exemplars.suggested.length);
      this.at = (this.at + (key === "ArrowRight" ? 1 : most - 1)) % most;
      this.draw();
    } else if ((key === "ArrowUp" || key === "ArrowDown") && this.sides.length > 2) {
      this.against = this.against === "given" ? "suggested" : "given";
      this.over = this.against;
      this.draw();
    } else return;
    event.preventDefault();
  }
}
