// The review bench: a grid to sweep and one evidence card at a time, both driven by single keys.
// The next sample shows at once; the outbox keeps each verdict until it is in the database, and one that the server
// refuses brings its sample back. The next page waits until everything is saved.

const MODE_KEPT = "auditor-mode";
const PREVIEWS = 30; // small pictures that are fetched before their samples are in view
const AHEAD = 8; // samples that are leased before they are in view
const LEASE_MS = 120000; // renewed a minute before the server lets go
const BEAT_MS = 30000;
const WORTH_IT = 0.05; // share of wrong ones among the last, as in ``results.progress``
const [MOST_CHANGED, CARDS_AT_END, THUMBS_AT_END] = [500, 12, 12];
const GO_ON = "Check the next labels"; // less suspicious ones
const NEWS_MS = 800; // between one look at what others decided and the next: with the answer's way, a second

class Bench {
  constructor(root) {
    this.root = root;
    this.items = [];
    this.cursor = 0;
    this.chosen = new Set();
    this.cards = new Map();
    this.pages = [null];
    this.mode = "card";
    this.pairs = new Cards(this);
    this.counted = null;
    this.progress = null;
    this.ahead = new Set(); // samples whose small pictures were asked for
    this.leased = new Map(); // by sample: until when it is ours
    this.newest = null; // number of the newest word in the log that this window knows of
    this.loads = 0;
    this.refusals = 0;
    this.written = new Set(); // numbers of the verdicts that this window gave
    this.recent = new Map(); // by sample: items with a verdict that the next page of the queue may not know
    this.refusedAt = -STARTLED_MS;
    this.said = []; // what was decided in this window, in words, the newest last
    this.shell();
    this.beats = [setInterval(() => this.stayAwake(), BEAT_MS), setInterval(() => this.hear(), NEWS_MS)];
  }

  // Whether somebody can see it; the beats of one that is gone end.
  isInView() {
    if (!this.root.isConnected) this.beats.forEach(clearInterval);
    else return document.visibilityState === "visible" && this.bench.offsetParent !== null && this.data;
  }

  // While somebody looks: leases are renewed.
  stayAwake() {
    if (!this.isInView()) return;
    this.lease(true);
    this.refreshStats();
  }

  // What others decided is told; a server that does not answer is asked again.
  async hear() {
    if (this.hearing || !this.isInView()) return;
    this.hearing = true;
    try {
      const open = this.items.filter((item) => !item.decision).slice(...(this.mode === "card" ? [0, AHEAD] : []));
      const asked = { audit: this.data.audit, since: this.newest, samples: open.map((item) => item.sample) };
      const { newest, decided } = await this.server.post("newest", asked);
      for (const item of open) if (item.sample in decided && !item.decision) this.mark(item, decided[item.sample]);
      if (newest !== this.newest) this.refreshStats();
    } catch {
      // A verdict that cannot be saved says so.
    }
    this.hearing = false;
  }

  // Somebody decided it in another window: it says so, and no key of this one settles it unseen.
  mark(item, outcome) {
    Object.assign(item, outcome);
    if (this.mode !== "card") this.drawTile(this.items.indexOf(item));
    else if (item === this.item) this.tell(`Sample ${item.sample} was decided meanwhile (${this.verdictText(item)}); a key here decides it anew.`, "warn");
    this.drawActions();
  }

  shell() {
    this.live = el("div", { class: "sr-only", "aria-live": "polite", "data-testid": "live" });
    this.stats = el("div", { class: "stats", "data-testid": "stats" });
    this.notice = new Notice();
    this.stage = el("div", { class: "stage" });
    this.tools = el("div", { class: "bar-tools" });
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Verdict" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.viewer = new Viewer(() => this.server, () => this.look);
    this.lens = new Lens(this);
    const skip = el("button", {
      class: "plain skip", text: "To the verdicts", onclick: () => this.actions.querySelector("button:not(:disabled)")?.focus(),
    });
    const top = el("div", { class: "top" }, [this.stats, this.tools]);
    this.dock = el("div", { class: "dock" }, [this.notice.node, this.actions]);
    this.bench = el("div", { class: "bench", "data-testid": "bench" }, [
      skip, top, this.stage, this.dock, this.layer, this.live,
      this.viewer.node, this.lens.node,
    ]);
    this.root.append(this.bench);
    document.addEventListener("auditor-pointed", ({ detail }) => {
      const at = this.mode === "grid" ? this.items.findIndex((item) => item.sample === detail) : -1;
      if (at >= 0 && this.bench.isConnected) this.moveTo(at);
    });
    this.slot = new BarSlot(this.bench, top);
    watchWidth(this.bench, () => this.data && this.drawActions());
    window.addEventListener("resize", () => this.fitRows());
  }

