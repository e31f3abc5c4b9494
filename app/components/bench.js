// The review bench: a grid to sweep and one evidence card at a time, both driven by single keys.
// The next sample shows at once; the outbox keeps each verdict until it is in the database, and one that the server
// refuses brings its sample back. The next page waits until everything is saved.

const MODE_KEPT = "auditor-mode";

class Bench {
  constructor(root) {
    this.root = root;
    this.items = [];
    this.cursor = 0;
    this.chosen = new Set();
    this.cards = new Map();
    this.pages = [null];
    this.mode = "card";
    this.total = null;
    this.loads = 0;
    this.refusals = 0;
    this.written = new Set(); // numbers of the verdicts that this window gave
    this.recent = new Map(); // by sample: items with a verdict that the next page of the queue may not know
    this.refusedAt = -STARTLED_MS;
    this.shell();
  }

  shell() {
    this.live = el("div", { class: "sr-only", "aria-live": "polite", "data-testid": "live" });
    this.stats = el("div", { class: "stats", "data-testid": "stats" });
    this.notice = new Notice();
    this.stage = el("div", { class: "stage" });
    this.turner = el("div", { class: "turner" });
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Verdict" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.viewer = new Viewer(() => this.server);
    this.bench = el("div", { class: "bench", "data-testid": "bench" }, [
      el("div", { class: "top" }, [this.stats, this.turner]), this.notice.node, this.stage, this.actions, this.layer, this.live,
      this.viewer.node,
    ]);
    this.root.append(this.bench);
  }

  update(data) {
    const whose = JSON.stringify([data.connection.dataset, data.audit]);
    const queue = JSON.stringify([data.queue, whose]);
    const isNew = queue !== this.queue;
    this.data = data;
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
    this.frame = null;
    this.recent.clear();
    this.stage.replaceChildren();
  }

  restart() {
    this.pages = [null];
    this.total = null;
    this.cards.clear();
    this.chosen.clear();
    this.load(null, {});
    this.refreshStats();
  }

  async load(after, { last = false, keep = false }) {
    this.bench.setAttribute("data-state", "loading");
    const load = ++this.loads;
    for (const item of this.recent.values()) if (!item.saving) this.recent.delete(item.sample);
    const isOvertaken = () => load !== this.loads; // the filters were changed meanwhile, or the page was turned again
    try {
      const page = await this.server.post("queue", {
        audit: this.data.audit, where: this.data.queue, after, limit: this.data.pageSize,
      });
      if (isOvertaken()) return;
      const at = keep ? this.items[this.cursor]?.sample : null;
      this.items = page.items.map((item) => this.recent.get(item.sample) || item);
      this.cards.clear();
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
      if (!error.final) setTimeout(() => isOvertaken() || this.load(after, { last, keep }), 1500);
    }
    this.bench.setAttribute("data-state", "ready");
  }

  // Apart from the page, which does not wait for it: counting a million rows takes a moment.
  async count() {
    const queue = this.queue;
    try {
      const { total } = await this.server.post("queue-size", { audit: this.data.audit, where: this.data.queue });
      if (queue !== this.queue) return; // the filters were changed meanwhile
      this.total = total;
      this.turner.replaceChildren(pageTurner(this));
    } catch (error) {
      if (error.final) this.tell(error.message, "bad");
    }
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
    if (!this.items.length) this.drawEmpty();
    else if (this.mode === "grid") this.drawGrid();
    else this.drawCard();
    this.drawActions();
  }

  drawEmpty() {
    const first = this.pages.length === 1;
    const text = first ? "This queue is empty." : "That was the last page of this queue.";
    const back = el("button", { class: "plain", text: "Back to the first page", onclick: () => this.restart() });
    const hint = first ? "Change the filters above to see other samples, or go to Export." : "";
    this.stage.replaceChildren(
      el("div", { class: "empty", "data-testid": "empty" }, [
        el("strong", { text }), el("p", { text: hint }), first ? null : back,
      ]),
    );
  }

