// Ctrl + K, or its button in the sidebar: screens, datasets, classes and samples by a part of their name or by #number.
// What can be done comes last. The page's own links say what screens there are; the rest comes with the page as data
// (navigation.py).
(() => {
  const page = document.documentElement;
  if (page.dataset.palette) return;
  page.dataset.palette = "there";
  const MOST = 6; // of datasets, classes and samples; screens are few
  const known = () => JSON.parse(document.getElementById("palette")?.dataset.known || "{}");

  // What can be done: keys of the bench that is here, a button of another screen, the colours of the page.
  const PRESS = "auditor-press"; // the button to press once its screen stands there
  const press = (selector, screen, to) => () => {
    const button = document.querySelector(selector);
    if (button) return button.click();
    sessionStorage.setItem(PRESS, selector);
    to(screen)();
  };
  const key = (name) => () => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  // What undo takes back, as the screen itself says it.
  function undo() {
    const asked = new CustomEvent("auditor-undoes", { detail: {} });
    document.dispatchEvent(asked);
    return asked.detail.says ? `Undo: ${asked.detail.says}` : "Undo your last decision";
  }
  function turnColours(isDark) {
    // Where Streamlit keeps its own choice, by the address of a page.
    const places = new Set([location.pathname, ...[...document.querySelectorAll(".st-key-screens a")].map((one) => one.pathname)]);
    places.forEach((place) => localStorage.setItem(`stActiveTheme-${place}-v2`, JSON.stringify(isDark ? "Light" : "Dark")));
    location.reload();
  }
  function actions(dataset, to) {
    const hasScreen = (name) => [...document.querySelectorAll(".st-key-screens a")].some((one) => one.pathname.endsWith(`/${name}`));
    const hasBench = document.querySelector(".stBidiComponent, [data-testid^=stBidiComponent]") && /\/(suspects|verify|masks|numbers|sets)$/.test(location.pathname);
    const isDark = getComputedStyle(document.querySelector("[data-testid=stApp]")).colorScheme === "dark";
    const there = (screen) => to(screen, { dataset });
    return [
      hasBench && { name: undo(), go: key("z") },
      hasBench && { name: "Show the keys", go: key("?") },
      dataset && hasScreen("audit") && { name: "Start an audit", go: there("audit") },
      dataset && hasScreen("export") && { name: "Download the cleaned CSV", go: press(".st-key-export_csv button", "export", there) },
      { name: isDark ? "Light colours" : "Dark colours", go: () => turnColours(isDark) },
    ].filter(Boolean);
  }
  const wanted = sessionStorage.getItem(PRESS);
  if (wanted) {
    sessionStorage.removeItem(PRESS);
    const screen = location.pathname;
    const look = setInterval(() => {
      const button = document.querySelector(`${wanted}:enabled`);
      const isStill = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";
      const hasLeft = location.pathname !== screen;
      if (button && isStill && !hasLeft) button.click();
      if ((button && isStill) || hasLeft) clearInterval(look);
    }, 200);
  }

  // By section its entries, those whose name begins with what was typed first: name, how to get there, and an icon
  // or the address of a picture.
  function sections(typed) {
    const { dataset, datasets = [], classes = [], sample = [], samples = 0, picture = "", base = "" } = known();
    const to = (screen, more = {}) => () => { location.href = `${base}/${screen}?${new URLSearchParams(more)}`; };
    const part = typed.trim().toLowerCase();
    const begins = ({ name }) => name.toLowerCase().startsWith(part);
    const matching = (all) => all.filter(({ name }) => name.toLowerCase().includes(part)).sort((a, b) => begins(b) - begins(a));
    const screens = [...document.querySelectorAll(".st-key-screens a")].map((one) => ({
      name: (one.querySelector("[data-testid=stMarkdownContainer]") || one).innerText.trim(),
      icon: one.querySelector("[data-testid=stIconMaterial]"), go: () => one.click(),
    }));
    const number = /^#?\d+$/.test(part) && dataset ? part.replace("#", "") : "";
    const [screen, field, before] = sample;
    const numbers = number ? [Number(number), ...Array.from({ length: 10 }, (_, digit) => Number(number + digit))] : [];
    return [
      ["Samples", [...new Set(numbers)].filter((one) => one < samples).slice(0, MOST).map((one) => ({
        name: `#${one}`, src: picture.replace("SAMPLE", one), go: to(screen, { dataset, [field]: before + one }) }))],
      ["Screens", matching(screens)],
      ["Datasets", some(matching(datasets.map((name) => ({ name, go: to("", { dataset: name }) }))))],
      ["Suspects of a class", some(matching(classes.map(([label, name]) => ({ name, go: to("suspects", { dataset, suspects_given: label }) }))))],
      ["Do", matching(actions(dataset, to))],
    ].filter(([, entries]) => entries.length);
  }
  // The first of many; how many more there are stands with them.
  const some = (entries) => Object.assign(entries.slice(0, MOST), { more: Math.max(0, entries.length - MOST) });

  function open() {
    const sheet = document.createElement("dialog");
    sheet.className = "palette";
    sheet.setAttribute("role", "dialog");
    sheet.setAttribute("aria-label", "Go to");
    const field = document.createElement("input");
    Object.assign(field, { placeholder: "Screen, dataset, class, #sample or action", type: "text" });
    field.setAttribute("aria-label", field.placeholder);
    const made = (tag, more = {}, inside = []) => {
      const node = Object.assign(document.createElement(tag), more);
      node.append(...inside);
      return node;
    };
    const list = made("div", { className: "found" });
    const keys = made("p", { className: "keys-of-palette" }, [["← ↑ ↓ →", "choose"], ["Enter", "go there"], ["Esc", "close"]].map(([key, text]) =>
      made("span", {}, [made("kbd", { textContent: key }), ` ${text}`])));
    sheet.append(field, list, keys);
    let [found, at] = [[], 0];
    const all = () => found.flatMap(([, entries]) => entries);
    // Keys do nothing below a dialog: it is gone before what was chosen happens.
    const go = () => { const entry = all()[at]; sheet.remove(); entry?.go(); };
    const rowOf = (entry) => {
      const place = all().indexOf(entry);
      const look = entry.src ? [made("img", { src: entry.src, alt: "" })] : entry.icon ? [entry.icon.cloneNode(true)] : [];
      const button = made("button", { className: place === at ? "chosen" : "", tabIndex: -1 }, [...look, made("span", { textContent: entry.name })]);
      button.addEventListener("click", () => { at = place; go(); });
      return made("li", {}, [button]);
    };
    const draw = () => {
      const titled = (title, { more }) => made("h2", { textContent: more ? `${title} · ${more} more, type a part of the name` : title });
      list.replaceChildren(...found.flatMap(([title, entries]) => [titled(title, entries), made("ul", { className: entries[0].src ? "pictured" : "" }, entries.map(rowOf))]));
      if (!found.length) list.append(made("p", { textContent: "Nothing has that name. A sample is found by its number." }));
      list.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
      fade();
    };
    // The place in the next row, or the one before, that lies nearest to the chosen one; where there is none, the next.
    const below = (down) => {
      const boxes = [...list.querySelectorAll("button")].map((one) => one.getBoundingClientRect());
      const here = boxes[at];
      const away = (box) => down * (box.top - here.top);
      const others = boxes.map((box, place) => ({ box, place })).filter(({ box }) => here && away(box) > 1);
      const row = Math.min(...others.map(({ box }) => away(box)));
      const near = ({ box }) => Math.abs(box.left - here.left);
      return others.filter(({ box }) => away(box) < row + 1).sort((a, b) => near(a) - near(b))[0]?.place ?? step(down);
    };
    const step = (by) => Math.max(0, Math.min(all().length - 1, at + by));
    // What lies below the lower edge shows as a fade.
    const fade = () => list.classList.toggle("goes-on", list.scrollTop + list.clientHeight < list.scrollHeight - 4);
    list.addEventListener("scroll", fade);
    const look = () => { [found, at] = [sections(field.value), 0]; draw(); };
    field.addEventListener("input", look);
    field.addEventListener("keydown", (event) => {
      const [down, right] = [{ ArrowDown: 1, ArrowUp: -1 }[event.key], { ArrowRight: 1, ArrowLeft: -1 }[event.key]];
      if (down) { at = below(down); draw(); }
      else if (right && !field.value) { at = step(right); draw(); }
      else if (event.key === "Enter") go();
      else return;
      event.preventDefault();
    });
    sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
    sheet.addEventListener("close", () => sheet.remove());
    document.querySelector('[data-testid="stApp"]').append(sheet); // whose colours it has
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
