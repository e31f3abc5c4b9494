// Moving between screens. Back leads to the screen before: Streamlit adds a step to the browser's history with every
// filter that is written into the address, and a step back within a screen would change nothing that one sees.
(() => {
  if (history.pushState.isOncePerScreen) return;
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, url) => {
    const isHere = url != null && new URL(url, location.href).pathname === location.pathname;
    return isHere ? history.replaceState(state, unused, url) : push(state, unused, url);
  };
  history.pushState.isOncePerScreen = true;
})();

// What was on a screen stays in view until the next one stands there: Streamlit clears the page first, which shows
// as a blank flash. The browser keeps a picture of the page meanwhile; one that cannot shows the flash.
(() => {
  const page = document.documentElement;
  if (page.dataset.turns || !document.startViewTransition) return;
  page.dataset.turns = "kept";
  const LONGEST_MS = 1500;
  const title = () => document.querySelector('[data-testid="stMain"] [data-testid="stHeading"]')?.textContent;
  const CONTENT = '[data-testid="stMain"] :is([data-testid^="stBidiComponent"], img, canvas, svg.marks, [data-testid="stFileUploader"])';
  // What leads to another screen, beside links: buttons of these keys, and the browser's Back and Forward.
  const GOES = ["home_next_", "home_demo", "import_audit_", "audit_next", "open_audit_", "verify_next",
    "verify_settle", "map_review", "classes_pair_", "engines_disagree", "engines_open_", "export_next"].map((key) => `[class*="st-key-${key}"] button`).join();
  const isStill = () => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning";
  const isThere = () => document.querySelector(CONTENT) || isStill();

  function nextScreen(before) {
    return new Promise((resolve) => {
      const watch = new MutationObserver(() => title() && title() !== before && isThere() && end());
      const end = () => { watch.disconnect(); resolve(); };
      watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-test-script-state"] });
      setTimeout(end, LONGEST_MS);
    });
  }

  function turn() {
    const before = title();
    document.startViewTransition(() => nextScreen(before));
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('[data-testid="stPageLink-NavLink"]');
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link ? link.pathname !== location.pathname : event.target.closest?.(GOES)) turn();
  }, true);
  // Fires while the address is still the old one; a browser without the Navigation API goes back unadorned.
  window.navigation?.addEventListener("navigate", ({ navigationType, destination }) => {
    if (navigationType === "traverse" && new URL(destination.url).pathname !== location.pathname) turn();
  });
})();

// Where the server is lost a strip says so in place of Streamlit's dialog, which takes the keys: what is decided
// goes on into the outbox. It goes when the dialog would.
(() => {
  const page = document.documentElement;
  if (page.dataset.strip) return;
  page.dataset.strip = "kept";
  const strip = document.createElement("div");
  strip.className = "server-lost";
  strip.setAttribute("role", "status");
  strip.textContent = "The server does not answer. You can go on: what you decide is kept in this browser and sent when it is back.";
  const look = () => {
    const sheets = [...document.querySelectorAll('[data-testid="stDialog"]')];
    const lost = sheets.find((one) => one.classList.contains("lost") || /connection error/i.test(one.textContent));
    if (lost) {
      lost.classList.add("lost");
      lost.querySelector('[role="dialog"]')?.removeAttribute("role");
    }
    if (Boolean(lost) !== strip.isConnected) lost ? document.body.append(strip) : strip.remove();
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
})();

// A folder that is dropped on an uploader arrives with the places of its files: Streamlit keeps them where a folder is
// chosen, and of one that is dropped the names alone.
(() => {
  const page = document.documentElement;
  if (page.dataset.drops) return;
  page.dataset.drops = "kept";
  const read = (entry) => new Promise((resolve, reject) => {
    if (entry.isFile) return void entry.file((file) => resolve([Object.defineProperty(file, "webkitRelativePath", { value: entry.fullPath.slice(1) })]), reject);
    const reader = entry.createReader();
    const inside = [];
    // A reader gives a hundred at a time, and none at the end.
    const more = () => reader.readEntries((some) => {
      if (!some.length) return void Promise.all(inside.filter(({ name }) => name[0] !== ".").map(read)).then((all) => resolve(all.flat()), reject);
      inside.push(...some);
      more();
    }, reject);
    more();
  });
  document.addEventListener("drop", async (event) => {
    const zone = event.target.closest?.('[data-testid="stFileUploaderDropzone"]');
    const entries = [...(event.isTrusted && zone ? event.dataTransfer.items : [])].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    if (!entries.some((entry) => entry.isDirectory)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const files = (await Promise.all(entries.map(read))).flat();
    const again = new Event("drop", { bubbles: true, cancelable: true });
    const items = files.map((file) => ({ kind: "file", type: file.type, getAsFile: () => file }));
    Object.defineProperty(again, "dataTransfer", { value: { types: ["Files"], files, items } });
    zone.dispatchEvent(again);
  }, true);
})();
