// The line of buttons below a picture. On a phone two of them are large and the others unfold from one.

const NARROW_PX = 620; // of the component's own width, as in bench.css

const isNarrow = (box) => box.clientWidth > 0 && box.clientWidth <= NARROW_PX;

// ``large``: the two verdicts; ``others``: what else decides; ``moves``: at the other end of the line, before ``undo``
// and the list of keys, which a phone has not.
function toolbar(box, large, others, moves, undo, help) {
  if (isNarrow(box)) return [...large, undo, menu("More", [...others, ...moves])];
  return [...large, ...others, el("span", { class: "gap" }), ...moves, undo, actionButton("?", "Keys", help, "", { "aria-label": "Keys", "data-action": "keys" })];
}

// On a phone an arrow back says it.
const undoButton = (box, keymap, undo, more = {}) =>
  actionButton(keymap.shown("undo"), isNarrow(box) ? "↶" : "Undo", undo, "undo", { "aria-label": "Undo", "data-action": "undo", ...more });

// Calls ``redraw`` when the window becomes a phone's, or is one no more.
function watchWidth(box, redraw) {
  let was = isNarrow(box);
  new ResizeObserver(() => {
    if (isNarrow(box) === was) return;
    was = !was;
    redraw();
  }).observe(box);
}

// Buttons that unfold above theirs; a choice, or a press elsewhere, folds them again.
function menu(text, buttons) {
  const fold = el("details", { class: "menu", "data-testid": "menu" }, [
    el("summary", { class: "action", text }), el("div", { class: "menu-of" }, buttons),
  ]);
  fold.addEventListener("click", (event) => { if (event.target.closest(".menu-of")) fold.open = false; });
  fold.addEventListener("focusout", (event) => { if (!fold.contains(event.relatedTarget)) fold.open = false; });
  return fold;
}
