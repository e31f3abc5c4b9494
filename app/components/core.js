// What every component of ours shares: elements made from text (never from HTML), calls to our own routes,
// and an outbox that keeps a verdict in the browser until the server has said that it is in the database.

function el(tag, attributes = {}, children = []) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of [].concat(children)) if (child) node.append(child);
  return node;
}

// No line begins with the sign of a percentage.
const unbroken = (text) => text.replaceAll(" %", "\u00a0%");

const percent = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const hundredths = 100 * value;
  const whole = hundredths > 0 && hundredths < 1 ? "<1" : hundredths > 99 && hundredths < 100 ? ">99" : Math.round(hundredths);
  return unbroken(`${whole} %`);
};

// Few, so that a picture that was sent to one screen is known on the next.
const SIDES = [96, 128, 192, 256, 384, 640, 768, 1024, 1536, 2048];
const LARGEST = SIDES[SIDES.length - 1];

// The longer side of the picture on a card: three fifths of what the sidebar leaves, or what the bars leave of the height.
const paneSide = () => Math.min(window.innerWidth, Math.max(0.6 * window.innerWidth - 150, window.innerHeight - 248));

class Server {
  constructor(connection) {
    this.connection = connection;
  }

  async post(path, body) {
    const response = await fetch(`${this.connection.base}/bench/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Auditor-Token": this.connection.token },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    const error = new Error(answer.error || `The server answered ${response.status}.`);
    error.final = response.status === 400 || response.status === 500;
    error.isAnswer = true;
    throw error;
  }

  async bytes(path) {
    const response = await fetch(`${this.connection.base}/bench/${path}`, {
      headers: { "X-Auditor-Token": this.connection.token },
    });
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    return response.arrayBuffer();
  }

  // ``shown``: pixels of the page that the longer side takes; a screen with two pixels for one gets twice as many.
  image(sample, shown) {
    const { base, token, dataset, version } = this.connection;
    const wanted = shown * Math.min(2, window.devicePixelRatio || 1);
    const size = SIDES.find((side) => side >= wanted) || LARGEST;
    return `${base}/bench/image/${dataset}/${sample}?size=${size}&v=${version}&t=${token}`;
  }
}

const OUTBOX_PREFIX = "auditor-verdict:";

// Why verdicts wait, for people.
const whyWaiting = (error) => (error && error.isAnswer ? error.message : "The server does not answer.");

// One entry of localStorage a verdict: a closed tab, a lost socket or a killed server loses none, and two tabs
// do not overwrite each other's list. The server takes the same verdict twice without harm.
class Outbox {
  constructor(server, route, onWaiting) {
    this.server = server;
    this.route = route;
    this.onWaiting = onWaiting;
    this.waiting = new Map();
    this.delay = 400;
    this.busy = false;
    this.stopped = false;
  }

  // ``onRefused`` hears of a verdict of an earlier window that the server does not take.
  restore(belongs, onRefused) {
    for (let i = 0; i < localStorage.length; i += 1) {
      const name = localStorage.key(i);
      if (!name || !name.startsWith(OUTBOX_PREFIX)) continue;
      try {
        const entry = JSON.parse(localStorage.getItem(name));
        if (entry.route !== this.route || !belongs(entry.verdict)) continue;
        this.enqueue(entry.verdict).catch((error) => onRefused(entry.verdict, error));
      } catch (error) {
        localStorage.removeItem(name);
      }
    }
    if (this.waiting.size) this.flush();
  }

  enqueue(verdict) {
    return new Promise((resolve, reject) => this.waiting.set(verdict.token, { verdict, resolve, reject }));
  }

  send(verdict) {
    verdict.token = verdict.token || crypto.getRandomValues(new Uint32Array(4)).join("-");
    try {
      const entry = JSON.stringify({ route: this.route, verdict });
      localStorage.setItem(OUTBOX_PREFIX + verdict.token, entry);
    } catch (error) {
      console.warn("The browser's storage is full; the verdict is kept in this tab only.", error);
    }
    const done = this.enqueue(verdict);
    this.flush();
    return done;
  }

  settle(token, action, value) {
    const entry = this.waiting.get(token);
    this.waiting.delete(token);
    localStorage.removeItem(OUTBOX_PREFIX + token);
    if (entry) entry[action](value);
  }

  async flush() {
    if (this.busy || this.stopped || !this.waiting.size) return;
    this.busy = true;
    const batch = [...this.waiting.values()].slice(0, 100).map((entry) => entry.verdict);
    try {
      const answer = await this.server.post(this.route, { verdicts: batch });
      for (const result of answer.results) {
        if (result.error) this.settle(result.token, "reject", new Error(result.error));
        else this.settle(result.token, "resolve", result);
      }
      this.delay = 400;
      this.onWaiting(0, null);
    } catch (error) {
      if (error.final) for (const verdict of batch) this.settle(verdict.token, "reject", error);
      else {
        this.onWaiting(this.waiting.size, error);
        this.delay = Math.min(4000, this.delay * 1.7);
        setTimeout(() => this.flush(), this.delay);
      }
    }
    this.busy = false;
    if (this.waiting.size && this.delay === 400) this.flush();
  }

  async drained() {
    while (this.waiting.size) await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

const WARNED_MS = 6000;
// A key that comes so soon after a refused sample came back was meant for the sample that it pushed aside.
const STARTLED_MS = 600;

// One line in a fixed corner: it never moves the picture.
class Notice {
  constructor() {
    this.node = el("div", { class: "notice", role: "status", hidden: true, "data-testid": "notice" });
  }

  tell(text, tone = "info", more = null) {
    this.toldAt = performance.now();
    this.node.replaceChildren(...[text || "", more].filter(Boolean));
    this.node.className = `notice ${tone}`;
    this.node.hidden = !text;
  }

  // A warning is about an earlier sample, and keys come faster than one reads: it stays for some seconds.
  hush() {
    const isWarning = this.node.matches(".warn, .bad");
    if (!isWarning || performance.now() - this.toldAt > WARNED_MS) this.tell("");
  }
}

// Take back the newest verdict. Keys that are pressed meanwhile are meant for the sample that comes back: they wait.
function undoOnce(view) {
  view.undoing ||= view.takeBack().finally(() => {
    view.undoing = null;
  });
}

function waitsFor(coming, view, event) {
  if (!coming) return false;
  const pressed = () => view.onKey(event);
  coming.then(pressed, pressed);
  event.preventDefault();
  return true;
}

const isTyping = (event) => {
  const target = event.composedPath()[0];
  if (!target || !target.tagName) return false;
  // Space and arrows are all that a box to tick takes for itself.
  if (["radio", "checkbox"].includes(target.type)) return event.key === " " || event.key.startsWith("Arrow");
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
};

// The function of a component runs again at every rerun of the page; its view lives on the element meanwhile. So do
// its keys: Streamlit calls what that function returns before it runs again, and a key between the two would be lost.
function mount(View) {
  return (component) => {
    const root = component.parentElement;
    if (!root.auditorView) {
      root.auditorView = new View(root);
      listen(root);
    }
    root.auditorView.component = component;
    root.auditorView.update(component.data);
  };
}

// Keys for the view of an element, until it leaves the page.
function listen(root) {
  const onKey = (event) => {
    const view = root.auditorView;
    if (!root.isConnected) document.removeEventListener("keydown", onKey);
    else if (view.onKey && !(event.ctrlKey || event.metaKey || event.altKey)
      && !isTyping(event) && !document.querySelector('[role="dialog"]')) view.onKey(event);
  };
  document.addEventListener("keydown", onKey);
  // What undo would take back here, for the palette.
  const onAsked = ({ detail }) => {
    if (!root.isConnected) document.removeEventListener("auditor-undoes", onAsked);
    else detail.says = root.auditorView.undoes;
  };
  document.addEventListener("auditor-undoes", onAsked);
}