  update(data) {
    const whose = JSON.stringify([data.connection.dataset, data.audit]);
    const queue = JSON.stringify([data.queue, whose]);
    const isNew = queue !== this.queue;
    this.data = data;
    this.keymap ||= benchKeys(data.decisions);
    if (this.server) this.server.connection = data.connection;
    else {
      this.server = new Server(data.connection);
      this.outbox = new Outbox(this.server, "verdicts", (count, error) => this.showWaiting(count, error));
      this.outbox.restore(
        (verdict) => verdict.dataset === data.connection.dataset,
        (verdict, error) => this.tell(`Sample ${verdict.sample} is not decided: ${error.message}`, "bad"),
      );
    }
    this.outbox.flush();
    if (isNew) {
      if (this.queue) leaveSelectBox();
      if (whose !== this.whose) this.leave();
      this.whose = whose;
      this.queue = queue;
      // A page that asks for the grid has it with every new queue; the others come back to what this tab showed.
      this.mode = data.mode === "grid" ? "grid" : sessionStorage.getItem(MODE_KEPT) || data.mode;
      if (this.mode === "cards" && !hasCards(data)) this.mode = "card";
      this.pairs.forget();
      this.restart();
    } else if (data.refresh !== this.refresh) {
      this.load(this.pages[this.pages.length - 1], { keep: true });
      this.refreshStats();
    }
    this.refresh = data.refresh;
  }

  // What is in view is of another dataset or audit: until its own queue has come, a key has nothing to decide on.
  leave() {
    this.items = [];
    this.frame = this.changed = this.drawnAtEnd = null;
    this.ahead.clear();
    this.recent.clear();
    this.stage.replaceChildren();
  }

  // ``how``: as ``load`` has it.
  restart(how = {}) {
    this.pages = [null];
    this.counted = null;
    this.cards.clear();
    this.chosen.clear();
    this.leased.clear();
    this.load(null, how);
    this.refreshStats();
  }

  async load(after, { last = false, keep = false, stay = false }) {
    this.bench.setAttribute("data-state", "loading");
    const load = ++this.loads;
    for (const item of this.recent.values()) if (!item.saving) this.recent.delete(item.sample);
    const isOvertaken = () => load !== this.loads; // the filters were changed meanwhile, or the page was turned again
    try {
      const asked = { audit: this.data.audit, where: this.data.queue, reviewer: this.data.reviewer };
      let page = null;
      if (this.mode === "cards") {
        page = await this.server.post("cards", { ...asked, passed: [...this.pairs.passed] });
        if (isOvertaken()) return;
        this.pairs.take(page);
        if (!page.pair) return this.afterCards();
      } else page = await this.server.post("queue", { ...asked, reviewer: this.leases ? asked.reviewer : null, after, limit: this.data.pageSize, ahead: this.mode === "grid" ? this.data.pageSize : AHEAD });
      if (isOvertaken()) return;
      if (!page.items.length && after !== null && this.data.queue.undecided && !last) {
        // Nothing follows; what was passed over, or moved up since, comes now.
        this.pages = [null];
        return void this.load(null, {});
      }
      this.elsewhere = page.elsewhere;
      const until = performance.now() + LEASE_MS;
      for (const item of page.items.slice(0, this.mode === "card" ? AHEAD : undefined)) this.leased.set(item.sample, until);
      const inView = keep ? this.item : null;
      const at = inView?.sample;
      const before = this.decidedInView;
      this.items = page.items.map((item) => this.recent.get(item.sample) || item);
      if (this.counted) {
        const more = before - this.counted.inView;
        const { checked, total } = this.counted;
        Object.assign(this.counted, { checked: checked + more, total: total === null ? null : total - more, inView: this.decidedInView });
      }
      this.cards.clear();
      if (stay && inView && !inView.decision && !this.items.some((item) => item.sample === at)) this.items.unshift(inView);
      this.cursor = this.items.findIndex((item) => item.sample === at);
      if (last) this.cursor = this.items.length - 1;
      else if (this.cursor < 0) this.cursor = this.items.findIndex((item) => !this.recent.has(item.sample));
      this.cursor = Math.max(0, this.cursor);
      this.chosen.clear();
      this.draw();
      this.count();
    } catch (error) {
      if (isOvertaken()) return;
      this.tell(error.message, "bad");
      if (!error.final) setTimeout(() => isOvertaken() || this.load(after, { last, keep, stay }), 1500);
    }
    this.bench.setAttribute("data-state", "ready");
  }

  // No pair of classes is left with enough suspects: the others come one by one.
  afterCards() {
    const { singles, passed } = this.pairs;
    this.mode = "card"; // of this queue: the next one has cards again
    const others = passed.size || (singles && this.recent.size);
    this.load(null, {}).then(() => others && this.tell("That was the last card; the others come one by one."));
  }

  // Apart from the page, which does not wait for it: counting a million rows takes a moment.
  async count() {
    const queue = this.queue;
    try {
      const inView = this.decidedInView;
      const counted = await this.server.post("queue-size", { audit: this.data.audit, where: this.data.queue });
      if (queue !== this.queue) return; // the filters were changed meanwhile
      this.counted = { ...counted, inView };
      drawFigures(this);
    } catch (error) {
      if (error.final) this.tell(error.message, "bad");
    }
  }

  // Who looks at a map keeps nothing from others.
  get leases() {
    return this.data.queue.undecided && this.data.mode !== "grid";
  }

  // What comes next is ours before it shows; what others look at or decided meanwhile is passed over.
  async lease(isDue = false) {
    if (!this.leases || this.leasing) return;
    const next = this.items.slice(this.mode === "card" ? this.cursor : 0, this.mode === "card" ? this.cursor + AHEAD : undefined);
    const wanted = next.filter((item) => !item.decision);
    const isOurs = (item) => (this.leased.get(item.sample) || 0) > performance.now();
    if (!wanted.length || (!isDue && wanted.slice(0, AHEAD / 2).every(isOurs))) return;
    this.leasing = true;
    const [queue, samples] = [this.queue, wanted.map((item) => item.sample)];
    try {
      const { dataset } = this.data.connection;
      const answer = await this.server.post("lease", { dataset, reviewer: this.data.reviewer, samples });
      if (queue === this.queue) this.passOver(samples, answer);
    } catch (error) {
      // The next look asks again.
    }
    this.leasing = false;
  }

