// What is around the bench's cards: the line of figures, the toolbar, the list of keys.

// Keys beside those of the decisions, which the page sends (``vocabulary.py``).
const CLASS_KEYS = [
  ["1 – 9", "the most likely classes, in the order shown"],
  ["L", "any other class: type its name"],
];
const BENCH_KEYS = [
  ["Z", "undo your last decision"],
  ["← →", "previous and next (↑ ↓ in the grid)"],
  ["Space", "select a tile; Shift + click selects a range"],
  ["V", "enlarge the picture; ← → shows the one before or after it, Esc closes"],
  ["G", "grid or single view (Enter opens a tile)"],
  ["Enter", "next page, once every tile of a page is decided"],
  ["?", "this list"],
];

function benchHelp(decisions) {
  const rows = Object.values(decisions).flatMap(({ key, help, takes }) => [
    [key.toUpperCase(), help], ...(takes === "class" ? CLASS_KEYS : []),
  ]);
  return [...rows, ...BENCH_KEYS];
}

const decisionOfKey = (decisions, key) => Object.keys(decisions).find((name) => decisions[name].key === key);

// What a decision's key and button do: one that names a class takes the suggestion, one that names several asks for them.
function decideBy(bench, name) {
  const { takes } = bench.data.decisions[name];
  if (takes === "class") return () => bench.suggestion();
  if (takes === "classes") return () => bench.pickSeveral(name);
  return () => bench.verdict(name);
}

function drawFigures(line, progress) {
  const figure = (label, value, title, tone = "") =>
    el("div", { class: `figure ${tone}`, title }, [el("b", { text: value }), el("span", { text: label })]);
  line.setAttribute("data-decided", progress.decided);
  line.replaceChildren(
    figure("decided", progress.decided.toLocaleString("en"), "samples that somebody looked at, including blind verdicts"),
    figure("hit rate", percent(progress.hit_rate), "share of decided suspects whose given label was wrong"),
    figure("per minute", progress.per_minute ? progress.per_minute.toFixed(1) : "–", "your pace, without pauses", "minor"),
    figure("wrong labels found", progress.found.toLocaleString("en"), "", "minor"),
    figure("expected left", progress.expected_left === null ? "–" : Math.round(progress.expected_left).toLocaleString("en"),
      "wrong labels of the whole dataset that nobody has found yet"),
    el("div", { class: "stopping", text: progress.sentence || "", title: progress.sentence || "" }),
  );
}

function verdictButtons(bench) {
  const button = (key, text, action, tone = "") =>
    el("button", { class: `action ${tone}`, onclick: action, "data-key": key, "aria-keyshortcuts": key }, [
      el("kbd", { text: key }), el("span", { text }),
    ]);
  const decisions = Object.entries(bench.data.decisions).flatMap(([name, about]) => [
    button(about.key.toUpperCase(), about.button, decideBy(bench, name), name),
    about.takes === "class" ? button("L", "Other class", () => bench.pickClass()) : null,
  ]);
  return [
    ...decisions.filter(Boolean),
    el("span", { class: "gap" }),
    button("Z", "Undo", () => bench.undo()),
    button("G", bench.mode === "grid" ? "Single" : "Grid", () => bench.toggleMode()),
    button("?", "Keys", () => bench.help()),
  ];
}

function pageTurner(bench) {
  return el("span", { class: "turn" }, [
    filterButton(bench.data.queue),
    el("button", { class: "plain", text: "‹ Page", onclick: () => bench.turn(-1), "aria-label": "Previous page" }),
    el("span", { text: bench.place() }),
    el("button", { class: "plain", text: "Page ›", onclick: () => bench.turn(1), "aria-label": "Next page" }),
  ]);
}

// On a phone the filters above the bench fold away; this opens them. Where there are none, nothing is drawn.
function filterButton(queue) {
  if (!document.querySelector(".st-key-suspects_filters")) return null;
  const page = document.documentElement;
  const chosen = Object.entries(queue).filter(([name, value]) => name !== "undecided" && value !== null && value !== false).length;
  return el("button", {
    class: "plain fold", text: chosen ? `Filters (${chosen})` : "Filters", "data-testid": "filters",
    onclick: () => { page.dataset.filters = page.dataset.filters === "open" ? "" : "open"; },
  });
}

// A select box keeps the focus after a choice, and would take the keys that are meant for the card.
function leaveSelectBox() {
  const focused = document.activeElement;
  const isOpen = focused && focused.getAttribute("aria-expanded") === "true";
  if (focused && !isOpen && focused.closest('[data-testid="stSelectbox"]')) focused.blur();
}
