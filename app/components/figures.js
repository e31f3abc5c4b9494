// What is around the bench's cards: the line of figures, the toolbar, the list of keys.

const BENCH_ACTIONS = [
  { id: "class", key: "l", text: "any other class: type a part of its name, Enter takes the first" },
  { id: "undo", key: "z", text: "undo your last action, however many samples it was" },
  { id: "accept", key: "a", text: "accept many suggestions: shows them first" },
  { id: "page", key: "p", text: "grid: take the page's suggestions, not of selected tiles; cards: put this one off" },
  { id: "large", key: "v", text: "the picture large; ← → the one before or after it, Esc closes" },
  { id: "smooth", key: "s", text: "smooth picture, or its pixels" },
  { id: "lens", key: "b", text: "lens: beside the best of both classes; Space blinks between two" },
  { id: "alike", key: "o", text: "others like this: the nearest with the same given label" },
  { id: "engines", key: "d", text: "what each engine says" },
  { id: "grid", key: "g", text: "grid or single view" },
  { id: "cards", key: "t", text: "cards: suspects that look like one other class, settled together" },
];
const BENCH_FIXED = [
  ["← →", "previous and next (↑ ↓ in the grid)"],
  ["Space", "select a tile, or untick it on a card; Shift + click selects a range"],
  ["Enter", "settles a card; opens a tile; next page, once every tile of a page is checked"],
  ["?", "this list"],
];

const benchKeys = (decisions) =>
  new Keymap([...Object.entries(decisions).map(([id, { key, help }]) => ({ id, key, text: help })), ...BENCH_ACTIONS]);

// What a decision's key and button do: one that names a class takes the suggestion, one that names several asks for them.
function decideBy(bench, name) {
  const { takes } = bench.data.decisions[name];
  if (takes === "class") return () => bench.suggestion();
  if (takes === "classes") return () => bench.pickSeveral(name);
  return () => bench.verdict(name);
}

// "42 of 218 checked" of this queue, its finish line; what is known of the whole dataset is behind "why?".
function drawFigures(bench) {
  const { stats, progress, counted } = bench;
  const said = (number) => Math.round(number).toLocaleString("en");
  const figure = (value, label, title, tone = "") =>
    el("div", { class: `figure ${tone}`, title }, [el("b", { text: value }), el("span", { text: label })]);
  const inView = bench.decidedInView - (counted?.inView ?? 0); // since the queue was counted
  const finish = counted && counted.whole !== null
    ? figure(said(counted.checked + inView), `of ${said(counted.whole)} checked`, "samples of this queue that somebody looked at")
    : counted && counted.total !== null ? figure(said(Math.max(0, counted.total - inView)), "left", "samples of this queue that nobody looked at") : null;
  const line = [finish];
  if (progress) {
    stats.setAttribute("data-decided", progress.decided);
    const facts = [
      [said(progress.found), "wrong", "labels that people found wrong, in the whole dataset"],
      ...(progress.expected_left === null ? [] : [[`about ${said(progress.expected_left)}`, "left", "wrong labels of the whole dataset that nobody has found yet"]]),
    ];
    line.push(...facts.map(([value, label, title]) => figure(value, label, title, "minor")));
    const pace = progress.per_minute ? ` Your pace: ${progress.per_minute.toFixed(1)} a minute.` : "";
    const whole = `${said(progress.decided)} samples of the dataset are checked, ${said(progress.found)} labels found wrong.${pace}`;
    line.push(
      el("details", { class: "stopping", open: Boolean(stats.querySelector("details[open]")) }, [
        el("summary", { text: "why?" }), el("span", { text: [whole, progress.sentence].filter(Boolean).join(" ") }),
      ]),
    );
  }
  stats.replaceChildren(...line.filter(Boolean));
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

function verdictButtons(bench) {
  const { keymap } = bench;
  if (bench.mode === "cards" && bench.pairs.pair) return bench.pairs.buttons();
  const idle = bench.items.length ? {} : { disabled: true };
  const button = (id, text, action, tone = "", more = {}) => actionButton(keymap.shown(id), text, action, tone, more);
  const decisions = Object.entries(bench.data.decisions).flatMap(([name, about]) => [
    button(name, about.button, decideBy(bench, name), name, idle),
    about.takes === "class" ? button("class", "Other class", () => bench.pickClass(), "", idle) : null,
  ]);
  const except = bench.chosen.size ? `Take all but ${bench.chosen.size}` : "Take page";
  return [
    ...decisions.filter(Boolean),
    bench.mode === "grid" && bench.items.length ? button("page", except, () => bench.acceptPage(), "", { "data-testid": "accept-page" }) : null,
    el("span", { class: "gap" }),
    pageTurner(bench),
    button("undo", "Undo", () => bench.undo()),
    button("grid", bench.mode === "grid" ? "Single" : "Grid", () => bench.toggleMode(), "", idle),
    actionButton("?", "Keys", () => bench.help(), "", { "aria-label": "Keys" }),
  ].filter(Boolean);
}

function barButtons(bench) {
  return [
    bench.mode === "grid" ? sizeButtons(bench) : null,
    bench.mode !== "cards" && hasCards(bench.data.queue) ? actionButton(bench.keymap.shown("cards"), "Cards", () => bench.toggleCards(), "", { "data-testid": "cards" }) : null,
    filterButton(bench.data.queue),
    actionButton(bench.keymap.shown("accept"), "Accept many", () => bench.acceptMany(), "", { "data-testid": "accept" }),
  ].filter(Boolean);
}

// Cards are of suspects that nobody decided.
const hasCards = (queue) => Boolean(queue.issues && queue.undecided && !queue.engine && !queue.region);

function pageTurner(bench) {
  return el("span", { class: "turn" }, [
    el("button", { class: "plain", text: "‹", onclick: () => bench.turn(-1), "aria-label": "Previous page" }),
    el("span", { text: bench.place(), title: "Page", "data-testid": "place" }),
    el("button", { class: "plain", text: "›", onclick: () => bench.turn(1), "aria-label": "Next page" }),
  ]);
}

const TILE_KEPT = "auditor-tile";
const TILES = { S: 88, M: 124, L: 196 };
const tileSize = () => (localStorage.getItem(TILE_KEPT) in TILES ? localStorage.getItem(TILE_KEPT) : "M");

function sizeButtons(bench) {
  const buttons = Object.keys(TILES).map((size) => el("button", {
    class: `plain ${size === tileSize() ? "chosen" : ""}`, text: size, "aria-label": `Tile size ${size}`,
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