  passOver(samples, { held, decided }) {
    const until = performance.now() + LEASE_MS;
    for (const sample of samples) if (!(sample in held)) this.leased.set(sample, until);
    const inView = this.item;
    const isGone = (item) => !item.decision && (item.sample in held || item.sample in decided);
    const gone = this.items.filter((item) => isGone(item) && (item !== inView || item.sample in held));
    if (!gone.length) return;
    this.items = this.items.filter((item) => !gone.includes(item));
    this.chosen.clear();
    if (gone.includes(inView)) {
      this.refusedAt = performance.now(); // a key that comes now was meant for the sample that went
      this.tell(`${held[inView.sample]} has sample ${inView.sample} in view; you see the next one.`);
      this.cursor = Math.min(this.cursor, Math.max(0, this.items.length - 1));
    } else this.cursor = this.items.indexOf(inView);
    if (gone.includes(inView) || this.mode !== "card") this.draw();
  }

  get decidedInView() {
    return this.items.filter((item) => item.decision).length;
  }

  get item() {
    return this.items[this.cursor];
  }

  className(label) {
    return label === null || label === undefined || label < 0 ? "unlabeled" : this.data.classNames[label];
  }

  // -- drawing ---------------------------------------------------------------------------------------------

  draw() {
    this.bench.setAttribute("data-mode", this.items.length ? this.mode : "empty");
    // Above the buttons it would cover a card's examples: beside the card's sentence there is room.
    (this.mode === "cards" && !isNarrow(this.bench) ? this.bench : this.dock).prepend(this.notice.node);
    if (!this.items.length) this.drawEmpty();
    else if (this.mode === "grid") this.drawGrid();
    else if (this.mode === "cards") this.pairs.draw();
    else this.drawCard();
    this.drawActions();
  }

  // Suspects were all checked, and nobody has any of them in view.
  get isAtEnd() {
    return Boolean(!this.items.length && this.data.queue.issues && this.data.queue.undecided && !(this.elsewhere || []).length);
  }

  // The end of a queue: how it went, what was changed, and the one thing to do next.
  drawEmpty() {
    const first = this.pages.length === 1;
    const others = (this.elsewhere || []).join(" and ");
    let text = first ? "Nothing is left in this queue." : "That was the last page of this queue.";
    if (this.isAtEnd && this.progress?.hasSuspects) text = "Every suspect here is checked.";
    if (others) text = `${others} ${this.elsewhere.length > 1 ? "have" : "has"} what is left of this queue in view.`;
    const { progress } = this;
    const isEnd = this.isAtEnd;
    const hint = isEnd ? progress?.end || "" : "Change the filters above to see other samples.";
    const page = (name, says, more = {}) => {
      const where = new URLSearchParams(location.search);
      for (const [key, value] of Object.entries(more)) where.set(key, value);
      return el("a", { class: "action", href: `${this.data.connection.base}/${name}?${where}`, target: "_self", text: says });
    };
    const next = [
      isEnd ? page("suspects", GO_ON, { suspects_show: "undecided" }) : null, page("verify", "Verify"), page("export", "Export"),
    ].filter(Boolean);
    // Where many were wrong the list goes on, unless about nothing is left; else a random sample says what is left, and
    // once one did, the export is due.
    const [wrong, latest] = progress?.latest || [0, 0];
    const goesOn = isEnd && progress && !progress.isLittleLeft && wrong >= WORTH_IT * latest;
    const wanted = goesOn ? GO_ON : progress?.expected_left === null && !progress.isLittleLeft ? "Verify" : "Export";
    // The one thing to do comes first.
    const due = next.find((link) => link.textContent === wanted);
    due?.classList.add("primary");
    next.sort((a, b) => (b === due) - (a === due));
    this.changed ||= el("div", { class: "changed", "data-testid": "changed" });
    this.stage.replaceChildren(
      el("div", { class: "empty", "data-testid": "empty" }, [
        el("strong", { class: "end", text }), el("p", { text: hint }),
        el("div", { class: "row centre" }, [
          ...(this.data.links ? next : []),
          first && isEnd ? null : el("button", { class: "plain", text: "Back to the first page", onclick: () => this.restart() }),
        ].filter(Boolean)),
        this.changed,
      ]),
    );
    if (isEnd) this.drawChanged();
  }

  // Before and after, by card: all that people found wrong, the most frequent change first, with some of its pictures.
  async drawChanged() {
    const { newest } = this;
    if (this.drawnAtEnd === newest) return;
    this.drawnAtEnd = newest;
    try {
      const { items } = await this.server.post("queue", { audit: this.data.audit, where: { decided: true }, limit: MOST_CHANGED });
      const cards = new Map();
      for (const item of items.filter((one) => this.data.decisions[one.decision]?.says === "wrong")) {
        const change = `${item.given} ${item.decision} ${item.label}`;
        cards.set(change, [...(cards.get(change) || []), item]);
      }
      const rows = [...cards.values()].sort((a, b) => b.length - a.length).slice(0, CARDS_AT_END);
      const [found, shown] = [this.progress?.found || 0, rows.reduce((sum, card) => sum + card.length, 0)];
      if (!found) return void this.changed.replaceChildren();
      const many = (number) => number.toLocaleString("en");
      this.changed.replaceChildren(
        el("h3", { text: `${many(found)} ${found === 1 ? "label" : "labels"} found wrong${found > shown ? `, ${many(found - shown)} of them not shown here` : ""}` }),
        ...rows.map((card) => this.changeCard(card)),
      );
    } catch (error) {
      if (error.final) this.tell(error.message, "bad");
    }
  }

