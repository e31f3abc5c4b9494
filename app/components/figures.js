// What is around the bench's cards: the line of figures, the toolbar, the list of keys.

const BENCH_ACTIONS = [
  { id: "class", key: "l", text: "any other class: type a part of its name, Enter takes the first" },
  { id: "undo", key: "z", text: "undo your last action, however many samples it was" },
  { id: "accept", key: "a", text: "accept many suggestions: shows them first" },
  { id: "large", key: "v", text: "the picture large; ← → the one before or after it, Esc closes" },
  { id: "smooth", key: "s", text: "smooth picture, or its pixels" },
  { id: "engines", key: "d", text: "what each engine says" },
  { id: "grid", key: "g", text: "grid or single view" },
];
const BENCH_FIXED = [
  ["← →", "previous and next (↑ ↓ in the grid)"],
  ["Space", "select a tile; Shift + click selects a range"],
  ["Enter", "opens a tile; next page, once every tile of a page is checked"],
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

// "42 of 218 checked": the queue as it was when it was opened, its finish line.
function drawFigures(line, progress) {
  const figure = (label, value, title, tone = "") =>
    el("div", { class: `figure ${tone}`, title }, [el("b", { text: value }), el("span", { text: label })]);
  line.setAttribute("data-decided", progress.decided);
  line.replaceChildren(...[
    figure("checked in all", progress.decided.toLocaleString("en"), "samples that somebody looked at, blind verdicts too", "minor"),
    figure("wrong labels found", progress.found.toLocaleString("en"), "by people, in the whole dataset"),
    figure("a minute", progress.per_minute ? progress.per_minute.toFixed(1) : "–", "your own pace, without pauses", "minor"),
    progress.expected_left === null ? null : figure("expected left", Math.round(progress.expected_left).toLocaleString("en"),
      "wrong labels of the whole dataset that nobody has found yet"),
    progress.promise ? el("p", { style: "flex: 1 1 100%; margin: 0; order: 1", text: progress.promise }) :
    el("details", { class: "stopping" }, [el("summary", { text: "why?" }), el("span", { text: progress.sentence || "" })]),
  ].filter(Boolean));
}

function verdictButtons(bench) {
  const { keymap } = bench;
  const idle = bench.items.length ? {} : { disabled: true };
  const button = (id, text, action, tone = "", more = {}) => actionButton(keymap.shown(id), text, action, tone, more);
  const decisions = Object.entries(bench.data.decisions).flatMap(([name, about]) => [
    button(name, about.button, decideBy(bench, name), name, idle),
    about.takes === "class" ? button("class", "Other class", () => bench.pickClass(), "", idle) : null,
  ]);
  return [
    ...decisions.filter(Boolean),
    el("span", { class: "gap" }),
    button("undo", "Undo", () => bench.undo()),
    button("grid", bench.mode === "grid" ? "Single" : "Grid", () => bench.toggleMode(), "", idle),
    actionButton("?", "Keys", () => bench.help()),
  ];
}

function pageTurner(bench) {
  return el("span", { class: "turn" }, [
    filterButton(bench.data.queue),
    bench.mode === "grid" ? sizeButtons(bench) : null,
    actionButton(bench.keymap.shown("accept"), "Accept many", () => bench.acceptMany(), "", { "data-testid": "accept" }),
    el("button", { class: "plain", text: "‹ Page", onclick: () => bench.turn(-1), "aria-label": "Previous page" }),
    el("span", { text: bench.place() }),
    el("button", { class: "plain", text: "Page ›", onclick: () => bench.turn(1), "aria-label": "Next page" }),
  ].filter(Boolean));
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
const WHOLE_QUEUE = ["undecided", "issues", "decided", "disputed", "order", "count_shown"]; // the choice in the bar
function filterButton(queue) {
  const page = document.documentElement;
  if (!document.querySelector(".st-key-suspects_filters")) return null;
  const chosen = Object.entries(queue)
    .filter(([name, value]) => !WHOLE_QUEUE.includes(name) && value !== null && value !== false).length;
  // What narrows the queue is in view, unless a person folded it away or a phone has no room.
  if (chosen && page.dataset.filters === undefined && window.innerWidth > 640) page.dataset.filters = "open";
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
