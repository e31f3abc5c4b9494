// A sheet over a component: help, or a class to choose by typing a part of its name.

function hideLayer(layer) {
  layer.hidden = true;
  layer.anyKeyCloses = false;
  layer.capture = null;
  layer.replaceChildren();
}

function showLayer(layer, title, content) {
  layer.anyKeyCloses = false;
  const close = el("button", { class: "plain", text: "Close (Esc)", onclick: () => hideLayer(layer) });
  layer.replaceChildren(
    el("div", { class: "sheet", role: "dialog", "aria-label": title }, [el("strong", { text: title }), content, close]),
  );
  layer.hidden = false;
  // Beside the sidebar, never below it.
  layer.style.paddingLeft = `${Math.max(0, layer.parentElement.getBoundingClientRect().left)}px`;
}

const MOST_SHOWN = 200;

// The numbers of the classes that there are: one that was merged into another has no name here.
const labelsOf = (classNames) => [...classNames.keys()].filter((label) => classNames[label] !== null);

// ``likely``: labels that come first, the most likely in front. ``onNew``: called with a typed name that no class has.
// ``colours``: by label, that of the class in a mask. ``isNumbered``: while nothing is typed a digit picks a class,
// that of ``digitOf`` or one of the first ten of many, and Enter picks none.
function showPicker(layer, classNames, title, onPick, { extra = null, likely = [], onNew = null, colours = null, isNumbered = false } = {}) {
  const list = el("div", { class: "classes" });
  const search = el("input", { type: "text", placeholder: "Type a part of its name", "aria-label": title });
  const order = [...likely, ...labelsOf(classNames).filter((label) => !likely.includes(label))].map((label) => {
    const colour = colours ? { class: "plain of-class", style: `--colour:${colours[label]}` } : {};
    const button = el("button", { class: "plain", text: classNames[label], title: classNames[label], ...colour });
    button.addEventListener("click", () => onPick(label, button));
    return button;
  });
  const byDigit = new Map();
  const isTyped = order.length > MOST_DIGITS && order.some(({ title: name }) => /[0-9]/.test(name));
  if (isNumbered && !isTyped) {
    labelsOf(classNames).slice(0, MOST_DIGITS).forEach((label, at) => byDigit.set(digitOf(classNames, label) ?? String((at + 1) % 10), order[at]));
  }
  for (const [digit, button] of byDigit) button.prepend(el("kbd", { text: digit }));
  const filter = () => {
    const part = search.value.toLowerCase();
    const hits = order.filter((button) => button.title.toLowerCase().includes(part));
    // A name that is typed in full comes first, so that "car" can be chosen beside "carpet".
    const rank = (button) => {
      const name = button.title.toLowerCase();
      return name === part ? 0 : name.startsWith(part) ? 1 : 2;
    };
    if (part) hits.sort((a, b) => rank(a) - rank(b));
    const typed = search.value.trim();
    const isNew = onNew && typed && !order.some((button) => button.title.toLowerCase() === typed.toLowerCase());
    const add = isNew ? el("button", { class: "plain", text: `New class “${typed}”`, "data-testid": "new-class", onclick: () => onNew(typed) }) : null;
    list.replaceChildren(...hits.slice(0, MOST_SHOWN), ...[add].filter(Boolean));
    return hits;
  };
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideLayer(layer);
    if (search.value === "" && byDigit.has(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      byDigit.get(event.key).click();
      return;
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    const hits = filter();
    if (search.value === "" && extra) extra.click();
    else if (hits.length && (search.value || !isNumbered)) hits[0].click();
    search.value = "";
    if (!layer.hidden) filter();
  });
  filter();
  showLayer(layer, title, el("div", { class: "picker", "data-testid": "picker" }, [search, list, extra]));
  search.focus();
}

function showSeveral(layer, classNames, onDone) {
  const chosen = new Set();
  const done = el("button", {
    class: "action relabel", text: "These classes apply",
    onclick: () => {
      if (chosen.size < 2) return;
      hideLayer(layer);
      onDone([...chosen].sort((a, b) => a - b));
    },
  });
  const pick = (label, button) => {
    if (chosen.has(label)) chosen.delete(label);
    else chosen.add(label);
    button.classList.toggle("chosen", chosen.has(label));
    button.setAttribute("aria-pressed", String(chosen.has(label)));
  };
  showPicker(layer, classNames, "Which classes apply? Choose two or more.", pick, { extra: done });
}
