// The page's language. Its own texts are English in the code, and another language's file has what stands for each: one
// without a place, as `t("Sign in")`, one with places, as `t("Open {lane}", { lane })`, and one that depends on a number,
// as `n("{count} lane", "{count} lanes", count)`. The gateway's texts come with a key; what comes without one is recognised.
import { Catalogue } from "./catalogue.js";
import { Recogniser } from "./recognised.js";

export const LANGUAGES = JSON.parse(document.documentElement.dataset.languages); // their names
const CHOICE = "language";
const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt"];

export const language = chosen();
const [english, own] = language === "en" ? [{}, {}] : await Promise.all(["en", language].map(fetched));
const catalogue = new Catalogue(language, english, own);
const recogniser = language === "en" ? null : new Recogniser(language, english, own);

export function choose(name) {
  localStorage.setItem(CHOICE, name);
  location.reload();
}

export const t = (text, places = {}) => catalogue.text(text, places);
export const n = (one, other, count, places = {}) => catalogue.plural(one, other, { ...places, count });

// What somebody says of something.
export const because = (text, why) => t("{text}: {why}", { text, why });

// Who did something, as a person's name or "lane".
export const actor = (by) => (by === "lane" ? t("the lane") : recogniser?.named(by) ?? by);

// A number with so many decimals, as the language writes it.
export function decimal(amount, digits) {
  return amount.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// What the gateway says without a key.
export const recognised = (text) => recogniser?.shown(text) ?? text;

// What the gateway says: by its key, if it has one.
export function say(words) {
  return typeof words === "string" ? recognised(words) : catalogue.say(words, recognised) ?? words.english;
}

// A row's text with this name.
export const spoken = (row, name) => say(row.said?.[name] ?? row[name]);

// Whether a text has this name or number in one of its places.
export function mentions(words, name) {
  return Object.values(words?.arguments ?? {}).some((one) => one === name || mentions(one, name));
}

// Names that people gave, as of devices: sentences have them as they are. `part`: the part of the page that has them.
export function keepNames(part, names) {
  recogniser?.keepNames(part, names);
}

// The texts of the document and of its templates. What stands below translate="no" is a name, or somebody's words; the
// label of such a list is the page's own.
export function translateDocument() {
  document.documentElement.lang = language;
  translateBelow(document.documentElement);
  for (const template of document.querySelectorAll("template")) translateBelow(template.content);
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
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (node.nodeType === Node.TEXT_NODE) {
      if (parent?.translate !== false) node.data = node.data.replace(/\S.*\S|\S/s, (text) => t(text.replace(/\s+/g, " ")));
    } else {
      for (const name of ATTRIBUTES) if (node.getAttribute(name)) node.setAttribute(name, t(node.getAttribute(name)));
    }
  }
}
