// What is around the bench's cards: the line of figures, the toolbar, the list of keys.

// What a key does; where that depends on what is shown, by mode, and nothing where it does nothing.
const IN_CARDS = { keep: "keep all labels of the card, without those for later", relabel: "change the labels that are ticked, also Enter" };
const BENCH_ACTIONS = [
  { id: "class", key: "l", text: "another class: type a part of its name" },
  { id: "undo", key: "z", text: "undo your last action" },
  { id: "page", key: "shift+p", text: { grid: "change the page as suggested" } },
  { id: "later", key: "p", text: { cards: "this card later" } },
  { id: "large", key: "v", text: "the picture large" },
  { id: "smooth", key: "s", text: { card: "smooth picture, or its pixels", grid: "smooth pictures, or their pixels" } },
  { id: "lens", key: "b", text: "lens: beside the best of both classes; Space blinks" },
  { id: "alike", key: "o", text: "others like this, with the same given label" },
  { id: "engines", key: "d", text: { card: "what each engine says" } },
  { id: "grid", key: "g", text: { card: "grid", cards: "grid", grid: "single pictures" } },
  { id: "cards", key: "t", text: { card: "cards", grid: "cards", cards: "single pictures" } },
  { id: "invert", key: "i", text: { cards: "tick none, or all" } },
];
const KEYS_OF = { cards: "the cards", card: "a single picture", grid: "the grid" };
const BENCH_FIXED = [
  ["← →", { card: "previous, next", grid: "move, also ↑ ↓", cards: "move, also ↑ ↓" }],
  ["Space", { grid: "select a tile (Shift + click: a range)", cards: "tick this tile (✓), keep its label (stays), or leave it for later" }],
  ["Enter", { card: "the next page, once all is checked", grid: "open a tile; next page once all is checked" }],
  ["?", "this list"],
];

// The list of keys is of the mode in view: what a key of this id or name does, by its text.
function saysIn(mode, decisions) {
  return (id, text) => {
    if (mode === "cards" && id in decisions) return IN_CARDS[id];
    if (mode === "cards" && id === DIGITS) return undefined;
    return typeof text === "object" ? text[mode] : text;
  };
}

const benchKeys = (decisions) =>
  new Keymap([...Object.entries(decisions).map(([id, { key, help }]) => ({ id, key, text: help })), ...BENCH_ACTIONS]);

// What a decision's key and button do: one that names a class takes the suggestion, one that names several asks for them.
function decideBy(bench, name) {
  const { takes } = bench.data.decisions[name];
  if (takes === "class") return () => bench.suggestion();
  if (takes === "classes") return () => bench.pickSeveral(name);
  return () => bench.verdict(name);
}

// What is said of a label, on a tile: "99 % likely wrong", "5 of 7 engines".
const briefly = (odds) => odds.replace("more than ", ">").replace("less than ", "<").replace(" say otherwise", "");

const LEAST_LATEST = 5; // of fewer a share says nothing
// "149 left, 12 of the last 20 were wrong": of this queue; what is known of the whole dataset is behind "more".
function drawFigures(bench) {
  const { stats, progress, counted } = bench;
  const said = (number) => Math.round(number).toLocaleString("en");
  const figure = (value, label, title, tone = "") =>
    el("div", { class: `figure ${tone}`, title }, [el("b", { text: value }), el("span", { text: label })]);
  const inView = bench.decidedInView - (counted?.inView ?? 0); // since the queue was counted
  const isOfChecked = bench.data.queue.decided; // a queue of what was checked has nothing left
  const line = [];
  if (counted && counted.total !== null && !isOfChecked) {
    const open = counted.whole === null ? counted.total : counted.whole - counted.checked;
    // "left" is of suspects; of any other pictures most need no check.
    line.push(figure(said(Math.max(0, open - inView)), bench.data.queue.issues ? "left" : "not checked", "samples of this queue that nobody checked"));
  }
  if (progress) {
    stats.setAttribute("data-decided", progress.decided);
    const [wrong, latest] = progress.latest;
    if (latest >= LEAST_LATEST && !bench.isAtEnd) { // there the page says it
      line.push(figure(said(wrong), `of the last ${latest} ${wrong === 1 ? "was" : "were"} wrong`, "of the suspects that people checked last", "minor"));
    }
    const pace = progress.per_minute ? ` Your pace: ${progress.per_minute.toFixed(1)} a minute.` : "";
    const whole = `${said(progress.decided)} samples of the dataset are checked, ${said(progress.found)} labels found wrong.${pace}`;
    line.push(
      el("details", { class: "stopping", open: Boolean(stats.querySelector("details[open]")) }, [
        el("summary", { text: "more" }), el("span", { text: [whole, progress.sentence].filter(Boolean).join(" ") }),
      ]),
    );
  }
  stats.replaceChildren(...line);
  bench.slot.place();
}

