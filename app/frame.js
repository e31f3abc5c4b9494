// What was on a screen stays in view until the next one stands there: Streamlit clears the page first, which shows
// as a blank flash. The browser keeps a picture of the page meanwhile; one that cannot shows the flash.
(() => {
  const page = document.documentElement;
  if (page.dataset.turns || !document.startViewTransition) return;
  page.dataset.turns = "kept";
  const LONGEST_MS = 1500;
  const title = () => document.querySelector('[data-testid="stMain"] [data-testid="stHeading"]')?.textContent;
  const CONTENT = '[data-testid="stMain"] :is([data-testid^="stBidiComponent"], img, canvas, svg.marks, [data-testid="stFileUploader"])';
  const isThere = () =>
    document.querySelector(CONTENT) || document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning";

  function nextScreen(before) {
    return new Promise((resolve) => {
      const watch = new MutationObserver(() => title() && title() !== before && isThere() && end());
      const end = () => { watch.disconnect(); resolve(); };
      watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-test-script-state"] });
      setTimeout(end, LONGEST_MS);
    });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('[data-testid="stPageLink-NavLink"]');
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname === location.pathname) return;
    const before = title();
    document.startViewTransition(() => nextScreen(before));
  }, true);
})();
