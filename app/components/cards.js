// Confusion cards: suspects that are given one class and look like one other, side by side at one size; then cards of
// mixed pairs. A click on what does not belong says that its label stays, a second one that it waits for a look of its
// own; one key settles the card, and undo takes it back.

const [LARGEST_TILE, ABOVE_AND_BELOW, TEXT_PX, TILE_GAP] = [260, 390, 22, 8];
const cardTile = (box) => (isNarrow(box) ? 112 : 132); // as in bench.css

class Cards {
  constructor(bench) {
    this.bench = bench;
    this.seen = new WeakSet(); // tiles that were in view
    this.watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) if (isIntersecting) this.seen.add(target);
    }, { threshold: 0.6 });
    window.addEventListener("resize", () => { if (this.picks?.isConnected) this.fit(); });
    this.forget();
  }

  // Another queue: what was put off there is nothing here.
  forget() {
    this.pair = null;
    this.passed = new Set();
    this.stays = new Set();
    this.later = new Set();
    this.behind = []; // cards as they were before a key settled them
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
    return this.seenOpen.filter(({ sample }) => !this.stays.has(sample));
  }

  // And what was said to stay.
  get seenOpen() {
    return this.bench.items.filter((item) => !item.decision && !this.later.has(item.sample));
  }

  take(answer) {
    Object.assign(this, { pair: answer.pair, number: answer.cards, singles: answer.singles, isInverted: false });
    this.stays.clear();
    // What is hardly likelier wrong than right waits for a look of its own; a click ticks it.
    const doubtful = (answer.items || []).filter(({ isDoubtful }) => isDoubtful);
    const isMost = 2 * doubtful.length >= (answer.items || []).length;
    this.later = new Set(isMost ? [] : doubtful.map(({ sample }) => sample));
  }

  sentence() {
    const { bench, pair } = this;
    const number = bench.items.length;
    const many = `${pair.count > number ? `${number} of ${pair.count}` : number} ${number === 1 ? "picture" : "pictures"}`;
    if (this.isMixed) return [`${many} ${number === 1 ? "looks" : "look"} like another class than given`];
    return [
      `${many} given `, el("span", { class: "given", text: bench.className(pair.given) }), " look like ",
      el("span", { class: "suggested", text: bench.className(pair.suggested) }),
    ];
  }

  get isMixed() {
    return this.pair.given === null;
  }

  // The fewest columns with which all tiles have room: of few pictures each is larger.
  columns(number) {
    const width = this.bench.stage.clientWidth;
    const height = Math.max(220, window.innerHeight - ABOVE_AND_BELOW);
    for (let columns = 2; columns <= Math.floor(width / cardTile(this.bench.bench)); columns += 1) {
      const side = width / columns - TILE_GAP;
      const rows = Math.ceil(number / columns);
      if (side <= LARGEST_TILE && rows * (side + TILE_GAP + (this.isMixed ? 2 : 1) * TEXT_PX) <= height) return columns;
    }
    return null;
  }

  // Tiles are as large as the window lets them be, also once it has another size. Where not all have room, whole rows do.
  fit() {
    const columns = this.columns(this.bench.items.length);
    this.picks.style.setProperty("--pick", columns ? `calc(${100 / columns}% - ${TILE_GAP}px)` : null);
    this.picks.style.maxHeight = "";
    if (this.picks.scrollHeight <= this.picks.clientHeight) return;
    const row = this.bench.tiles[0].offsetHeight + TILE_GAP;
    this.picks.style.maxHeight = `${row * Math.floor(this.picks.clientHeight / row)}px`;
  }

  draw() {
    const { bench, pair } = this;
    this.drawnAt = performance.now();
    const columns = this.columns(bench.items.length);
    const side = columns ? bench.stage.clientWidth / columns : LARGEST_TILE;
    bench.tiles = bench.items.map((item, i) => {
      const tile = el("button", { class: "pick", "data-testid": "card-tile", "data-sample": item.sample, "data-suggested": item.suggested, tabindex: "-1", title: item.odds }, [
        el("img", { src: bench.server.image(item.sample, side), alt: "", draggable: "false" }), el("span", { class: "tick", text: "✓" }),
        this.isMixed ? el("span", { class: "labels" }, [
          el("span", { class: "given", text: bench.className(item.given) }), " → ", el("span", { class: "suggested", text: bench.className(item.suggested) }),
        ]) : null,
        item.odds ? el("span", { class: "odds", text: briefly(item.odds) }) : null,
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
    const singles = this.singles ? `, then ${this.singles.toLocaleString("en")} of mixed classes` : "";
    const aside = this.passed.size ? `, ${this.passed.size.toLocaleString("en")} for later` : "";
    const later = this.isMixed ? `${first}Each has a suggestion of its own${aside}.` : `${first}${others}${singles}${aside}`;
    this.picks = el("div", { class: "picks", role: "group", "aria-label": "Samples", "data-samples": bench.items.map((item) => item.sample).join() }, bench.tiles);
    bench.stage.replaceChildren(el("div", { class: "confusion", "data-testid": "confusion" }, [
      el("div", { class: "about-pair" }, [el("h3", {}, this.sentence()), el("span", { class: "later", text: later })]),
      this.picks,
      this.isMixed ? null : el("div", { class: "both" }, [like(pair.like.given, pair.given, ""), like(pair.like.suggested, pair.suggested, "suggested")]),
    ]));
    this.fit();
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
    const said = this.later.has(item.sample) ? "later" : this.stays.has(item.sample) ? "stays" : "✓";
    tile.setAttribute("aria-pressed", String(!item.decision && said === "✓"));
    tile.setAttribute("aria-label", `Sample ${item.sample}: ${said === "✓" ? "ticked" : said}`);
    tile.querySelector(".tick").textContent = said;
    tile.classList.toggle("later", said === "later");
  }

  toggle(i) {
    const { sample } = this.bench.items[i];
    const { stays, later, isInverted } = this;
    if (later.delete(sample)) isInverted && stays.add(sample); // as the card began
    else if (stays.has(sample) !== isInverted) later.add(sample) && stays.delete(sample);
    else if (!stays.delete(sample)) stays.add(sample);
    this.bench.items.forEach((_, at) => this.drawTile(at));
    this.bench.drawActions();
  }

  // What a look through the lens said of one of them.
  say(sample, isKept) {
    this.later.delete(sample);
    if (isKept) this.stays.add(sample);
    else this.stays.delete(sample);
    this.bench.items.forEach((_, at) => this.drawTile(at));
    this.bench.drawActions();
  }

  // Where most labels are right it is quicker to tick the few that are not.
  invert() {
    const { bench } = this;
    this.later.clear();
    this.isInverted = !this.isInverted;
    this.stays = new Set(this.isInverted ? this.seenOpen.map((item) => item.sample) : []);
    bench.items.forEach((_, at) => this.drawTile(at));
    bench.drawActions();
  }

  // The card is settled, or waits until later: what is still open on it comes one by one.
  async next() {
    const { pair, number, singles, isInverted } = this;
    const card = { isInverted, pair, number, singles, items: this.bench.items, stays: new Set(this.stays), later: new Set(this.later) };
    this.behind.push(card);
    for (const item of this.bench.items) if (!item.decision) this.passed.add(item.sample);
    await this.bench.outbox.drained();
    if (this.behind.includes(card)) await this.bench.load(null, {});
    return this.behind.includes(card); // not taken back meanwhile
  }

  // An undone card, as it was before the key; false where it is not of these.
  bringBack(items) {
    const at = this.behind.findLastIndex((card) => card.items.some((item) => item.sample === items[0].sample));
    if (at < 0) return false;
    const [card] = this.behind.splice(at);
    for (const item of card.items) Object.assign(item, items.find((one) => one.sample === item.sample));
    for (const { sample } of card.items) this.passed.delete(sample);
    const { items: all, ...about } = card;
    Object.assign(this, about);
    Object.assign(this.bench, { items: all, cursor: 0, loads: this.bench.loads + 1 }); // the next card, if it is on its way, waits
    this.bench.bench.setAttribute("data-state", "ready");
    this.bench.show("cards");
    return true;
  }

  buttons() {
    const { bench, pair } = this;
    const { keymap } = bench;
    const [number, all] = [this.open.length, this.seenOpen.length];
    const idle = all ? {} : { disabled: true };
    const kept = all > number ? `, keep ${all - number}` : "";
    const keep = keymap.shown("keep");
    return toolbar(bench.bench, [
      actionButton(keep, `Keep ${all}`, () => bench.verdict("keep"), `keep ${isNarrow(bench.bench) ? "large" : ""}`, idle),
      actionButton("Enter", `Change ${number} ${number === 1 ? "label" : "labels"} ${this.isMixed ? "as suggested" : `to ${bench.className(pair.suggested)}`}${kept}`, () => bench.suggestion(), "primary large", { ...idle, "data-testid": "settle" }),
    ], [
      actionButton(keymap.shown("invert"), this.isInverted ? "Tick all" : "Tick none", () => this.invert()),
      actionButton(keymap.shown("class"), "Other class", () => bench.pickClass(), "", idle),
      actionButton(keymap.shown("later"), "Later", () => this.next()),
    ], isNarrow(bench.bench) ? modeButtons(bench) : [], undoButton(bench.bench, keymap, () => bench.undo()), () => bench.help());
  }
}