// The bench's part of the page's bar lies over the slot that the page left for it; where there is none, above the card.
class BarSlot {
  constructor(bench, top) {
    Object.assign(this, { bench, top });
    this.watch = new ResizeObserver(() => this.place());
  }

  follow() {
    const slot = document.querySelector(".st-key-bench_slot");
    if (slot !== this.slot) {
      this.watch.disconnect();
      this.slot = slot;
      const page = document.querySelector('[data-testid="stMainBlockContainer"]');
      for (const one of [slot, page].filter(Boolean)) this.watch.observe(one);
      this.top.classList.toggle("in-bar", Boolean(slot));
    }
    this.place();
  }

  place() {
    if (!this.slot) return;
    // The page's own parts of the bar give way.
    const [line, tools] = this.top.children;
    const wanted = Math.max(...[...line.children].map((one) => one.offsetLeft + one.offsetWidth), 0) - line.offsetLeft + tools.offsetWidth + 24;
    document.documentElement.style.setProperty("--bench-slot", `${wanted}px`);
    const [slot, bench] = [this.slot.getBoundingClientRect(), this.bench.getBoundingClientRect()];
    Object.assign(this.top.style, {
      left: `${slot.left - bench.left}px`, top: `${slot.top - bench.top}px`, width: `${slot.width}px`, height: `${slot.height}px`,
    });
  }
}

// Two large ones, which say what they do; the others are in a menu. At the end of a queue nothing is left to decide.
function verdictButtons(bench) {
  const { keymap } = bench;
  const button = (id, text, action, tone = "", more = {}) => actionButton(keymap.shown(id), text, action, tone, more);
  const undo = undoButton(bench.bench, keymap, () => bench.undo());
  if (!bench.items.length) return bench.isAtEnd || bench.written.size ? [undo] : [];
  if (bench.mode === "cards" && bench.pairs.pair) return bench.pairs.buttons();
  const says = saysOfTargets(bench);
  const [large, others] = [[], []];
  for (const [name, about] of Object.entries(bench.data.decisions)) {
    const isLarge = name in says;
    (isLarge ? large : others).push(button(name, says[name] || about.button, decideBy(bench, name), `${name} ${isLarge ? "large" : ""}`, { title: about.help }));
  }
  const except = bench.chosen.size ? `Change all but ${bench.chosen.size}` : `Change all ${bench.ofPage.length} as suggested`;
  return toolbar(bench.bench, large, [
    button("class", "Other class", () => bench.pickClass()),
    ...(isNarrow(bench.bench) ? others : [menu("More", others)]),
    bench.mode === "grid" ? button("page", except, () => bench.acceptPage(), "", { "data-testid": "accept-page" }) : null,
  ].filter(Boolean), [pageTurner(bench), ...(isNarrow(bench.bench) ? modeButtons(bench) : [])], undo, () => bench.help());
}

// Tiles show what is suggested for suspects alone: of several, no other is changed unseen.
const suggestedOf = (targets) => (targets.length > 1 ? targets.filter((item) => item.isSuspect) : targets);

// What the two large buttons do, by the labels that they decide on: "Change to hat", "Keep 3".
function saysOfTargets(bench) {
  const targets = bench.targets();
  const changing = suggestedOf(targets);
  const nameOf = (kind, items) => (new Set(items.map((item) => item[kind])).size === 1 && items[0][kind] >= 0 ? bench.className(items[0][kind]) : null);
  const [given, suggested, many] = [nameOf("given", targets), nameOf("suggested", changing), targets.length > 1];
  const isNew = targets.some((item) => item.suggested !== item.given);
  return {
    keep: many ? `Keep ${targets.length}` : given && `Keep ${given}`,
    relabel: many ? changing.length && `Change ${changing.length} ${suggested ? `to ${suggested}` : "as suggested"}` : suggested && isNew && `Change to ${suggested}`,
  };
}

