// Review of masks: the photo, and over it what a key asks for. Each doubtful region comes into view by itself and is
// taken or left; behind the last one the mask is decided.

const MASK_ACTIONS = [
  { id: "class", key: "l", text: "neither: the class of this region by its number, or a part of its name" },
  { id: "all", key: "a", text: "change this region and all that follow" },
  { id: "rest", key: "k", text: "keep this region and all that follow" },
  { id: "light", key: "h", text: "light on the region alone, or on the whole picture" },
  { id: "given", key: "g", text: "show or hide the given classes in their colours" },
  { id: "suggested", key: "s", text: "show or hide the suggested classes in their colours" },
  { id: "doubt", key: "d", text: "show or hide doubt, in red" },
  { id: "undo", key: "z", text: "undo: the region before, or your last mask" },
];
const MASK_FIXED = [["← →", "the mask before, the next one"], ["1 – 9", "bring the region with that number into view"], ["?", "this list"]];
const MOST_ALIKE = 60; // pictures of one change in the list of what was checked
const REGIONS_KEPT = "auditor-regions"; // what was said of regions of a mask that is not decided yet
const MASK_LAYERS = ["given", "suggested", "doubt"];
const CLOSE = 3; // sides of a region's box that its close-up shows
const LEAST_CLOSE = 24; // and pixels, at least
const ROOM = 0.08; // of the picture's height, for the words above a region

class MaskBench {
  constructor(root) {
    this.shown = { given: false, suggested: false, doubt: false };
    this.isLit = true; // the region in view alone
    this.notice = new Notice();
    this.stage = el("div", { class: "stage" });
    this.layer = el("div", { class: "layer", hidden: true });
    this.live = el("div", { class: "sr-only", "aria-live": "polite" });
    this.actions = el("div", { class: "actions", role: "toolbar", "aria-label": "Verdict" });
    this.box = el("div", { class: "bench masks", "data-testid": "masks" }, [
      this.stage, el("div", { class: "dock" }, [this.notice.node, this.actions]), this.layer, this.live,
    ]);
    root.append(this.box);
    watchWidth(this.box, () => this.card && this.draw());
  }

  update(data) {
    const whose = JSON.stringify([data.audit, data.connection.dataset, data.first]);
    const isNew = whose !== this.whose;
    [this.whose, this.data] = [whose, data];
    this.keymap ||= new Keymap([
      ...Object.entries(data.decisions).map(([id, { key, help }]) => ({ id, key, text: help })), ...MASK_ACTIONS,
    ]);
    if (this.server) this.server.connection = data.connection;
    else this.server = new Server(data.connection);
    const isTurned = this.isDone !== data.isDone;
    this.isDone = data.isDone;
    if (!isNew && !isTurned) return;
    const wanted = data.items.findIndex((item) => item.sample === (this.wanted ?? (isNew ? data.first : null)));
    const open = data.items.findIndex((item) => !item.decision);
    this.wanted = null;
    this.at = wanted >= 0 ? wanted : open >= 0 ? open : data.items.length; // the last is the end
    if (this.item && !this.isDone) this.drawComing();
    // Keys that are pressed before the first mask and its pictures are here are meant for it: ``coming`` is there that long.
    this.coming = this.open().then(() => this.pictured()).finally(() => {
      this.coming = null;
    });
  }

  get item() {
    return this.data.items[this.at];
  }

  layerOf(sample, name) {
    const { base, token, version } = this.data.connection;
    return `${base}/bench/mask/${this.data.audit}/${sample}/${name}.png?v=${version}&t=${token}`;
  }

  pictured() {
    const pictures = [...this.stage.querySelectorAll(".under-layers, .close-up img")];
    return Promise.all(pictures.map((one) => one.decode().catch(() => null)));
  }

