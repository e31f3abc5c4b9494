// Many suggestions in one step: pictures first, ticks to take away, one confirm, and the sheet is gone.

const TOPS = [20, 50, 100, 200];

class Acceptance {
  constructor(bench) {
    this.bench = bench;
    this.top = 20;
    this.left = new Set();
    this.body = el("div", { class: "acceptance", "data-testid": "acceptance" });
    showLayer(bench.layer, "Accept suggestions without opening each", this.body);
    this.load();
  }

  async load() {
    const { bench, top } = this;
    this.body.replaceChildren(el("p", { text: "Looking …" }));
    try {
      const where = bench.data.queue;
      const answer = await bench.server.post("acceptable", { audit: bench.data.audit, where, top, reviewer: bench.data.reviewer });
      if (top !== this.top) return; // another number was asked for meanwhile
      this.items = answer.items;
      this.first = answer.first;
      // What nobody has checked at all is ticked by whoever looks at it, never in advance.
      this.tick(!this.first);
    } catch (error) {
      this.body.replaceChildren(el("p", { text: error.message }));
    }
  }

  tick(all) {
    this.left = new Set(all ? [] : this.items.map((item) => item.sample));
    this.draw();
  }

  draw() {
    const { bench } = this;
    const tops = TOPS.map((top) => el("button", {
      class: `plain ${top === this.top ? "chosen" : ""}`, text: `First ${top}`, "aria-pressed": String(top === this.top),
      onclick: () => { this.top = top; this.load(); },
    }));
    this.confirm = el("button", { class: "action primary", onclick: () => this.accept(), "data-testid": "accept-confirm" });
    this.said = el("p", { class: "said" });
    const tiles = this.items.map((item) => {
      const [given, suggested] = [bench.className(item.given), bench.className(item.suggested)];
      const pair = `${given} → ${suggested}`;
      const tile = el("button", { class: "pick", "data-sample": item.sample, title: pair, "aria-pressed": String(!this.left.has(item.sample)), "aria-label": `Sample ${item.sample}: ${pair}` }, [
        el("img", { src: bench.server.image(item.sample, 112), alt: "", loading: "lazy" }),
        el("span", { class: "tick", text: "✓" }),
        el("span", { class: "labels" }, [el("span", { class: "given", text: given }), el("span", { text: "→" }), el("span", { class: "suggested", text: suggested })]),
      ]);
      tile.addEventListener("click", () => {
        if (!this.left.delete(item.sample)) this.left.add(item.sample);
        tile.setAttribute("aria-pressed", String(!this.left.has(item.sample)));
        this.count();
      });
      return tile;
    });
    const empty = el("p", { text: "No unchecked sample of this list has a suggestion." });
    const all = el("button", { class: "plain", text: "Tick all", onclick: () => this.tick(true), "data-testid": "accept-all" });
    this.body.replaceChildren(
      el("div", { class: "row" }, this.first && tiles.length ? [...tops, all] : tops), el("p", { text: this.first, hidden: !this.first }), tiles.length ? el("div", { class: "picks" }, tiles) : empty, this.said,
      el("div", { class: "row" }, [this.confirm]),
    );
    this.count();
  }

  get chosen() {
    return this.items.filter((item) => !this.left.has(item.sample));
  }

  count() {
    const changes = this.chosen;
    const isKnown = changes.every((item) => item.changeIsWrong !== null);
    const wrong = changes.reduce((sum, item) => sum + item.changeIsWrong, 0);
    this.confirm.textContent = `Accept ${changes.length}`;
    this.confirm.disabled = !changes.length;
    const expected = isKnown
      ? `About ${wrong.toFixed(1)} of these changes are expected to be wrong (calibrated on verified samples).`
      : "How many of these changes are wrong is not known: too few samples are verified.";
    this.said.textContent = changes.length
      ? `${expected} Click a picture to leave it out. They count as accepted unseen, not as checked.`
      : "Nothing is ticked. Click a picture to take its suggestion.";
  }

  async accept() {
    const { bench } = this;
    const changes = this.chosen.map((item) => [item.sample, item.suggested]);
    this.confirm.disabled = true;
    try {
      await bench.server.post("accept", { audit: bench.data.audit, changes, reviewer: bench.data.reviewer });
    } catch (error) {
      this.said.textContent = error.message;
      return;
    }
    hideLayer(bench.layer);
    bench.accepted(changes.length);
  }
}