  changeCard(card) {
    const [first] = card;
    const after = first.decision === "relabel" ? el("span", { class: "suggested", text: this.className(first.label) }) : this.data.decisions[first.decision].words;
    const more = card.length - THUMBS_AT_END;
    return el("section", {}, [
      el("h4", {}, [`${card.length} `, el("span", { class: "given", text: this.className(first.given) }), " → ", after]),
      el("div", { class: "thumbs" }, [
        ...card.slice(0, THUMBS_AT_END).map((item) => el("figure", {}, [
          el("img", { src: this.server.image(item.sample, THUMB_PX), alt: `Sample ${item.sample}`, loading: "lazy" }),
        ])),
        more > 0 ? el("span", { class: "more", text: `+${more}` }) : null,
      ].filter(Boolean)),
    ]);
  }

  drawGrid() {
    const side = 1.2 * TILES[tileSize()]; // tiles grow by what the last column leaves
    this.tiles = this.items.map((item, i) => {
      const image = el("img", { src: this.server.image(item.sample, side), alt: "", loading: "lazy", draggable: "false" });
      const tile = el("button", { class: "tile", "data-testid": "tile", "data-sample": item.sample, tabindex: "-1" }, [
        image, el("span", { class: "badge" }),
        el("span", { class: "labels" }, [
          el("span", { class: "given", text: this.className(item.given), title: this.className(item.given) }),
          ...(item.isSuspect ? [
            el("span", { class: "arrow", text: "→" }),
            el("span", { class: "suggested", text: this.className(item.suggested), title: this.className(item.suggested) }),
          ] : []),
        ]),
        item.isSuspect ? el("span", { class: "odds", title: item.odds, text: briefly(item.odds) }) : null,
      ]);
      tile.addEventListener("click", (event) => this.clickTile(i, event));
      tile.addEventListener("pointerdown", (event) => this.startDrag(i, event));
      tile.addEventListener("pointerenter", () => this.dragOver(i));
      tile.addEventListener("dblclick", () => this.open(i));
      return tile;
    });
    const style = `--tile:${TILES[tileSize()]}px`;
    this.stage.replaceChildren(el("div", { class: "grid", style, role: "group", "aria-label": "Samples" }, this.tiles));
    this.items.forEach((_, i) => this.drawTile(i));
    this.fitRows();
  }

  // Pictures become a little higher or lower, so that no row of tiles is cut at the lower edge.
  fitRows() {
    if (this.mode !== "grid" || !this.tiles?.[0]?.isConnected) return;
    const grid = this.tiles[0].parentElement;
    grid.style.removeProperty("--picture");
    const scrolled = document.querySelector('[data-testid="stMain"]')?.scrollTop || 0;
    const room = window.innerHeight - this.actions.offsetHeight - scrolled - grid.getBoundingClientRect().top;
    const bottoms = [...new Set(this.tiles.map((tile) => tile.offsetTop + tile.offsetHeight - this.tiles[0].offsetTop))];
    const whole = bottoms.findIndex((bottom) => bottom > room);
    if (whole < 1) return;
    const [more, less] = [(room - bottoms[whole - 1]) / whole, (bottoms[whole] - room) / (whole + 1)];
    const side = this.tiles[0].querySelector("img").offsetHeight;
    grid.style.setProperty("--picture", `${Math.floor(less < more ? side - less : side + more)}px`);
  }

  drawTile(i) {
    if (this.mode === "cards") return this.pairs.drawTile(i);
    if (this.mode !== "grid" || !this.tiles) return;
    const item = this.items[i];
    const tile = this.tiles[i];
    tile.setAttribute("data-decision", item.decision || "");
    tile.classList.toggle("cursor", i === this.cursor);
    tile.classList.toggle("chosen", this.chosen.has(i));
    tile.classList.toggle("saving", Boolean(item.saving));
    tile.querySelector(".badge").textContent = this.verdictText(item);
    const spoken = `${this.className(item.given)}${item.isSuspect ? `, suggested ${this.className(item.suggested)}` : ""}`;
    tile.setAttribute("aria-label", `Sample ${item.sample}: ${spoken}. ${this.verdictText(item)}`);
  }

  verdictText(item) {
    if (!item.decision) return "";
    const { takes, words } = this.data.decisions[item.decision];
    let text = words;
    if (takes === "class") text = `→ ${this.className(item.label)}`;
    if (takes === "classes") text = (item.labels || []).map((l) => this.className(l)).join(" + ") || words;
    return item.reviewer && item.reviewer !== this.data.reviewer ? `${text} · ${item.reviewer}` : text;
  }