  // The room of the mask that is on its way, and its buttons where they will be.
  drawComing() {
    const [width, height] = this.data.shape;
    const room = el("div", { class: "layers coming", style: `--shape:${width} / ${height}`, role: "status" }, [el("span", { text: "Loading …" })]);
    const lines = [["small", ""], ["div", "mask-head"], ["p", "chance"]].map(([tag, name]) => el(tag, { class: name, text: "\u00a0" }));
    this.stage.replaceChildren(el("div", { class: "judge" }, [el("div", {}, [el("div", { class: "pane" }, [room])]), el("div", { class: "question" }, lines)]));
    const soon = (id, text, tone) => actionButton(this.keymap.shown(id), text, null, `${tone} large`, { disabled: true });
    const { keep, relabel } = this.data.decisions;
    this.actions.replaceChildren(...toolbar(
      this.box, [soon("keep", keep.button, "keep"), soon("relabel", relabel.button, "relabel"), soon("class", "Neither", "")],
      [], [this.turner()], undoButton(this.box, this.keymap, () => this.undo()), () => this.help(),
    ));
  }

  async open() {
    const { item } = this;
    this.card = null;
    if (!item || this.isDone) return void this.drawEnd();
    try {
      const card = await this.server.post("mask-card", { audit: this.data.audit, sample: item.sample });
      if (item !== this.item || this.isDone) return;
      this.card = card;
      item.decision = card.decision;
      // By number of a region the class that it changes to; null where it is kept.
      const { taken } = card;
      this.said = new Map(taken ? card.regions.map(({ number, suggested }) => [number, number in taken ? taken[number] ?? suggested : null]) : item.decision ? [] : this.keptRegions(item));
      const open = card.regions.find(({ number }) => !this.said.has(number));
      this.region = card.regions.find(({ number }) => number === this.wantedRegion) || (item.decision ? null : open) || card.regions[0];
      this.wantedRegion = null;
      this.draw();
    } catch (error) {
      this.stage.querySelector(".coming")?.replaceChildren();
      this.notice.tell(error.message, "bad");
    }
  }

  // What was decided, each with its picture, by the change that it is: behind the last suspect, and whenever it is asked for.
  async drawEnd() {
    this.card = null;
    const { items, decisions, next } = this.data;
    const done = items.filter(({ decision }) => decision);
    const of = (name) => items.filter(({ decision }) => decision === name);
    const counts = Object.keys(decisions).filter((name) => of(name).length).sort((one, other) => of(other).length - of(one).length);
    const all = items.length > 1 ? `All ${items.length} suspect masks are checked` : "The one suspect mask is checked";
    const said = !items.length ? "No mask is a suspect" : !done.length ? "Nobody has checked a mask yet" : done.length === items.length ? all : `${done.length} of ${items.length} suspect masks are checked`;
    this.actions.replaceChildren(...(items.length && !this.isDone ? [actionButton("←", "Back", () => this.go(-1)), actionButton(this.keymap.shown("undo"), "Undo", () => this.undo())] : []));
    this.live.textContent = said;
    const { regions } = done.length ? await this.server.post("mask-done", { audit: this.data.audit }) : { regions: [] };
    if (this.card) return; // gone back meanwhile
    const pairs = new Map();
    for (const one of regions) {
      const pair = `${one.given}-${one.becomes}`;
      pairs.set(pair, [...(pairs.get(pair) || []), one]);
    }
    const number = regions.length ? ` (${regions.length.toLocaleString("en")} region${regions.length === 1 ? "" : "s"})` : "";
    const masks = counts.map((name) => `${of(name).length} ${this.wordsOf(name)}${name === "relabel" ? number : ""}`).join(", ");
    const changes = [...pairs.values()].sort((one, other) => other.length - one.length).map((alike) =>
      this.group("region", [this.named(alike[0].given, "given"), el("span", { text: " → " }), this.named(alike[0].becomes, "suggested")],
        alike.map(({ sample, number }) => [sample, number, this.layerOf(sample, `close-${number}`), `Sample ${sample}, region ${number}`])));
    const others = counts.filter((name) => name !== "relabel").map((name) =>
      this.group("mask", [el("span", { text: this.wordsOf(name) })], of(name).map(({ sample }) => [sample, null, this.server.image(sample, 192), `Sample ${sample}`])));
    const go = (id) => () => this.component.setTriggerValue("next", id);
    const isOver = done.length === items.length;
    this.stage.replaceChildren(el("div", { class: "masks-end", "data-testid": "masks-end" }, [
      el("div", { class: "finished" }, [
        el("p", { class: "mask-head", text: masks ? `${said}: ${masks}.` : `${said}.` }),
        ...(isOver ? next.map(({ id, text }, at) => el("button", { class: `action ${at ? "" : "primary"}`, text, onclick: go(id) })) : []),
      ]),
      el("div", { class: "all-changes" }, [...changes, ...others]),
    ]));
  }

