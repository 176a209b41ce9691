// The page's language. Texts are English in the code; another language's file (`fr.json`) has what stands for each.
//
// Whatever comes into the document is looked up there, the site's own sentences too: events, problems and reasons are
// recognised by their form, as `{0} has been on for {1}`, and what stands in their places is looked up in turn.

import { Catalogue } from "./catalogue.js";

export const LANGUAGES = JSON.parse(document.documentElement.dataset.languages); // their names
const CHOICE = "language";
const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt"];
const MOST_KEPT = 5000;

export const language = chosen();
const catalogue = language === "en" ? null : new Catalogue(...(await Promise.all(["en", language].map(fetched))), language);
const made = new Set(); // what came of looking up: it is not looked up once more

export function choose(name) {
  localStorage.setItem(CHOICE, name);
  location.reload();
}

// The text as it is shown at this node. What stands below translate="no" is a name, or somebody's words.
export function shownAt(node, text) {
  return catalogue === null || node.translate === false ? text : translated(text);
}

export function translated(text) {
  if (catalogue === null || made.has(text)) return text;
  const [, before, words, behind] = /^(\s*)(.*?)(\s*)$/s.exec(text);
  const found = catalogue.find(words.replace(/\s+/g, " "));
  const shown = found === null ? text : before + found + behind;
  keep(shown);
  return shown;
}

function keep(shown) {
  if (made.size >= MOST_KEPT) made.clear();
  made.add(shown);
}

// A text of the gateway in the reader's language: by its key. Words of others are looked up.
export function say(words) {
  if (typeof words === "string") return translated(words);
  const shown = catalogue?.say(words, translated) ?? words.english;
  keep(shown);
  return shown;
}

// A row's text with this name.
export const spoken = (row, name) => say(row.said?.[name] ?? row[name]);

// Whether a text has this name or number in one of its places.
export function mentions(words, name) {
  return Object.values(words?.arguments ?? {}).some((one) => one === name || mentions(one, name));
}

// Names that people gave, as of devices: sentences have them as they are. `part`: the part of the page that has them.
export function keepNames(part, names) {
  catalogue?.keepNames(part, names);
}

// Texts of this document, and from now on those that come into it.
export function followDocument() {
  if (catalogue === null) return;
  document.documentElement.lang = language;
  translateBelow(document.documentElement);
  for (const template of document.querySelectorAll("template")) translateBelow(template.content);
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === "attributes") translateAttribute(target, attributeName);
      else if (type === "characterData") translateText(target);
      else addedNodes.forEach(translateBelow);
    }
  }).observe(document, { subtree: true, childList: true, characterData: true, attributeFilter: ATTRIBUTES });
}

function chosen() {
  const wanted = [localStorage.getItem(CHOICE), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return wanted.find((name) => name in LANGUAGES) ?? "en";
}

async function fetched(name) {
  try {
    const answer = await fetch(`/status/static/${name}.json`, { signal: AbortSignal.timeout(20000) });
    return answer.ok ? await answer.json() : {};
  } catch {
    return {}; // English is better than no page
  }
}

function translateBelow(root) {
  if (root.nodeType === Node.TEXT_NODE) return translateText(root);
  if (root.nodeType !== Node.ELEMENT_NODE && root.nodeType !== Node.DOCUMENT_FRAGMENT_NODE) return;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = root; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) translateText(node);
    else if (node.nodeType === Node.ELEMENT_NODE) for (const name of ATTRIBUTES) translateAttribute(node, name);
  }
}

function translateText(node) {
  const parent = node.parentElement;
  if (parent?.localName === "script" || parent?.localName === "style" || !/[\p{L}:;]/u.test(node.data)) return;
  const shown = parent ? shownAt(parent, node.data) : translated(node.data);
  if (shown !== node.data) node.data = shown;
}

function translateAttribute(node, name) {
  const text = node.getAttribute(name);
  if (!text) return;
  const shown = shownAt(node, text);
  if (shown !== text) node.setAttribute(name, shown);
}