  async drawCard() {
    const item = this.item;
    const frame = new Card(this, item);
    this.frame = frame;
    const hadFocus = this.root.getRootNode().activeElement;
    const focused = hadFocus && hadFocus.closest && hadFocus.closest(".actions") ? hadFocus.dataset.key : null;
    if (focused) setTimeout(() => this.actions.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus());
    this.lease();
    const wasInCard = Boolean(hadFocus) && this.stage.contains(hadFocus);
    this.stage.replaceChildren(frame.node);
    if (wasInCard) frame.node.querySelector("button")?.focus({ preventScroll: true });
    this.bench.setAttribute("data-sample", item.sample);
    this.live.textContent = `Sample ${item.sample}: given ${this.className(item.given)}`;
    try {
      const story = await this.card(item.sample);
      if (this.item === item && this.mode === "card") frame.fill(story);
    } catch (error) {
      if (this.item === item && this.mode === "card") this.cardFailed(item, error);
    }
    for (const next of this.items.slice(this.cursor + 1, this.cursor + 1 + PREVIEWS)) {
      if (this.ahead.has(next.sample)) continue;
      this.ahead.add(next.sample);
      Object.assign(new Image(), { fetchPriority: "low", src: this.server.image(next.sample, THUMB_PX) });
    }
    for (const next of this.items.slice(this.cursor + 1, this.cursor + 4)) {
      this.card(next.sample).catch(() => {});
      new Image().src = this.server.image(next.sample, paneSide());
    }
  }

  cardFailed(item, error) {
    if (!this.outbox.waiting.size) this.tell(error.message, "bad");
    const again = () => this.item === item && this.mode === "card" && this.drawCard();
    if (!error.final) setTimeout(again, 1500);
  }

  card(sample) {
    if (!this.cards.has(sample)) {
      const promise = this.server.post("card", { audit: this.data.audit, sample });
      promise.catch(() => this.cards.delete(sample));
      this.cards.set(sample, promise);
    }
    return this.cards.get(sample);
  }

  // A map beside the grid marks what is selected here, or else where the cursor is, and colours what is decided.
  tellMap() {
    const selected = this.mode === "grid" ? this.targets().map((item) => item.sample) : this.item ? [this.item.sample] : [];
    document.dispatchEvent(new CustomEvent("auditor-seen", { detail: { selected, items: this.items } }));
  }

  drawActions() {
    this.tellMap();
    this.actions.replaceChildren(...verdictButtons(this));
    this.tools.replaceChildren(...barButtons(this));
    this.slot.follow();
    drawFigures(this);
  }

  place() {
    // As the figure above: of what is left.
    const shown = this.data.queue.undecided ? this.items.filter((item) => !item.decision || item === this.item) : this.items;
    const at = `${shown.indexOf(this.item) + 1} of ${shown.length}`;
    if (this.mode === "grid") return String(this.pages.length);
    return this.pages.length > 1 ? `${at} · page ${this.pages.length}` : at;
  }

  tell(text, tone = "info", more = null) {
    this.notice.tell(text, tone, more);
  }

  showWaiting(count, error) {
    if (!count) {
      if (this.wasWaiting) {
        this.tell("The server answers again; every verdict is saved.", "good");
        for (const one of this.stage.querySelectorAll("img")) if (!one.naturalWidth) one.src = String(one.src); // they come back
      }
      this.wasWaiting = false;
      return;
    }
    this.wasWaiting = true;
    const verdicts = count === 1 ? "1 verdict is" : `${count} verdicts are`;
    this.tell(`${whyWaiting(error)} ${verdicts} kept in this browser and sent when the server answers again.`, "bad");
  }

  async refreshStats() {
    clearTimeout(this.statsTimer);
    this.statsTimer = setTimeout(async () => {
      const queue = this.queue;
      try {
        const { audit, reviewer } = this.data;
        const progress = await this.server.post("progress", { audit, where: this.data.queue, reviewer, since: this.newest });
        if (queue !== this.queue) return;
        Object.assign(this, { progress, newest: progress.newest });
        drawFigures(this);
        if (!this.items.length) this.drawEmpty(); // what it says of the last ones came just now
        this.tellOverruled(progress.overruled);
        if (progress.moved !== null) this.followRanking(progress.moved);
      } catch (error) {
        if (error.final) this.tell(error.message, "bad");
      }
    }, 150);
  }

  // The rest was ranked anew. What is in view stays in view; what follows it is the new order's.
  followRanking(says) {
    if (says && this.items.length) this.tell(says);
    const { undecided, sort } = this.data.queue;
    if (!undecided || sort === "files" || this.mode === "cards") return; // the next card is of the new order
    this.pages = [null];
    this.load(null, { keep: true, stay: true });
  }

  tellOverruled(theirs) {
    if (!theirs.length) return;
    const [one] = theirs;
    const more = theirs.length > 1 ? ` and ${theirs.length - 1} more` : "";
    this.tell(`${one.reviewer} decided otherwise than you on sample ${one.sample} (${this.verdictText(one)})${more}. See “People differ”.`, "warn");
  }

  // -- moving ----------------------------------------------------------------------------------------------

  show(mode) {
    this.mode = mode;
    if (this.data.mode !== "grid") sessionStorage.setItem(MODE_KEPT, mode);
  }

  open(i) {
    this.cursor = i;
    this.show("card");
    this.draw();
  }

  // The card's pictures, or those of the page of the grid.
  enlarge(at = 0) {
    if (this.mode === "card") this.viewer.show(this.frame ? this.frame.pictures : [], at);
    else this.viewer.show(this.items.map((item) => ({ sample: item.sample, text: this.caption(item.sample, item.given) })), this.cursor);
  }

  compare() {
    const { item } = this;
    if (item) this.lens.show(item).catch((error) => this.tell(error.message, "bad"));
  }