  wordsOf(decision) {
    return decision === "relabel" ? "changed" : this.data.decisions[decision]?.words || decision;
  }

  // Pictures of what was decided alike; one that was a mistake is a press away.
  group(noun, head, pictures) {
    const shown = pictures.slice(0, MOST_ALIKE).map(([sample, number, src, text]) =>
      el("button", { class: "zoom", title: text, "aria-label": text, onclick: () => this.comeBack(sample, number) }, [el("img", { src, alt: "", loading: "lazy" })]));
    const more = pictures.length - shown.length;
    return el("div", { class: "changes" }, [
      el("div", {}, [el("b", { text: `${pictures.length.toLocaleString("en")} ${noun}${pictures.length === 1 ? "" : "s"} ` }), ...head]),
      el("div", { class: "row" }, [...shown, more ? el("small", { text: `and ${more.toLocaleString("en")} more` }) : null]),
    ]);
  }

  // ``number``: of the region to show, null: the first.
  comeBack(sample, number) {
    this.wantedRegion = number;
    if (this.isDone) {
      this.wanted = sample;
      this.component.setTriggerValue("next", "Suspects");
      return;
    }
    this.at = this.data.items.findIndex((item) => item.sample === sample);
    this.open();
  }

  draw() {
    const { item, card } = this;
    const names = this.data.classNames;
    // Every key draws it anew: decoded at once, the photo does not vanish meanwhile.
    const picture = el("img", { class: "under-layers", decoding: "sync", src: this.server.image(item.sample, 1024), alt: `Sample ${item.sample}`, "data-testid": "picture", style: `filter:brightness(${card.light})` });
    const layers = MASK_LAYERS.map((name) =>
      el("img", { class: `over ${name}`, src: this.layerOf(item.sample, name), alt: "", hidden: !this.shown[name], loading: this.shown[name] ? null : "lazy", "data-layer": name }));
    if (this.region && this.isLit) layers.unshift(el("img", { class: "over light", src: this.light(this.region), alt: "", decoding: "sync" }));
    const isInView = (one) => one === this.region;
    const pair = (one) => [this.named(one.given, "given"), el("span", { text: " → " }), this.named(one.suggested, "suggested")];
    const stands = ({ number, suggested }) => {
      const label = this.said.get(number);
      return label === undefined ? "" : label === null ? "kept" : label === suggested ? "changed" : names[label];
    };
    // Where one region is in the light the others are found by their rows.
    const boxes = card.regions.filter((one) => isInView(one) || !this.isLit).map((one) => {
      const { number, box: [x1, y1, x2, y2], given, suggested } = one;
      return el("button", {
        class: `region ${this.said.has(one.number) ? "said" : ""} ${isInView(one) ? "in-view" : ""} ${this.isLit ? "lit" : ""} ${y1 < ROOM ? "high" : ""} ${x1 > 0.5 ? "far" : ""}`,
        style: `left:${100 * x1}%;top:${100 * y1}%;width:${100 * (x2 - x1)}%;height:${100 * (y2 - y1)}%`,
        title: `${names[given]} → ${names[suggested]}`, "aria-label": `${names[given]} → ${names[suggested]}`,
        tabindex: "-1", // its row beside the picture takes the focus
        onclick: () => this.look(number),
      }, isInView(one) ? [el("span", {}, pair(one))] : []);
    });
    const rows = card.regions.map((one, at) =>
      el("button", { class: "region-row", "data-region": one.number, "aria-current": isInView(one) ? "true" : null, onclick: () => this.look(one.number) }, [
        el("kbd", { text: String(at + 1) }),
        el("span", { class: "pair", title: `${percent(one.doubt)} likely wrong, ${percent(one.share)} of the picture` }, pair(one)),
        el("span", { class: "stands", text: stands(one) || percent(one.doubt) }),
      ]));
    // Colours of classes are explained while they lie over the photo, and are nowhere else.
    const there = [...new Set([...card.classes, ...card.regions.map(({ suggested }) => suggested)])];
    const legend = this.shown.given || this.shown.suggested ? el("ul", { class: "legend", "aria-label": "Classes of this mask" }, there.map((label) => el("li", {}, this.coloured(label)))) : null;
    const button = (id, text, action, tone = "") => actionButton(this.keymap.shown(id), text, action, tone, { title: text });
    const of = card.regions.length;
    const texts = of ? { relabel: `Change to ${names[this.region.suggested]}`, keep: `Keep ${names[this.region.given]}` } : {};
    const decided = Object.entries(this.data.decisions).filter(([name]) => of || name !== "relabel");
    const isLarge = ([name]) => ["keep", "relabel"].includes(name);
    const verdict = ([name, { button: text }]) => button(name, texts[name] || text, () => this.decide(name), isLarge([name]) ? `${name} large` : name);
    const rest = of > 1 ? [button("all", "Change all the rest", () => this.rest(true)), button("rest", "Keep all the rest", () => this.rest(false))] : [];
    const whole = of ? [button("light", this.isLit ? "Whole picture" : "Only this region", () => this.show("light"))] : [];
    const toggle = (name) => actionButton(this.keymap.shown(name), name[0].toUpperCase() + name.slice(1), () => this.show(name), `layer-${name}`, { "aria-pressed": String(this.shown[name]), title: MASK_ACTIONS.find(({ id }) => id === name).text });
    const layersOf = [...whole, ...MASK_LAYERS.map(toggle)];
    const neither = of ? [button("class", "Neither", () => this.pickClass(), "large")] : [];
    const others = [...decided.filter((one) => !isLarge(one)).map(verdict), ...rest];
    const narrow = isNarrow(this.box);
    const count = this.data.items.filter(({ decision }) => decision).length;
    const standing = item.decision ? `${this.wordsOf(item.decision)} by ${card.reviewer || this.data.reviewer}` : "";
    const over = el("div", { class: "layers", style: `--shape:${card.width} / ${card.height}` }, [picture, ...layers, ...boxes]);
    this.stage.replaceChildren(el("div", { class: "judge", "data-testid": "mask", "data-sample": item.sample, "data-decision": item.decision || "" }, [
      el("div", {}, [el("div", { class: "pane" }, [over]), narrow ? legend : el("div", { class: "row" }, [...layersOf, legend])]),
      el("div", { class: "question" }, [
        el("small", { text: [of > 1 ? `Region ${card.regions.indexOf(this.region) + 1} of ${of}` : "", `${this.data.items.length - count} of ${this.data.items.length} masks left`, this.region && Math.max(card.light, this.region.light) > 1 ? "shown brighter" : ""].filter(Boolean).join(" · "), title: `Sample ${item.sample} · ${item.filepath}` }),
        el("div", { class: "mask-head" }, of ? this.asked(names) : "No suspect region"),
        standing ? el("div", { class: "standing", text: standing }) : null,
        this.region ? el("p", { class: "chance", title: this.region.why, text: `${percent(this.region.doubt)} likely wrong` }) : null,
        this.region ? this.closeUp(this.region) : null,
        of > 1 ? el("div", { class: "region-list" }, rows) : null,
      ]),
    ]));
    this.actions.replaceChildren(...toolbar(
      this.box, [...decided.filter(isLarge).map(verdict), ...neither],
      narrow ? [...others, ...layersOf] : [menu("More", others)],
      [this.turner()], undoButton(this.box, this.keymap, () => this.undo()), () => this.help(),
    ));
    // The list alone scrolls, never the page.
    const list = this.stage.querySelector(".region-list");
    const current = list?.querySelector("[aria-current]");
    if (current) list.scrollTop = current.offsetTop - list.offsetTop - (list.clientHeight - current.clientHeight) / 2;
    this.live.textContent = `${item.filepath}, region ${card.regions.indexOf(this.region) + 1} of ${of}`;
    const next = this.data.items[this.at + 1];
    const ahead = MASK_LAYERS.filter((name) => this.shown[name]).map((name) => this.layerOf(next?.sample, name));
    const at = card.regions.indexOf(this.region);
    for (const one of card.regions.slice(at + 1, at + 4)) new Image().src = this.light(one);
    if (next) for (const src of [this.server.image(next.sample, 1024), ...ahead]) new Image().src = src;
  }

