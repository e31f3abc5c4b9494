// Confusion cards: suspects that are given one class and look like one other, side by side at one size. What does not
// belong is unticked and waits for a look of its own; one key settles the rest, and undo takes the card back.

const CARD_TILE = 132;

class Cards {
  constructor(bench) {
    this.bench = bench;
    this.seen = new WeakSet(); // tiles that were in view
    this.watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) if (isIntersecting) this.seen.add(target);
    }, { threshold: 0.6 });
    this.forget();
  }

  // Another queue: what was put off there is nothing here.
  forget() {
    this.pair = null;
    this.passed = new Set();
    this.left = new Set();
    this.behind = []; // cards that were settled: all samples of each, and those that were left out
  }

  // A key that comes as the card does was meant for the one before.
  get isNew() {
    return performance.now() - this.drawnAt < STARTLED_MS;
  }

  // A key settles what was seen: it first brings into view what was not. Returns whether there was any.
  showUnseen() {
    const tile = this.bench.tiles.find((one) => !this.seen.has(one));
    tile?.scrollIntoView({ block: "start" });
    return Boolean(tile);
  }

  get open() {
    return this.bench.items.filter((item) => !item.decision && !this.left.has(item.sample));
  }

  take(answer) {
    Object.assign(this, { pair: answer.pair, number: answer.cards, singles: answer.singles });
    this.left.clear();
  }

  sentence() {
    const { bench, pair } = this;
    const many = pair.count > bench.items.length ? `${bench.items.length} of ${pair.count}` : String(bench.items.length);
    return [
      `${many} ${bench.items.length === 1 ? "picture" : "pictures"} given `, el("span", { class: "given", text: bench.className(pair.given) }), " look like ",
      el("span", { class: "suggested", text: bench.className(pair.suggested) }),
    ];
  }

  draw() {
    const { bench, pair } = this;
    this.drawnAt = performance.now();
    bench.tiles = bench.items.map((item, i) => {
      const tile = el("button", { class: "pick", "data-testid": "card-tile", "data-sample": item.sample, tabindex: "-1", title: item.odds }, [
        el("img", { src: bench.server.image(item.sample, CARD_TILE), alt: "", draggable: "false" }), el("span", { class: "tick", text: "✓" }),
      ]);
      tile.addEventListener("click", () => { bench.cursor = i; this.toggle(i); });
      return tile;
    });
    const like = (samples, label, tone) => el("div", { class: `exemplars ${tone}` }, [
      el("h4", { text: `Most trusted: ${bench.className(label)}` }),
      el("div", { class: "thumbs" }, samples.map((sample) => el("figure", {}, [
        el("img", { src: bench.server.image(sample, THUMB_PX), alt: `Sample ${sample}: ${bench.className(label)}` }),
      ]))),
    ]);
    const others = this.number > 1 ? `${this.number - 1} more ${this.number === 2 ? "card" : "cards"}` : "The last card";
    const first = pair.isUnverified ? "A first list, nothing of it is verified: check each. " : "";
    const singles = this.singles ? `, then ${this.singles.toLocaleString("en")} one by one` : "";
    bench.stage.replaceChildren(el("div", { class: "confusion", "data-testid": "confusion" }, [
      el("div", { class: "about-pair" }, [el("h3", {}, this.sentence()), el("span", { class: "later", text: `${first}${others}${singles}` })]),
      el("div", { class: "picks", role: "group", "aria-label": "Samples" }, bench.tiles),
      el("div", { class: "both" }, [like(pair.like.suggested, pair.suggested, "suggested"), like(pair.like.given, pair.given, "")]),
    ]));
    bench.items.forEach((_, i) => this.drawTile(i));
    this.watch.disconnect();
    bench.tiles.forEach((tile) => this.watch.observe(tile));
    bench.live.textContent = bench.stage.querySelector("h3").textContent;
  }

  drawTile(i) {
    const { bench } = this;
    const [item, tile] = [bench.items[i], bench.tiles[i]];
    if (!tile) return;
    tile.classList.toggle("cursor", i === bench.cursor);
    if (item.decision) tile.title = bench.verdictText(item);
    tile.setAttribute("aria-pressed", String(!item.decision && !this.left.has(item.sample)));
    tile.setAttribute("aria-label", `Sample ${item.sample}: ${this.left.has(item.sample) ? "left out" : "ticked"}`);
  }

  toggle(i) {
    const { sample } = this.bench.items[i];
    if (!this.left.delete(sample)) this.left.add(sample);
    this.bench.items.forEach((_, at) => this.drawTile(at));
    this.bench.drawActions();
  }

  // The card is settled, or waits until later: what is still open on it comes one by one.
  async next() {
    this.behind.push({ samples: this.bench.items.map((item) => item.sample), left: [...this.left] });
    for (const item of this.bench.items) if (!item.decision || this.left.has(item.sample)) this.passed.add(item.sample);
    await this.bench.outbox.drained();
    await this.bench.load(null, {});
  }

  // An undone card, as it was.
  bringBack(items) {
    const [first] = items;
    const at = this.behind.findLastIndex((card) => card.samples.includes(first.sample));
    const [card] = at < 0 ? [{ samples: items.map((item) => item.sample), left: [] }] : this.behind.splice(at);
    for (const sample of card.samples) this.passed.delete(sample);
    return this.bench.load(null, { first: [first.given, first.suggested] }).then(() => {
      card.left.forEach((sample) => this.left.add(sample));
      this.bench.draw();
    });
  }

  buttons() {
    const { bench, pair } = this;
    const { keymap } = bench;
    const number = this.open.length;
    const idle = number ? {} : { disabled: true };
    const keep = keymap.shown("keep");
    return [
      actionButton("Enter", `Change ${number} ${number === 1 ? "label" : "labels"} to ${bench.className(pair.suggested)}`, () => bench.suggestion(), "primary", { ...idle, "data-testid": "settle" }),
      actionButton(keep, `Keep ${number}`, () => bench.verdict("keep"), "keep", idle),
      actionButton(keymap.shown("class"), "Other class", () => bench.pickClass(), "", idle),
      actionButton(keymap.shown("page"), "Later", () => this.next()),
      el("span", { class: "gap" }),
      actionButton(keymap.shown("undo"), "Undo", () => bench.undo()),
      actionButton(keymap.shown("cards"), "One by one", () => bench.toggleCards()),
      actionButton("?", "Keys", () => bench.help(), "", { "aria-label": "Keys" }),
    ];
  }
}