  // Its nearest with the same given label, as a queue of its own; verdicts that are on their way arrive first.
  async showAlike() {
    if (!this.data.links || !this.item) return;
    const { sample } = this.item;
    await this.outbox.drained();
    const where = new URLSearchParams(location.search);
    where.set("suspects_search", `~${sample}`);
    location.search = where;
  }

  // Brightness, contrast and interpolation: of the window, not of one sample.
  setLook(look) {
    this.look = look;
    if (this.frame) this.frame.look();
    this.viewer.dress();
  }

  toggleSmooth() {
    this.setLook({ ...this.look, pixels: !(this.look || {}).pixels });
  }

  caption(sample, given) {
    return `Sample ${sample} · given ${this.className(given)}`;
  }

  // Cards have a list of their own; single pictures and the grid share one.
  go(mode) {
    if (mode === this.mode) return;
    const hasOtherList = mode === "cards" || this.mode === "cards";
    this.show(mode);
    this.chosen.clear();
    if (hasOtherList) {
      this.pairs.forget();
      this.restart(mode === "cards" ? {} : { keep: true, stay: true }); // the picture with the ring stays in view
    } else {
      this.draw();
      this.lease(true);
    }
  }

  // Dragging over tiles selects them.
  startDrag(i, event) {
    if (event.button !== 0 || event.shiftKey || event.pointerType !== "mouse") return;
    this.drag = { from: i, moved: false };
    event.currentTarget.releasePointerCapture?.(event.pointerId);
    document.addEventListener("pointerup", () => { setTimeout(() => { this.drag = null; }); }, { once: true });
  }

  dragOver(i) {
    if (!this.drag || (i === this.drag.from && !this.drag.moved)) return;
    this.drag.moved = true;
    this.chosen.clear();
    const [from, to] = [Math.min(i, this.drag.from), Math.max(i, this.drag.from)];
    for (let at = from; at <= to; at += 1) this.chosen.add(at);
    this.items.forEach((_, at) => this.drawTile(at));
    this.drawActions();
  }

  clickTile(i, event) {
    if (this.drag && this.drag.moved) return;
    if (event.shiftKey) {
      const [from, to] = [Math.min(i, this.cursor), Math.max(i, this.cursor)];
      for (let at = from; at <= to; at += 1) this.chosen.add(at);
      this.items.forEach((_, at) => this.drawTile(at));
    } else if (event.ctrlKey || event.metaKey) this.toggleChosen(i);
    this.moveTo(i);
  }

  toggleChosen(i) {
    if (this.chosen.has(i)) this.chosen.delete(i);
    else this.chosen.add(i);
    this.drawTile(i);
    this.drawActions();
  }

  // What comes after a verdict: a page that was loaded meanwhile may hold what was decided since.
  nextOpen() {
    let i = this.cursor + 1;
    while (this.data.queue.undecided && this.items[i]?.decision) i += 1;
    return i;
  }

  moveTo(i) {
    if (i < 0 || i >= this.items.length) return this.mode === "cards" ? null : this.turn(i < 0 ? -1 : 1);
    const before = this.cursor;
    this.cursor = i;
    if (this.mode !== "card") {
      this.drawTile(before);
      this.drawTile(i);
      this.tiles[i].scrollIntoView({ block: "nearest" });
      this.drawActions();
    } else this.draw();
    return null;
  }

  turn(step) {
    if (this.turning || (step < 0 && this.pages.length === 1) || (step > 0 && !this.items.length)) return;
    this.turning = this.turnWhenSaved(step).finally(() => {
      this.turning = null;
    });
  }

  async turnWhenSaved(step) {
    const [queue, refusals] = [this.queue, this.refusals];
    this.notice.hush();
    if (this.outbox.waiting.size && this.notice.node.hidden) this.tell("Saving before the next page …");
    await this.outbox.drained();
    if (queue !== this.queue || refusals !== this.refusals) return; // other filters, or a sample that came back
    this.notice.hush();
    if (step > 0) {
      const last = this.items[this.items.length - 1];
      this.pages.push(this.data.queue.sort === "files" ? last.sample : last.rank);
    }
    else this.pages.pop();
    await this.load(this.pages[this.pages.length - 1], { last: step < 0 && this.mode === "card" });
  }

  columns() {
    if (!this.tiles || !this.tiles.length) return 1;
    const top = this.tiles[0].offsetTop;
    const next = this.tiles.findIndex((tile) => tile.offsetTop > top);
    return next < 0 ? this.tiles.length : next;
  }

  // -- deciding --------------------------------------------------------------------------------------------

  targets() {
    if (this.mode === "cards") return this.pairs.open;
    if (this.mode === "grid" && this.chosen.size) return [...this.chosen].map((i) => this.items[i]);
    return this.item ? [this.item] : [];
  }

  suggestion() {
    const targets = this.mode === "cards" ? this.pairs.seenOpen : suggestedOf(this.targets());
    const stays = (item) => this.mode === "cards" && this.pairs.stays.has(item.sample);
    if (targets.length) this.record(targets, (item) => this.towards(item, stays(item) ? item.given : item.suggested));
  }

  // What a person saw on the page of the grid, apart from the selected tiles; undo takes it back as one.
  acceptPage() {
    if (this.mode === "grid") this.record(this.ofPage, (item) => this.towards(item, item.suggested));
  }

