// What the gateway says without a key, recognised by the form of its English sentence: of stored events, of refusals and
// of drivers. None of the page's own texts comes here.
//
// A name that people gave is shown as it is. A place whose name begins with "who" has the name of a person. In any other
// place a text is a name if it is one of those that the page has heard of (`keepNames`).
import { unbroken } from "./catalogue.js";

const SHORT = 6; // letters: a form with fewer of its own, and no word at its begin, counts for numbers alone
const MOST_KNOWN = 5000;
const NAME = "((?:(?!: ).)+?)"; // of a person, with more behind it
const PLACE = /\{(\w+)\}/g;
const JOINTS = ["; ", " · ", ". ", ": ", ", "]; // between texts that are put together
const NUMBER = /^((?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.(\d+))?)( %)?$/; // as English writes it
const NAMED = /\b(?:card|plate) \{(\w+)\}/g; // what stands there is no number, whatever it looks like
const ACTORS = /^(the lane|schedule|central, event \d+|a command|an unknown user)$/; // may stand where people's names do

export class Recogniser {
  constructor(language, english, sentences) {
    this.language = language;
    this.whole = new Map();
    this.known = new Map(); // what was looked up lately: parts of a text are asked for again and again
    this.forms = new Map(); // by their first word, "" for those that begin with a place; the most telling form first
    this.given = new Map(); // names that people gave, by the part of the page that has heard of them
    this.names = new Set(); // all of them
    for (const [key, text] of Object.entries(english)) {
      if (key.startsWith("page.")) continue;
      for (const [english, own] of pairs(text, sentences[key])) this.add(english, unbroken(own));
    }
    for (const forms of this.forms.values()) forms.sort(byTelling);
  }

  keepNames(part, names) {
    const given = new Set(names);
    const before = this.given.get(part);
    if (before?.size === given.size && [...given].every((name) => before.has(name))) return;
    this.given.set(part, given);
    this.names = new Set([...this.given.values()].flatMap((one) => [...one]));
    this.known.clear();
  }

  add(english, text) {
    this.whole.set(english, text);
    const names = [...english.matchAll(PLACE)].map(([, name]) => name);
    if (!names.length) return;
    const bare = english.replace(PLACE, "\0");
    const letters = bare.replace(/[^\p{L}]/gu, "").length;
    const first = firstWord(bare);
    const place = !first && letters < SHORT ? "([\\d.,:-]+)" : "(.+?)";
    const source = english.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}(?=(.?))/gs, (_, name, more) => (more && isPerson(name) ? NAME : place));
    const unwritten = new Set([...english.matchAll(NAMED)].map(([, name]) => name));
    if (!this.forms.has(first)) this.forms.set(first, []);
    this.forms.get(first).push({ letters, length: bare.length, text, names, unwritten, pattern: new RegExp(`^${source}$`, "su") });
  }

  // The sentence in this language, or as it came.
  shown(text) {
    const [, before, words, behind] = /^(\s*)(.*?)(\s*)$/s.exec(text);
    const found = this.find(words.replace(/\s+/g, " "));
    return found === null ? text : before + found + behind;
  }

  // What stands for a text, null when nothing does.
  find(text) {
    if (!/\p{L}/u.test(text)) return this.whole.get(text) ?? null; // a mark between two texts
    const known = this.known.get(text);
    if (known !== undefined) return known;
    const found = this.whole.get(text) ?? this.byForm(text) ?? this.byBegin(text) ?? this.byParts(text);
    if (this.known.size >= MOST_KNOWN) this.known.clear();
    this.known.set(text, found);
    return found;
  }

  // The most telling form that fits: a device may be called as another form begins.
  byForm(text) {
    let best = null;
    let places = null;
    for (const first of new Set([firstWord(text), ""])) {
      for (const form of this.forms.get(first) ?? []) {
        if (best && byTelling(best, form) <= 0) break;
        const told = form.pattern.exec(text);
        if (!told) continue;
        [best, places] = [form, told];
        break;
      }
    }
    return best && best.text.replace(PLACE, (_, name) => this.placed(places[best.names.indexOf(name) + 1], best, name));
  }

  placed(text, form, place) {
    return isPerson(place) ? this.named(text) : this.inPlace(text, form.unwritten.has(place));
  }

  // A person's name, with what is said behind it.
  named(text) {
    const end = text.indexOf(": ");
    if (end > 0) return this.named(text.slice(0, end)) + this.mark(": ") + this.inPlace(text.slice(end + 2), false);
    return ACTORS.test(text) ? this.find(text) ?? text : text;
  }

  // A sentence that elsewhere is a part of one: it begins with a capital, or ends with a full stop.
  byBegin(text) {
    if (text.endsWith(".")) {
      const found = this.find(text.slice(0, -1));
      return found === null ? null : `${found}.`;
    }
    const small = text[0].toLowerCase() + text.slice(1);
    const found = small === text ? null : this.whole.get(small) ?? this.byForm(small);
    return found ? found[0].toUpperCase() + found.slice(1) : null;
  }

  // A name or a short text before a sentence that has joints of its own; else each part by itself.
  byParts(text) {
    for (const joint of JOINTS) {
      const place = text.indexOf(joint);
      const rest = text.slice(place + joint.length);
      const found = place < 1 ? null : this.whole.get(rest) ?? this.byForm(rest);
      if (found !== null) return this.inPlace(text.slice(0, place), false) + this.mark(joint) + found;
    }
    for (const joint of JOINTS) {
      const parts = text.split(joint);
      if (parts.length === 1) continue;
      const found = parts.map((part) => this.names.has(part) ? null : joint === ". " ? this.find(`${part}.`)?.slice(0, -1) ?? null : this.find(part));
      if (found.some(Boolean)) return found.map((one, place) => one ?? this.number(parts[place])).join(this.mark(joint));
    }
    return null;
  }

  // A joint as the language has it.
  mark(joint) {
    return joint.replace(/^\S/, (one) => this.whole.get(one) ?? one);
  }

  inPlace(text, unwritten) {
    if (this.names.has(text)) return text;
    return this.find(text) ?? (unwritten ? text : this.number(text));
  }

  // A number as the language writes it; any other text as it is.
  number(text) {
    const [, amount, decimals = "", share = ""] = NUMBER.exec(text) ?? [];
    if (!amount || !/[.,]/.test(amount)) return text;
    const digits = { minimumFractionDigits: decimals.length, maximumFractionDigits: decimals.length };
    return Number(amount.replaceAll(",", "")).toLocaleString(this.language, digits) + share;
  }
}

// An English sentence with the one of this language, for each plural form that both have.
function pairs(english, own) {
  if (typeof english === "string") return own ? [[english, own]] : [];
  return Object.keys(english).map((form) => [english[form], own?.[form] ?? own?.other]).filter(([, text]) => text);
}

const isPerson = (place) => place.startsWith("who");
const byTelling = (one, other) => other.letters - one.letters || other.length - one.length;

// "" where a place begins the text or touches its first word.
const firstWord = (text) => /^[^\s\0]+(?=\s|$)/.exec(text)?.[0] ?? "";