  drawGrid() {
    this.tiles = this.items.map((item, i) => {
      const image = el("img", { src: this.server.image(item.sample, 128), alt: "", loading: "lazy", draggable: "false" });
      const tile = el("button", { class: "tile", "data-testid": "tile", "data-sample": item.sample, tabindex: "-1" }, [
        image, el("span", { class: "badge" }),
        el("span", { class: "labels" }, [
          el("span", { class: "given", text: this.className(item.given), title: this.className(item.given) }),
          el("span", { class: "arrow", text: "→" }),
          el("span", { class: "suggested", text: this.className(item.suggested), title: this.className(item.suggested) }),
        ]),
        el("span", { class: "odds", text: item.oddsShort, title: item.odds }),
      ]);
      tile.addEventListener("click", (event) => this.clickTile(i, event));
      tile.addEventListener("dblclick", () => this.open(i));
      return tile;
    });
    this.stage.replaceChildren(el("div", { class: "grid", role: "list", "aria-label": "Suspects" }, this.tiles));
    this.items.forEach((_, i) => this.drawTile(i));
  }

  drawTile(i) {
    if (this.mode !== "grid" || !this.tiles) return;
    const item = this.items[i];
    const tile = this.tiles[i];
    tile.setAttribute("data-decision", item.decision || "");
    tile.classList.toggle("cursor", i === this.cursor);
    tile.classList.toggle("chosen", this.chosen.has(i));
    tile.classList.toggle("saving", Boolean(item.saving));
    tile.querySelector(".badge").textContent = this.verdictText(item);
    const spoken = `${this.className(item.given)}, suggested ${this.className(item.suggested)}`;
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
    this.stage.replaceChildren(frame.node);
    this.bench.setAttribute("data-sample", item.sample);
    this.live.textContent = `Sample ${item.sample}: given ${this.className(item.given)}`;
    try {
      const story = await this.card(item.sample);
      if (this.item === item && this.mode === "card") frame.fill(story);
    } catch (error) {
      if (this.item === item && this.mode === "card") this.cardFailed(item, error);
    }
    for (const next of this.items.slice(this.cursor + 1, this.cursor + 4)) {
      this.card(next.sample).catch(() => {});
      new Image().src = this.server.image(next.sample, 640);
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

  drawActions() {
    this.actions.replaceChildren(...verdictButtons(this));
    this.turner.replaceChildren(pageTurner(this));
  }

  place() {
    const decided = this.items.filter((item) => item.decision).length;
    const at = `${Math.min(this.cursor + 1, this.items.length)} of ${this.items.length}`;
    const total = this.total === null ? "" : ` · ${this.total.toLocaleString("en")} in this queue`;
    return `Page ${this.pages.length}: ${at} · ${decided} decided${total}`;
  }

  tell(text, tone = "info") {
    this.notice.tell(text, tone);
  }

  showWaiting(count, error) {
    if (!count) {
      if (this.wasWaiting) this.tell("The server answers again; every verdict is saved.", "good");
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
        const progress = await this.server.post("progress", { audit: this.data.audit, where: this.data.queue });
        if (queue === this.queue) drawFigures(this.stats, progress);
      } catch (error) {
        if (error.final) this.tell(error.message, "bad");
      }
    }, 150);
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

  caption(sample, given) {
    return `Sample ${sample} · given ${this.className(given)}`;
  }

  toggleMode() {
    this.show(this.mode === "grid" ? "card" : "grid");
    this.chosen.clear();
    this.draw();
  }

  clickTile(i, event) {
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
  }

  moveTo(i) {
    if (i < 0 || i >= this.items.length) return this.turn(i < 0 ? -1 : 1);
    const before = this.cursor;
    this.cursor = i;
    if (this.mode === "grid") {
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
    if (step > 0) this.pages.push(this.items[this.items.length - 1].rank);
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
    if (this.mode === "grid" && this.chosen.size) return [...this.chosen].map((i) => this.items[i]);
    return this.item ? [this.item] : [];
  }

  suggestion() {
    const targets = this.targets();
    if (targets.length) this.record(targets, (item) => this.towards(item, item.suggested));
  }

  // Naming the class that the sample already has is keeping it.
  towards(item, label) {
    return label === item.given ? { decision: "keep" } : { decision: "relabel", label };
  }

  label(label) {
    this.record(this.targets(), (item) => this.towards(item, label));
  }

  verdict(decision, labels = null) {
    this.record(this.targets(), () => ({ decision, labels }));
  }

  async record(targets, choose) {
    // While a page turns, the card that still shows is one that was decided already.
    const isAnother = this.turning || performance.now() - this.refusedAt < STARTLED_MS;
    if (!targets.length || (this.mode === "card" && isAnother)) return;
    this.notice.hush();
    const sent = targets.map((item) => this.sendOne(item, choose(item)));
    this.chosen.clear();
    if (this.mode === "card") this.moveTo(this.cursor + 1);
    else {
      this.items.forEach((_, i) => this.drawTile(i));
      if (targets.length === 1 && this.cursor + 1 < this.items.length) this.moveTo(this.cursor + 1);
      else this.drawActions();
    }
    await Promise.all(sent);
    this.refreshStats();
  }

  async sendOne(item, choice) {
    const before = { decision: item.decision, label: item.label, labels: item.labels, reviewer: item.reviewer };
    const { dataset } = this.data.connection;
    const saving = {}; // this verdict, should the same sample be decided again before it is saved
    Object.assign(item, { label: null, labels: null }, choice, { reviewer: this.data.reviewer, saving });
    this.recent.set(item.sample, item);
    try {
      const result = await this.outbox.send({
        dataset, audit: this.data.audit, sample: item.sample,
        reviewer: this.data.reviewer, seen: item.review ?? null, decision: item.decision,
        label: item.label, labels: item.labels,
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
  }

  tellConflict(item, choice, theirs) {
    const where = theirs.reviewer === this.data.reviewer ? "in another window of yours" : "while you were looking";
    const told = `Sample ${item.sample} was decided (${this.verdictText(theirs)}) ${where}.`;
    this.tell(`${told} Your verdict here (${this.verdictText(choice)}) counts; both are in the log.`, "warn");
  }

  // To the first sample whose verdict was refused; in the grid its tile says so.
  comeBack(item) {
    this.refusals += 1;
    this.refusedAt = performance.now();
    if (this.mode === "grid") return;
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
    if (!answer.item) {
      this.tell("You have no decision to undo.");
      return;
    }
    this.recent.delete(answer.item.sample);
    const at = this.items.findIndex((item) => item.sample === answer.item.sample);
    if (at >= 0) {
      Object.assign(this.items[at], answer.item);
      this.cursor = at;
    } else this.items.splice(this.cursor, 0, answer.item);
    this.tell(`Undone: sample ${answer.item.sample} is ${this.verdictText(answer.item) || "undecided"} again.`);
    this.draw();
    this.refreshStats();
  }

  // -- pickers and help ------------------------------------------------------------------------------------

  help() {
    showKeys(this.layer, benchHelp(this.data.decisions));
  }

  pickClass() {
    showPicker(this.layer, this.data.classNames, "Which class is it?", (label) => {
      hideLayer(this.layer);
      this.label(label);
    });
  }

  pickSeveral(decision) {
    showSeveral(this.layer, this.data.classNames, (labels) => this.verdict(decision, labels));
  }

  onKey(event) {
    if (!this.data || !this.bench.isConnected || this.bench.offsetParent === null) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (this.viewer.isOpen) {
      this.viewer.onKey(event);
      return;
    }
    if (!this.layer.hidden) {
      if (key === "Escape" || this.layer.anyKeyCloses) hideLayer(this.layer);
      return;
    }
    if (event.repeat && !key.startsWith("Arrow")) return;
    if (waitsForUndo(this, event)) return;
    const grid = this.mode === "grid";
    const shown = this.shownClasses || [];
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (grid) Object.assign(moves, { ArrowUp: -this.columns(), ArrowDown: this.columns() });
    if (key in moves && this.items.length) this.moveTo(this.cursor + moves[key]);
    else if (decisionOfKey(this.data.decisions, key)) decideBy(this, decisionOfKey(this.data.decisions, key))();
    else if (key === "l") this.pickClass();
    else if (key === "z") this.undo();
    else if (key === "v") this.enlarge();
    else if (key === "g") this.toggleMode();
    else if (key === "?") this.help();
    else if (key === " " && grid) this.toggleChosen(this.cursor);
    else if (key === "Enter" && this.items.every((item) => item.decision)) this.turn(1);
    else if (key === "Enter" && grid) this.open(this.cursor);
    else if (/^[1-9]$/.test(key)) this.number(Number(key), shown);
    else return;
    event.preventDefault();
  }

  async number(place, shown) {
    if (this.mode === "card") {
      if (shown[place - 1] !== undefined) this.label(shown[place - 1]);
      return;
    }
    const targets = this.targets();
    const stories = await Promise.all(targets.map((item) => this.card(item.sample)));
    const labels = new Map(targets.map((item, i) => [item, stories[i].classes[place - 1]?.label]));
    this.record(targets.filter((item) => labels.get(item) !== undefined), (item) => this.towards(item, labels.get(item)));
  }
}

export default mount(Bench);