  turner() {
    const turn = (text, name, step) => el("button", { class: "plain", text, "aria-label": name, onclick: () => this.go(step) });
    return el("span", { class: "turn" }, [turn("‹", "The mask before", -1), el("span", { text: `${this.at + 1} of ${this.data.items.length}` }), turn("›", "The next mask", 1)]);
  }

  asked(names) {
    const { given, suggested } = this.region;
    return [el("span", { text: "Is this " }), this.named(given, "given"), el("span", { text: " or " }), this.named(suggested, "suggested"), el("span", { text: "?" })];
  }

  named(label, kind) {
    return el("span", { class: kind, text: this.data.classNames[label] });
  }

  // A class beside its colour in the mask.
  coloured(label) {
    return el("span", { class: "of-class", style: `--colour:${this.data.colours[label]}`, text: this.data.classNames[label] });
  }

  pickClass() {
    if (!this.region || this.isSending) return;
    const { given, number } = this.region;
    showPicker(this.layer, this.data.classNames, "Which class is this region?", (label) => {
      hideLayer(this.layer);
      if (this.region?.number === number) this.say(label === given ? null : label);
    }, { isNumbered: true, colours: this.data.colours });
  }

  // A region close up; what lies over the photo is of its shape.
  closeUp(region) {
    const { box: [x1, y1, x2, y2], light } = region;
    const { width, height, sample } = this.card;
    const side = Math.min(Math.max(CLOSE * Math.max((x2 - x1) * width, (y2 - y1) * height), LEAST_CLOSE), Math.max(width, height));
    const start = (from, to, length) => Math.max(0, Math.min(length - side, ((from + to) * length - side) / 2));
    const [left, top] = [start(x1, x2, width), start(y1, y2, height)];
    const [wide, tall] = [Math.min(side, width), Math.min(side, height)];
    const share = (pixels, of) => `${(100 * pixels) / of}%`;
    const style = `width:${share(width, wide)};height:${share(height, tall)};left:${share(-left, wide)};top:${share(-top, tall)}`;
    const sources = [this.server.image(sample, 1536), ...(this.isLit ? [this.light(region)] : [])];
    return el("figure", { "data-testid": "close-up" }, [
      el("span", { class: "close-up", style: `--shape:${wide} / ${tall}` }, sources.map((src, at) => el("img", { src, alt: at ? "" : "The region, close up", style: at ? style : `${style};filter:brightness(${light})`, decoding: "sync" }))),
    ]);
  }