  get ofPage() {
    return this.items.filter((item, i) => !item.decision && !this.chosen.has(i) && item.suggested >= 0 && item.isSuspect);
  }

  // Naming the class that the sample already has is keeping it.
  towards(item, label) {
    return label === item.given ? { decision: "keep" } : { decision: "relabel", label };
  }

  label(label) {
    this.record(this.targets(), (item) => this.towards(item, label));
  }

  verdict(decision, labels = null) {
    const targets = this.mode === "cards" ? this.pairs.seenOpen : this.targets();
    this.record(targets, () => ({ decision, labels }));
  }

  async record(targets, choose) {
    // While a page turns, the card that still shows is one that was decided already.
    const isAnother = this.turning || performance.now() - this.refusedAt < STARTLED_MS;
    if (!targets.length || (this.mode === "card" && isAnother)) return;
    if (this.mode === "cards" && (this.pairs.isNew || this.pairs.showUnseen())) return;
    this.notice.hush();
    // Tiles that are decided together are one action, which undo takes back together.
    const batch = targets.length > 1 ? crypto.getRandomValues(new Uint32Array(4)).join("-") : null;
    const note = this.mode === "card" && this.frame ? this.frame.note.value.trim() : "";
    this.said.push(this.inWords(targets, choose));
    const sent = targets.map((item) => this.sendOne(item, choose(item), { batch, note }));
    this.chosen.clear();
    if (this.mode === "cards") this.settled(targets.length, this.countsOf(targets, choose));
    else if (this.mode === "card") this.moveTo(this.nextOpen());
    else {
      this.items.forEach((_, i) => this.drawTile(i));
      if (targets.length === 1 && this.cursor + 1 < this.items.length) this.moveTo(this.cursor + 1);
      else this.drawActions();
    }
    await Promise.all(sent);
    this.refreshStats();
  }

  // ``keep shirt on sample 330``, ``6 changed to t-shirt, 1 kept``.
  inWords(targets, choose) {
    const [first] = targets;
    if (targets.length > 1) return this.countsOf(targets, choose);
    const { decision, label } = choose(first);
    const said = { keep: `keep ${this.className(first.given)}`, relabel: `change to ${this.className(label)}` };
    return `${said[decision] || this.data.decisions[decision].words} on sample ${first.sample}`;
  }

  countsOf(targets, choose) {
    const counts = new Map();
    for (const item of targets) {
      const { decision, label } = choose(item);
      const said = decision === "relabel" ? `changed to ${this.className(label)}` : this.data.decisions[decision].words;
      counts.set(said, 1 + (counts.get(said) || 0));
    }
    return [...counts].map(([said, number]) => `${number} ${said}`).join(", ");
  }

  get undoes() {
    return this.said[this.said.length - 1];
  }

  // One card, one action: undo takes it back as a whole.
  settled(number, said) {
    const key = isNarrow(this.bench) ? "" : this.keymap.shown("undo"); // a phone has a button and no keys
    const says = `${said}${key ? `; ${key} takes ${number === 1 ? "it" : "them"} back` : ""}.`;
    this.pairs.next().then((isSo) => isSo && this.tell(says, "good"));
  }

  async sendOne(item, choice, more) {
    const before = { decision: item.decision, label: item.label, labels: item.labels, reviewer: item.reviewer };
    const { dataset } = this.data.connection;
    const saving = {}; // this verdict, should the same sample be decided again before it is saved
    Object.assign(item, { label: null, labels: null }, choice, { reviewer: this.data.reviewer, saving });
    this.recent.set(item.sample, item);
    this.pairs.passed.delete(item.sample);
    try {
      const result = await this.outbox.send({
        dataset, audit: this.data.audit, sample: item.sample,
        reviewer: this.data.reviewer, seen: item.review ?? null, decision: item.decision,
        label: item.label, labels: item.labels, ruling: Boolean(this.data.queue.disputed), ...more,
      });
      item.review = result.review;
      this.written.add(result.review);
      // Two quick verdicts on one sample: the second replaces one that was not seen either, but is no surprise.
      if (result.conflict && !this.written.has(result.conflict.review)) this.tellConflict(item, choice, result.conflict);
    } catch (error) {
      if (item.saving === saving) {
        Object.assign(item, before);
        this.recent.delete(item.sample);
      }
      this.tell(`Sample ${item.sample} is not decided: ${error.message}`, "bad");
      if (dataset === this.data.connection.dataset) this.comeBack(item);
    }
    if (item.saving === saving) item.saving = null;
    if (this.items.includes(item)) this.drawTile(this.items.indexOf(item));
    this.tellMap();
  }

  tellConflict(item, choice, theirs) {
    const where = theirs.reviewer === this.data.reviewer ? "in another window of yours" : "while it was in view here";
    const told = `Sample ${item.sample} was decided (${this.verdictText(theirs)}) ${where}.`;
    this.tell(`${told} Your verdict here (${this.verdictText(choice)}) counts; both are in the log.`, "warn");
  }

  // To the first sample whose verdict was refused; in the grid its tile says so.
  comeBack(item) {
    this.refusals += 1;
    this.refusedAt = performance.now();
    if (this.mode !== "card") return;
    if (!this.items.includes(item)) this.items.splice(this.cursor, 0, item);
    this.cursor = Math.min(this.cursor, this.items.indexOf(item));
    this.draw();
  }

  undo() {
    undoOnce(this);
  }

