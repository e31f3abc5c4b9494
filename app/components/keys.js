// Single keys: what each does, in one place for every bench. People may change them or switch them off; that is kept
// in the browser. A digit always means a class, the same one everywhere.

const KEYS_KEPT = "auditor-keys";
const MOST_DIGITS = 10;
const TAKEN_BY_PAGE = ["c", "r", "?"]; // Streamlit's own keys, and this list

// Names that end in a digit of their own ("3", "digit 3") have it as their key, others their place; the tenth has 0.
function digitOf(classNames, label) {
  const labels = labelsOf(classNames);
  const place = labels.indexOf(label);
  if (place < 0 || labels.length > MOST_DIGITS) return null;
  const digits = labels.map((one) => (/(?:^|[^0-9])([0-9])$/.exec(classNames[one]) || [])[1]);
  const areOwn = digits.every(Boolean) && new Set(digits).size === labels.length;
  return areOwn ? digits[place] : String((place + 1) % 10);
}

const classOfDigit = (classNames, digit) => classNames.findIndex((_, label) => digitOf(classNames, label) === digit);

const SHIFT = "shift+"; // before a letter: with Shift, it is a key of its own
const keyText = (key) => (key.startsWith(SHIFT) ? `Shift+${key.slice(SHIFT.length).toUpperCase()}` : key.toUpperCase());

class Keymap {
  // actions: {id, key, text} each, in the order in which the list shows them.
  constructor(actions) {
    this.actions = actions;
    try {
      this.kept = JSON.parse(localStorage.getItem(KEYS_KEPT)) || {};
    } catch (error) {
      this.kept = {};
    }
    this.kept.keys ||= {};
  }

  get isOff() {
    return Boolean(this.kept.off);
  }

  keyOf(id) {
    const action = this.actions.find((one) => one.id === id);
    return action ? this.kept.keys[id] || action.key : null;
  }

  // What a pressed key does; a letter with Shift, where it does nothing of its own, does what the letter does.
  idOf(key, withShift = false) {
    if (this.isOff) return undefined;
    const of = (one) => this.actions.map(({ id }) => id).find((id) => this.keyOf(id) === one);
    return (withShift ? of(SHIFT + key) : undefined) ?? of(key);
  }

  digit(classNames, label) {
    return this.isOff ? null : digitOf(classNames, label);
  }

  // What is written on a button.
  shown(id) {
    return this.isOff ? "" : keyText(this.keyOf(id) || "");
  }

  // Why a key cannot be given to an action, or null.
  refusal(id, key) {
    const sign = key.startsWith(SHIFT) ? key.slice(SHIFT.length) : key;
    if (sign.length !== 1 || key === " ") return "One letter or sign, please.";
    if (/[0-9]/.test(key)) return "Digits name classes.";
    if (TAKEN_BY_PAGE.includes(key)) return `${key.toUpperCase()} belongs to the page.`;
    const other = this.actions.find((one) => one.id !== id && this.keyOf(one.id) === key);
    return other ? `${key.toUpperCase()} is taken: ${typeof other.text === "object" ? Object.values(other.text)[0] : other.text}.` : null;
  }

  change(id, key) {
    this.kept.keys[id] = key;
    this.keep();
  }

  turn(off) {
    this.kept.off = off;
    this.keep();
  }

  reset() {
    this.kept = { keys: {} };
    this.keep();
  }

  keep() {
    localStorage.setItem(KEYS_KEPT, JSON.stringify(this.kept));
  }
}

// What is in which part of the list, by the names of actions and of keys; whatever else is a decision.
const KEY_GROUPS = {
  Judge: [],
  Move: ["grid", "cards", "back", "next", "← →", "?"],
  Look: ["large", "smooth", "lens", "alike", "engines", "colours", "doubt", "light", "given", "suggested", "1 – 9"],
};
const groupOf = (name) => Object.keys(KEY_GROUPS).find((group) => KEY_GROUPS[group].includes(name)) || "Judge";

const DIGITS = "0 – 9";

// The list of keys; each can be changed there. ``fixed``: [key, what it does] of those that cannot. ``says`` is given
// an action's id, or a fixed key, and its text, and returns what is written, or nothing where it is not listed.
// ``where``: what these keys are of; a letter may do another thing elsewhere.
function showKeys(layer, where, keymap, classNames, fixed, redraw, says = (_, text) => text) {
  const told = el("small", { class: "told", role: "status" });
  const again = () => {
    redraw();
    showKeys(layer, where, keymap, classNames, fixed, redraw, says);
  };
  const listed = keymap.actions.map(({ id, text }) => ({ id, text: says(id, text) })).filter(({ text }) => text);
  const rows = listed.map(({ id, text }) => {
    const key = el("button", { class: "plain key-of", title: "Change this key", "data-action": id }, [
      el("kbd", { text: keyText(keymap.keyOf(id) || "") }),
    ]);
    key.addEventListener("click", () => {
      key.replaceChildren(el("span", { text: "press a key" }));
      layer.capture = (pressed) => {
        layer.capture = null;
        if (pressed === "Escape") return again();
        const refusal = keymap.refusal(id, pressed);
        if (!refusal) keymap.change(id, pressed);
        again();
        if (refusal) layer.querySelector(".told").textContent = refusal;
        return null;
      };
    });
    return [id, el("div", { class: "key" }, [key, el("span", { text })])];
  });
  const { length } = labelsOf(classNames);
  const digits = length && length <= MOST_DIGITS
    ? [[DIGITS, "the class with this key"]] : [];
  const spoken = [...digits, ...fixed].map(([key, text]) => [key, says(key, text)]).filter(([, text]) => text);
  const plain = spoken.map(([key, text]) =>
    [key, el("div", { class: "key" }, [el("span", { class: "fixed" }, [el("kbd", { text: key })]), el("span", { text })])]);
  const groups = Object.keys(KEY_GROUPS).map((group) =>
    el("section", {}, [
      el("h4", { text: group }),
      el("div", { class: "of-group" }, [...rows, ...plain].filter(([name]) => groupOf(name) === group).map(([, row]) => row)),
    ]));
  const off = el("button", {
    class: "plain", "data-testid": "keys-off", text: keymap.isOff ? "Switch single keys on" : "Switch single keys off",
    onclick: () => { keymap.turn(!keymap.isOff); again(); },
  });
  const reset = el("button", { class: "plain", text: "Reset all keys", onclick: () => { keymap.reset(); again(); } });
  const list = el("div", { class: `keys ${keymap.isOff ? "off" : ""}`, "data-testid": "help" }, groups);
  const how = el("small", { text: "Click a key to change it." });
  showLayer(layer, `Keys of ${where}`, el("div", { class: "keysheet" }, [how, list, told, el("div", { class: "row" }, [off, reset])]));
  layer.anyKeyCloses = true;
}

// Keys while a sheet is open; true where the sheet took this one.
function keyOfLayer(layer, event) {
  if (layer.hidden) return false;
  if (layer.capture) {
    event.preventDefault();
    if (event.key === "Shift") return true; // its letter follows
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    layer.capture(event.shiftKey && /^[a-z]$/.test(key) ? SHIFT + key : key);
  } else if (event.key === "Escape" || (layer.anyKeyCloses && event.key.length === 1 && event.key !== " ")) hideLayer(layer);
  return true;
}

// A button that says its key.
const actionButton = (shown, text, action, tone = "", more = {}) =>
  el("button", { class: `action ${tone}`, onclick: action, "data-key": shown, "aria-keyshortcuts": shown || null, ...more }, [
    shown ? el("kbd", { text: shown }) : null, el("span", { text }),
  ].filter(Boolean));