  // What was said of regions stays in this browser until their mask is decided.
  keptAs(item) {
    return `${REGIONS_KEPT} ${this.data.connection.dataset} ${this.data.audit} ${item.sample} ${this.data.reviewer}`;
  }

  keptRegions(item) {
    try {
      return JSON.parse(localStorage.getItem(this.keptAs(item))) || [];
    } catch (error) {
      return [];
    }
  }

  keepRegions() {
    const { item, said } = this;
    if (said.size) localStorage.setItem(this.keptAs(item), JSON.stringify([...said]));
    else localStorage.removeItem(this.keptAs(item));
  }

  look(number) {
    const found = this.card?.regions.find((one) => one.number === number);
    if (!found) return;
    this.region = found;
    this.draw();
  }

  // The region in view becomes a class, or (null) is kept; the next one that nothing is said of comes, or the mask is
  // decided.
  say(label) {
    this.said.set(this.region.number, label);
    const { regions } = this.card;
    const from = regions.indexOf(this.region);
    const open = [...regions.slice(from), ...regions.slice(0, from)].find(({ number }) => !this.said.has(number));
    this.keepRegions();
    if (open) this.look(open.number);
    else this.send([...this.said.values()].some((one) => one !== null) ? "relabel" : "keep");
  }

  rest(isTaken) {
    if (!this.region || !this.card || this.isSending) return; // a key that comes late is for no region of the next mask
    for (const { number, suggested } of this.card.regions) if (!this.said.has(number)) this.said.set(number, isTaken ? suggested : null);
    this.say(isTaken ? this.region.suggested : null);
  }