// The three ways to look at a queue; on a phone they are in the menu.
function modeButtons(bench) {
  // A key of the view that is there leads back to single pictures.
  const [cards, grid] = ["cards", "grid"].map((id) => bench.keymap.shown(id));
  const shown = { cards, grid, card: { cards, grid }[bench.mode] || "", [bench.mode]: "" };
  const texts = { ...(hasCards(bench.data) ? { cards: "Cards" } : {}), card: "Single", grid: "Grid" };
  return Object.entries(texts).map(([mode, text]) =>
    actionButton(shown[mode], text, () => bench.go(mode), "", { "data-testid": mode === "cards" ? "cards" : null, "aria-pressed": String(mode === bench.mode) }));
}

function barButtons(bench) {
  return [
    bench.mode === "grid" ? sizeButtons(bench) : null,
    isNarrow(bench.bench) || !bench.items.length ? null : el("span", { class: "modes", role: "group", "aria-label": "Show as" }, modeButtons(bench)),
    filterButton(bench.data.queue),
  ].filter(Boolean);
}

// Cards are of suspects that nobody decided; a map has them as a grid.
const hasCards = ({ queue, mode }) => Boolean(queue.issues && queue.undecided && !queue.engine && !queue.region && mode !== "grid");

function pageTurner(bench) {
  return el("span", { class: "turn" }, [
    el("button", { class: "plain", text: "‹", onclick: () => bench.turn(-1), "aria-label": "Previous page" }),
    el("span", { text: bench.place(), title: "Page", "data-testid": "place" }),
    el("button", { class: "plain", text: "›", onclick: () => bench.turn(1), "aria-label": "Next page" }),
  ]);
}

const TILE_KEPT = "auditor-tile";
const TILES = { S: 88, M: 124, L: 196 };
const SIZES = { S: "Small", M: "Middle", L: "Large" };
const tileSize = () => (localStorage.getItem(TILE_KEPT) in TILES ? localStorage.getItem(TILE_KEPT) : "M");

function sizeButtons(bench) {
  const buttons = Object.keys(TILES).map((size) => el("button", {
    class: `plain ${size === tileSize() ? "chosen" : ""}`, "data-size": size, title: `${SIZES[size]} tiles`, "aria-label": `${SIZES[size]} tiles`,
    "aria-pressed": String(size === tileSize()),
    onclick: () => { localStorage.setItem(TILE_KEPT, size); bench.draw(); },
  }));
  return el("span", { class: "sizes", role: "group", "aria-label": "Tile size" }, buttons);
}

// The filters above the bench fold away; this opens them. Where there are none, nothing is drawn.
const WHOLE_QUEUE = ["undecided", "issues", "decided", "disputed", "sort"]; // the choice in the bar
function filterButton(queue) {
  const page = document.documentElement;
  if (!document.querySelector(".st-key-suspects_filters")) return null;
  const chosen = Object.entries(queue)
    .filter(([name, value]) => !WHOLE_QUEUE.includes(name) && value !== null && value !== false).length;
  const isOpen = () => page.dataset.filters === "open";
  return el("button", {
    class: "plain", text: chosen ? `Filters (${chosen})` : "Filters", "data-testid": "filters",
    "aria-expanded": String(isOpen()),
    onclick: (event) => {
      page.dataset.filters = isOpen() ? "" : "open";
      event.currentTarget.setAttribute("aria-expanded", String(isOpen()));
    },
  });
}

// A select box keeps the focus after a choice, and would take the keys that are meant for the card.
function leaveSelectBox() {
  const focused = document.activeElement;
  const isOpen = focused && focused.getAttribute("aria-expanded") === "true";
  if (focused && !isOpen && focused.closest('[data-testid="stSelectbox"]')) focused.blur();
}
