// The sentences of a language: of the page's own texts by their English, of the gateway's texts by their key.
const PLACE = /\{(\w+)\}/g;
const OWN = /^(?:page|mark)\./; // keys of the page's own texts
const UNBROKEN = / (?=[:;!?»])|(?<=«) /g; // where a language has a space before a mark, no line breaks there

export class Catalogue {
  constructor(language, english, sentences) {
    this.language = language;
    this.sentences = sentences; // by key
    this.plurals = new Intl.PluralRules(language);
    const own = Object.entries(english).filter(([key]) => OWN.test(key) && sentences[key]);
    this.own = new Map(own.map(([key, text]) => [text.other ?? text, sentences[key]])); // by the English, in the plural
  }

  // One of the page's own texts. In its places stand numbers, names, and texts of this language.
  text(english, places) {
    return this.filled(this.own.get(english) ?? english, places);
  }

  // The same where it depends on `count`.
  plural(one, other, places) {
    return this.filled(this.own.get(other) ?? { one, other }, places);
  }

  // A text of the gateway; undefined for a key that this language lacks, also one within it: stored texts have the keys of
  // the release that made them. A place that is called "why" has the words of others, which `recognised` looks up; a text
  // has a key of its own; any other place has a name or a number.
  say({ key, arguments: places }, recognised) {
    const shown = Object.entries(places).map(([name, one]) => {
      if (typeof one === "object") return [name, this.say(one, recognised)];
      return [name, name === "why" && typeof one === "string" ? recognised(one) : one];
    });
    const isWhole = key in this.sentences && shown.every(([, one]) => one !== undefined);
    return isWhole ? this.filled(this.sentences[key], Object.fromEntries(shown)) : undefined;
  }

  filled(sentence, places) {
    const form = typeof sentence === "object" ? sentence[this.plurals.select(places.count)] ?? sentence.other : sentence;
    return unbroken(form).replace(PLACE, (_, name) => (typeof places[name] === "number" ? places[name].toLocaleString(this.language) : places[name]));
  }
}

export const unbroken = (text) => text.replace(UNBROKEN, "\u00a0");
