// Ctrl + K, or its button in the sidebar: screens, datasets, classes and samples by a part of their name or by #number.
// The page's own links say what screens there are; the rest comes with the page as data (navigation.py).
(() => {
  const page = document.documentElement;
  if (page.dataset.palette) return;
  page.dataset.palette = "there";
  const MOST = 12;
  const known = () => JSON.parse(document.getElementById("palette")?.dataset.known || "{}");

  // [what it is, its name, how to get there], those whose name begins with what was typed first.
  function entries(typed) {
    const { dataset, datasets = [], classes = [], sample = [], base = "" } = known();
    const to = (screen, more = {}) => () => { location.href = `${base}/${screen}?${new URLSearchParams(more)}`; };
    const all = [...document.querySelectorAll(".st-key-screens a")].map((one) => ["Screen", (one.querySelector("[data-testid=stMarkdownContainer]") || one).innerText.trim(), () => one.click()]);
    all.push(...classes.map(([label, name]) => ["Class", name, to("suspects", { dataset, suspects_given: label })]));
    all.push(...datasets.map((name) => ["Dataset", name, to("", { dataset: name })]));
    const part = typed.trim().toLowerCase();
    const found = all.filter(([, name]) => name.toLowerCase().includes(part));
    found.sort((a, b) => b[1].toLowerCase().startsWith(part) - a[1].toLowerCase().startsWith(part));
    if (/^#?\d+$/.test(part) && dataset) {
      const number = part.replace("#", "");
      const [screen, field, before] = sample;
      found.unshift(["Sample", `#${number}`, to(screen, { dataset, [field]: before + number })]);
    }
    return found.slice(0, MOST);
  }

  function open() {
    const sheet = document.createElement("dialog");
    sheet.className = "palette";
    sheet.setAttribute("role", "dialog");
    sheet.setAttribute("aria-label", "Go to");
    const field = document.createElement("input");
    Object.assign(field, { placeholder: "Screen, dataset, class or #sample", type: "text" });
    field.setAttribute("aria-label", field.placeholder);
    const list = document.createElement("ul");
    sheet.append(field, list);
    const { color, backgroundColor } = getComputedStyle(document.querySelector('[data-testid="stApp"]'));
    Object.assign(sheet.style, { color, backgroundColor });
    let [found, at] = [[], 0];
    const go = () => { const [, , act] = found[at] || []; sheet.close(); act?.(); };
    const draw = () => list.replaceChildren(...found.map(([kind, name], i) => {
      const row = document.createElement("li");
      const what = document.createElement("small");
      const button = document.createElement("button");
      what.textContent = kind;
      button.append(name, what);
      button.className = i === at ? "chosen" : "";
      button.tabIndex = -1;
      button.addEventListener("click", () => { at = i; go(); });
      row.append(button);
      return row;
    }));
    const look = () => { [found, at] = [entries(field.value), 0]; draw(); };
    field.addEventListener("input", look);
    field.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { at = Math.max(0, Math.min(found.length - 1, at + step)); draw(); }
      else if (event.key === "Enter") go();
      else return;
      event.preventDefault();
    });
    sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
    sheet.addEventListener("close", () => sheet.remove());
    document.body.append(sheet);
    sheet.showModal();
    look();
  }

  document.addEventListener("click", (event) => event.target.closest?.("#palette") && open());
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    event.stopPropagation();
    if (!document.querySelector("dialog.palette")) open();
  }, true);
})();