  decide(decision) {
    if (!this.card || this.isSending) return;
    const isOfRegion = this.region && ["relabel", "keep"].includes(decision);
    if (isOfRegion) this.say(decision === "relabel" ? this.region.suggested : null);
    else if (decision !== "relabel") this.send(decision);
  }

  light(region) {
    return this.layerOf(this.card.sample, `region-${region.number}`);
  }

  show(name) {
    if (name === "light") this.isLit = !this.isLit;
    else this.shown[name] = !this.shown[name];
    const over = { given: "suggested", suggested: "given" }[name]; // one mask over the photo, the other in its place
    if (over && this.shown[name]) this.shown[over] = false;
    this.draw();
  }

  go(step) {
    this.at = Math.min(this.data.items.length - 1, Math.max(0, this.at + step));
    this.open();
  }

  async send(decision) {
    const { item } = this;
    this.isSending = true;
    const { dataset } = this.data.connection;
    const taken = decision === "relabel" ? [...this.said].filter(([, label]) => label !== null) : null;
    const said = taken && { labels: taken.map(([number]) => number), classes: Object.fromEntries(taken) };
    try {
      const kept = await this.server.post("mask-verdict", { dataset, audit: this.data.audit, sample: item.sample, decision, ...said, reviewer: this.data.reviewer });
      this.isSending = false; // the next mask is not decided before its card is here
      localStorage.removeItem(this.keptAs(item));
      item.decision = kept.decision;
      this.notice.tell("");
      const after = this.data.items.findIndex((other, at) => at > this.at && !other.decision);
      const open = after >= 0 ? after : this.data.items.findIndex((other) => !other.decision);
      if (open < 0) this.at = this.data.items.length; // the end
      else this.at = open;
      await this.open();
    } catch (error) {
      this.notice.tell(`Sample ${item.sample} is not decided: ${error.message}`, "bad");
    }
    this.isSending = false;
  }

  async undo() {
    if (this.isSending) return;
    const newest = !this.card || this.item?.decision ? undefined : [...(this.said || []).keys()].pop();
    if (newest !== undefined) {
      this.said.delete(newest);
      this.keepRegions();
      this.look(newest);
      this.notice.tell("Undone: this region is open again.");
      return;
    }
    try {
      const { sample } = await this.server.post("mask-undo", { audit: this.data.audit, reviewer: this.data.reviewer });
      const at = this.data.items.findIndex((item) => item.sample === sample);
      if (at < 0) this.notice.tell("You have no decision to undo here.");
      else {
        this.at = at;
        this.item.decision = null;
        await this.open();
        this.notice.tell("Undone: this mask is open again.");
      }
    } catch (error) {
      this.notice.tell(error.message, "bad");
    }
  }

  help() {
    showKeys(this.layer, "Masks", this.keymap, [], MASK_FIXED, () => this.draw());
  }

  onKey(event) {
    if (!this.data || this.box.offsetParent === null || keyOfLayer(this.layer, event) || event.repeat || waitsFor(this.coming, this, event)) return;
    const key = event.key.toLowerCase();
    const id = this.keymap.idOf(key, event.shiftKey);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const others = { undo: () => this.undo(), all: () => this.rest(true), rest: () => this.rest(false), class: () => this.pickClass() };
    if (key === "?") this.help();
    else if (this.isDone) return;
    else if (step) this.go(step);
    else if (!this.card && id !== "undo") return;
    else if (/^[1-9]$/.test(key) && !this.keymap.isOff) this.look(this.card.regions[Number(key) - 1]?.number);
    else if (MASK_LAYERS.includes(id) || id === "light") this.show(id);
    else if (id) (others[id] || (() => this.decide(id)))();
    else return;
    event.preventDefault();
  }
}

export default mount(MaskBench);
