// Nodes of drawings.
const SVG = "http://www.w3.org/2000/svg";

export function part(tag, attributes = {}, ...inside) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}

// What it shows, for those who hear the page, and who point at it.
export const titled = (text) => part("title", {}, text);
