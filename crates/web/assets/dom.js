// Making elements. All text goes through `plain` and into text nodes: what agents and scripts wrote
// is never read as markup, and cannot command a terminal or turn the reading direction around.

const SVG = "http://www.w3.org/2000/svg";
const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const HIDDEN = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text) {
  return String(text).replace(ESCAPES, "").replace(/\r\n/g, "\n").replace(CONTROLS, "").replace(HIDDEN, "\ufffd");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : plain(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Replaces what is in an element, and leaves the focus where it was if that is still there.
export function replace(container, ...children) {
  const active = document.activeElement;
  const key = container.contains(active) ? active?.dataset?.key : undefined;
  const scrolled = [...container.querySelectorAll("[data-scroll]")].map((it) => [it.dataset.scroll, it.scrollTop]);
  container.replaceChildren(...children.flat(Infinity).filter((it) => it instanceof Node));
  for (const [name, top] of scrolled) {
    const again = container.querySelector(`[data-scroll="${CSS.escape(name)}"]`);
    if (again) again.scrollTop = top;
  }
  if (key !== undefined) container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// A width in percent; the content policy forbids style attributes but not this.
export function wide(element, share) {
  element.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return element;
}

export function card(title, attributes, ...children) {
  return h("section", { class: "card", ...attributes }, title && h("h2", {}, title), ...children);
}

export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl", { class: "facts" }, known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function link(text, target, attributes) {
  return h("a", { href: target, ...attributes }, text);
}

// A button that puts a text on the clipboard.
export function copier(text) {
  const button = h("button", { class: "small", type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Cannot copy";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}

// Tabs: arrow keys move between them, and only the current one is in the tab order.
export function tabs(label, entries, current, choose) {
  const buttons = entries.map(([id, title, count]) => h("button", {
    type: "button", role: "tab", "aria-selected": String(id === current), tabindex: id === current ? "0" : "-1",
    "data-key": `tab-${id}`, onclick: () => choose(id),
  }, title, count ? h("span", { class: "count" }, count) : null));
  const move = (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = buttons[(to + buttons.length) % buttons.length];
    next.focus();
    next.click();
  };
  return h("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: move }, buttons);
}

export async function ask(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) if (value !== undefined) query.set(name, value);
  // A plus sign is a plus sign to the server.
  const text = query.toString().replace(/\+/g, "%20");
  const answer = await fetch(text ? `${path}?${text}` : path);
  if (!answer.ok) throw new Error(answer.status === 404 ? "This is no longer there." : `The server said ${answer.status}.`);
  return answer.json();
}
