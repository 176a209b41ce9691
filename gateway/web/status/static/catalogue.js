// A catalogue of texts in the gettext format: English texts, with places as {0}, and what stands for them.
const SHORT = 6; // letters: a form with fewer of its own, and no word at its begin, counts for numbers alone
const MOST_KNOWN = 5000;
const JOINTS = ["; ", " · ", ". ", ": ", ", "]; // between texts that are put together
const NUMBER = /^((?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.(\d+))?)( %)?$/; // as English writes it
const NAMED = /\b(?:card|plate) \{(\d)\}/g; // what stands there is no number, whatever it looks like
const UNBROKEN = / (?=[:;!?»])|(?<=«) /g; // where a language has a space before a mark, no line breaks there

export class Catalogue {
  constructor(source, language) {
    this.language = language;
    this.whole = new Map();
    this.known = new Map(); // what was looked up lately: parts of a text are asked for again and again
    this.forms = new Map(); // by their first word, "" for those that begin with a place; the most telling form first
    for (const [, id, text] of source.replaceAll('"\n"', "").matchAll(/^msgid (".+")\nmsgstr (".+")$/gm)) {
      this.add(JSON.parse(id), JSON.parse(text).replace(UNBROKEN, "\u00a0"));
    }
    for (const forms of this.forms.values()) forms.sort((one, other) => other.letters - one.letters || other.length - one.length);
  }

  add(english, text) {
    this.whole.set(english, text);
    if (!english.includes("{0}")) return;
    const letters = english.replace(/\{\d\}|[^\p{L}]/gu, "").length;
    const first = firstWord(english.replace(/\{\d\}/g, "\0"));
    const place = !first && letters < SHORT ? "([\\d.,:-]+)" : "(.+?)";
    const source = english.split(/\{\d\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(place);
    const names = new Set([...english.matchAll(NAMED)].map(([, number]) => number));
    this.forms.set(first, [...(this.forms.get(first) ?? []), { letters, length: english.length, text, names, pattern: new RegExp(`^${source}$`, "su") }]);
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

  byForm(text) {
    for (const first of [firstWord(text), ""]) {
      for (const form of this.forms.get(first) ?? []) {
        const told = form.pattern.exec(text);
        if (told) return form.text.replace(/\{(\d)\}/g, (_, place) => this.inPlace(told[Number(place) + 1], form.names.has(place)));
      }
    }
    return null;
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
      const found = parts.map((part) => this.find(part) ?? (joint === ". " ? this.find(`${part}.`)?.slice(0, -1) ?? null : null));
      if (found.some(Boolean)) return found.map((one, place) => one ?? this.number(parts[place])).join(this.mark(joint));
    }
    return null;
  }

  // A joint as the language has it.
  mark(joint) {
    return joint.replace(/^\S/, (one) => this.whole.get(one) ?? one);
  }

  inPlace(text, isName) {
    return this.find(text) ?? (isName ? text : this.number(text));
  }

  // A number as the language writes it; any other text as it is.
  number(text) {
    const [, amount, decimals = "", share = ""] = NUMBER.exec(text) ?? [];
    if (!amount || !/[.,]/.test(amount)) return text;
    const digits = { minimumFractionDigits: decimals.length, maximumFractionDigits: decimals.length };
    return Number(amount.replaceAll(",", "")).toLocaleString(this.language, digits) + share;
  }
}

// "" where a place begins the text or touches its first word.
const firstWord = (text) => /^[^\s\0]+(?=\s|$)/.exec(text)?.[0] ?? "";