  async takeBack() {
    const { refusals } = this;
    await this.turning;
    await this.outbox.drained();
    if (refusals !== this.refusals) return; // the newest verdict was refused, so nothing of it is to be undone
    let answer;
    try {
      answer = await this.server.post("undo", { audit: this.data.audit, reviewer: this.data.reviewer });
    } catch (error) {
      this.tell(error.message, "bad");
      return;
    }
    if (!answer.items.length) {
      this.tell("You have no decision to undo.");
      return;
    }
    const [first] = answer.items;
    this.said.pop();
    for (const item of answer.items) this.recent.delete(item.sample);
    const isCard = this.mode === "cards";
    if (!isCard || !this.pairs.bringBack(answer.items)) {
      if (isCard && answer.items.length > 1) await this.load(null, {}); // settled before the page was opened: its card comes anew
      else {
        if (isCard) this.show("card");
        this.bringBack(answer.items);
      }
    }
    this.count();
    this.tell(
      answer.undone > 1
        ? `Undone: ${answer.undone} decisions of one step are taken back.`
        : `Undone: sample ${first.sample} is ${this.verdictText(first) || "undecided"} again.`,
    );
    this.draw();
    this.refreshStats();
  }

  // The samples of an undone action, where they were: several are seen together in the grid.
  bringBack(items) {
    const missing = [];
    for (const item of items) {
      const here = this.items.find((one) => one.sample === item.sample);
      if (here) Object.assign(here, item);
      else missing.push(item);
    }
    this.items.splice(Math.min(this.cursor, this.items.length), 0, ...missing);
    this.cursor = this.items.findIndex((one) => one.sample === items[0].sample);
    if (items.length > 1 && this.mode === "card") this.show("grid");
  }

  // -- pickers and help ------------------------------------------------------------------------------------

  help() {
    showKeys(this.layer, KEYS_OF[this.mode], this.keymap, this.data.classNames, BENCH_FIXED, () => this.draw(), saysIn(this.mode, this.data.decisions));
  }

  pickClass() {
    const number = this.targets().length;
    showPicker(this.layer, this.data.classNames, number > 1 ? `Which class are these ${number}?` : "Which class is it?", (label) => {
      hideLayer(this.layer);
      this.label(label);
    }, { likely: this.mode === "card" ? this.shownClasses : [], onNew: (name) => this.addClass(name) });
  }

  // A class that there was not yet, for the samples that the next key would decide.
  async addClass(name) {
    hideLayer(this.layer);
    const { dataset } = this.data.connection;
    const targets = this.targets();
    try {
      const { classNames } = await this.server.post("class", { dataset, name });
      this.data = { ...this.data, classNames };
      this.record(targets, (item) => this.towards(item, classNames.length - 1));
    } catch (error) {
      this.tell(error.message, "bad");
    }
  }

  pickSeveral(decision) {
    showSeveral(this.layer, this.data.classNames, (labels) => this.verdict(decision, labels));
  }

  onKey(event) {
    if (!this.data || !this.bench.isConnected || this.bench.offsetParent === null) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (this.viewer.isOpen) {
      if (this.keymap.idOf(key, event.shiftKey) === "smooth") this.toggleSmooth();
      else this.viewer.onKey(event);
      return;
    }
    if (this.lens.isOpen) return void this.lens.onKey(event);
    if (keyOfLayer(this.layer, event)) return;
    if (event.repeat && !key.startsWith("Arrow")) return;
    if (waitsFor(this.undoing || this.lens.coming, this, event)) return;
    const grid = this.mode === "grid";
    const cards = this.mode === "cards" && this.items.length > 0;
    const { classNames } = this.data;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (grid || cards) Object.assign(moves, { ArrowUp: -this.columns(), ArrowDown: this.columns() });
    if (key in moves && this.items.length) this.moveTo(this.cursor + moves[key]);
    else if (key === "?") this.help();
    else if (this.keymap.idOf(key, event.shiftKey)) this.act(this.keymap.idOf(key, event.shiftKey));
    else if (cards && key === " ") this.pairs.toggle(this.cursor);
    else if (cards && key === "Enter") this.suggestion();
    else if (key === " " && grid) this.toggleChosen(this.cursor);
    else if (key === "Enter" && this.items.every((item) => item.decision)) this.turn(1);
    else if (key === "Enter" && grid) this.open(this.cursor);
    else if (!this.keymap.isOff && !cards && classOfDigit(classNames, key) >= 0) this.label(classOfDigit(classNames, key));
    else return;
    event.preventDefault();
  }

  act(id) {
    const cards = this.mode === "cards" && this.items.length > 0;
    const actions = {
      class: () => this.pickClass(), undo: () => this.undo(), page: () => this.acceptPage(), later: () => cards && this.pairs.next(), large: () => this.enlarge(),
      smooth: () => this.toggleSmooth(), lens: () => this.compare(), alike: () => this.showAlike(),
      engines: () => this.frame && this.mode === "card" && this.frame.toggleEngines(),
      grid: () => this.items.length && this.go(this.mode === "grid" ? "card" : "grid"),
      cards: () => hasCards(this.data) && this.go(this.mode === "cards" ? "card" : "cards"),
      invert: () => this.mode === "cards" && this.pairs.invert(),
    };
    const isForOne = this.mode === "cards" && id in this.data.decisions && !["keep", "relabel"].includes(id);
    if (!isForOne) (actions[id] || decideBy(this, id))();
  }
}

export default mount(Bench);
