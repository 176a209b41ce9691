// Small ways with the document. Text from the site only ever becomes text, never markup.
const ORDERS = /[\u202a-\u202e]/g; // characters that turn the direction of all behind them around

export const byId = (id) => document.getElementById(id);

export function fromTemplate(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

export function setText(node, text) {
  const shown = String(text).replace(ORDERS, "");
  if (node.textContent !== shown) node.textContent = shown;
}

export function setClass(node, text) {
  if (node.getAttribute("class") !== text) node.setAttribute("class", text);
}

export function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = String(text).replace(ORDERS, "");
  return node;
}

// The same for a name that people gave, which no language changes: a browser that translates leaves it alone.
export function makeNamed(tag, className, name) {
  const node = make(tag, className, name);
  node.translate = false;
  return node;
}

// A sentence with what is to be typed, between backticks, as code.
export function withCode(node, text) {
  node.replaceChildren(...text.split("`").map((part, place) => (place % 2 ? make("code", "", part) : part)));
  return node;
}

export const makeStep = (text) => withCode(make("li"), text);

// Keep one child per item, in the items' order; nodes are kept, so that focus and animations live on.
export function keyed(parent, items, { key, create, update }) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let node = known.get(name);
    if (node) {
      known.delete(name);
    } else {
      node = create(item);
      node.dataset.key = name;
    }
    update(node, item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of known.values()) node.remove();
}
