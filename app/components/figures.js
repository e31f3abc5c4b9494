// What stands around the bench's cards: the line of figures, the toolbar, the list of keys.

const DECISION_KEYS = { q: "keep", e: "exclude", n: "unsure", u: "unreadable", 0: "none" };
const HELP = [
  ["Q", "keep the given label"],
  ["W", "take the suggestion"],
  ["1 – 9", "the likeliest classes, in the order shown"],
  ["L", "any other class: type its name"],
  ["E", "exclude the sample"],
  ["N", "not sure"],
  ["M", "several classes apply"],
  ["0", "none of the classes applies"],
  ["U", "unreadable image"],
  ["Z", "undo your last decision"],
  ["← →", "previous and next (↑ ↓ in the grid)"],
  ["Space", "select a tile; Shift + click selects a range"],
  ["V", "the picture large; ← → leads to those beside it, Esc closes"],
  ["G", "grid or single view (Enter opens a tile)"],
  ["Enter", "next page, once every tile of a page is decided"],
  ["?", "this list"],
];

function drawFigures(line, progress) {
  const figure = (label, value, title, tone = "") =>
    el("div", { class: `figure ${tone}`, title }, [el("b", { text: value }), el("span", { text: label })]);
  line.setAttribute("data-decided", progress.decided);
  line.replaceChildren(
    figure("decided", progress.decided.toLocaleString("en"), "samples that somebody looked at, blind verdicts too"),
    figure("hit rate", percent(progress.hit_rate), "share of decided suspects whose given label was wrong"),
    figure("per minute", progress.per_minute ? progress.per_minute.toFixed(1) : "–", "your pace, pauses left out", "minor"),
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
  const decide = (decision) => () => bench.verdict(decision);
  return [
    button("Q", "Keep", decide("keep"), "keep"),
    button("W", "Take suggestion", () => bench.suggestion(), "relabel"),
    button("L", "Other class", () => bench.pickClass()),
    button("E", "Exclude", decide("exclude"), "exclude"),
    button("N", "Not sure", decide("unsure"), "unsure"),
    button("M", "Several", () => bench.pickSeveral()),
    button("0", "None fits", decide("none")),
    button("U", "Unreadable", decide("unreadable")),
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
