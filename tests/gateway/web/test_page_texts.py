"""The page's own texts: each is looked up whole, has its sentence in every language, and is made in one piece."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser

from gateway.texts import english
from gateway.web.status.page_files import STATIC

LITERAL = r'"(?:[^"\\]|\\.)*"'
TEXT = re.compile(rf"(?<![\w.])t\(\s*({LITERAL})")
COUNTED = re.compile(rf"(?<![\w.])n\(\s*({LITERAL}),\s*({LITERAL})")
PLACE = re.compile(r"\{\w+\}")
SHOWING = {
    "because": (0, 1),
    "make": (2,),
    "makeStep": (0,),
    "setText": (1,),
    "titled": (0,),
    "toast": (0,),
    "withCode": (1,),
    "confirmed": (0, 1, 2),
    "Refused": (0,),
    "NotShown": (0,),
    "bars": (0,),
    "setAttribute": (1,),
}
"""Calls whose arguments people read, by their places."""
CALL = re.compile(rf"(?<![\w])(?:{'|'.join(SHOWING)})\(")
LABELLING = re.compile(r"\.(?:title|alt|placeholder|ariaLabel) = ([^;]*);")
ASKED = re.compile(r"\b(?:title|label|yes|text): ([^,}]*)[,}]")
"""Fields of what is asked, and of tables of words."""
FOR_PROGRAMS = re.compile(rf"spoken\([^)]*\)|\w+\(\s*{LITERAL}|[!=]==? {LITERAL}|\[{LITERAL}\]|\?\? {LITERAL}(?=\])")
"""Literals that nobody reads, within what is shown: what other calls take, and what is compared."""
CLASS = re.compile(r"[.]([a-z][a-z-]*)")
SELECTOR = re.compile(r"^[.]|[#\[<>=/()]|^[A-Z]+$|^[A-Z][a-z]+(?:-[A-Z][a-z]+)+$")
"""Literals that are selectors, addresses, methods or names of headers."""
NAMES = {"Location", "Escape", "Edge gateway"}
"""A header, a key and the product."""


class Document(HTMLParser):
    """The texts of the document."""

    EMPTY = frozenset({"meta", "link", "img", "input", "br"})
    NOT_READ = frozenset({"script", "style", "noscript", "code"})
    LABELS = ("aria-label", "title", "placeholder", "alt")

    def __init__(self):
        super().__init__()
        self.within = []
        self.texts = set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.texts |= {given[name] for name in self.LABELS if given.get(name)}
        if tag not in self.EMPTY:
            self.within.append(tag in self.NOT_READ or given.get("translate") == "no")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            self.within.pop()

    def handle_data(self, data):
        if not any(self.within):
            self.texts.add(" ".join(data.split()))


def is_read(text):
    """Tell whether a text has words, or a mark that a language writes in its own way, outside its places."""
    return text not in NAMES and re.search(r"[^\W\d_]|[:;]", PLACE.sub("", text)) is not None


def scripts():
    """Return the page's modules by name, without comments, but that which has forms of the gateway's sentences."""
    return {
        path.name: re.sub(r"(?m)(?:^|(?<= ))// .*$", "", path.read_text("utf-8"))
        for path in sorted(STATIC.glob("*.js"))
        if path.name != "recognised.js"
    }


def written():
    """Return the page's texts, those that depend on a number with both forms."""
    document = Document()
    document.feed((STATIC / "index.html").read_text("utf-8"))
    texts = set(document.texts)
    for script in scripts().values():
        texts |= {json.loads(text) for text in TEXT.findall(script)}
        texts |= {(json.loads(one), json.loads(other)) for one, other in COUNTED.findall(script)}
    return {text for text in texts if is_read(text if isinstance(text, str) else text[1])}


def known():
    """Return the page's English sentences."""
    own = [sentence for key, sentence in english().items() if key.startswith(("page.", "mark."))]
    return [sentence if isinstance(sentence, str) else (sentence["one"], sentence["other"]) for sentence in own]


def test_each_text_of_the_page_is_in_the_files_of_the_languages():
    assert len(written()) > 600
    assert sorted(map(str, written() - set(known()))) == []


def test_each_sentence_of_the_page_in_the_files_is_used():
    marks = {sentence for key, sentence in english().items() if key.startswith("mark.")}
    assert sorted(map(str, set(known()) - written() - marks)) == []


def test_no_english_text_of_the_page_stands_twice():
    """A text is looked up by its English."""
    times = Counter(one if isinstance(one, str) else one[1] for one in known())
    assert [text for text, count in times.items() if count > 1] == []


def behind(script, start):
    """Return the place behind the literal that begins at `start`."""
    at = start + 1
    while script[at] != script[start]:
        if script[start] == "`" and script.startswith("${", at):
            at = closed(script, at + 2)[1] - 1
        at += 2 if script[at] == "\\" else 1
    return at + 1


def closed(script, start):
    """Return the texts between commas up to the bracket that closes the one before `start`, and the place behind it."""
    parts, begin, depth, at = [], start, 0, start
    while depth or script[at] not in ")]}":
        if script[at] in '"`':
            at = behind(script, at)
            continue
        depth += (script[at] in "([{") - (script[at] in ")]}")
        if script[at] == "," and depth == 0:
            parts, begin = [*parts, script[begin:at]], at + 1
        at += 1
    return [*parts, script[begin:at]], at + 1


def literals(script):
    """Return the strings of a script, and its templates with {} in their places; also those within a place."""
    found, at = [], 0
    while at < len(script):
        if script[at] == '"':
            found.append(json.loads(script[at : behind(script, at)]))
        if script[at] == "`":
            text, inner = template(script[at + 1 : behind(script, at) - 1])
            found += [text, *(one for place in inner for one in literals(place))]
        at = behind(script, at) if script[at] in '"`' else at + 1
    return found


def template(text):
    """Return a template with {} in its places, and what stands there."""
    own, inner, at = "", [], 0
    while at < len(text):
        if text.startswith("${", at):
            end = closed(text, at + 2)[1]
            own, inner, at = own + "{}", [*inner, text[at + 2 : end - 1]], end
        else:
            own, at = own + text[at], at + 1
    return own.replace("\\u00a0", "\u00a0"), inner


def untranslated(script, classes):
    """Yield the words of a module that no language has."""
    bare = COUNTED.sub("n(", TEXT.sub("t(", script))
    for call in CALL.finditer(bare):
        given = closed(bare, call.end())[0]
        label = call[0] == "setAttribute(" and not re.search(r"aria-label|title", given[0])
        shown = [] if label else [given[place] for place in SHOWING[call[0][:-1]] if place < len(given)]
        yield from (one for part in shown for one in literals(FOR_PROGRAMS.sub("", part)) if is_read(one))
    bare = "".join(without_classes(bare))
    for words in (*LABELLING.findall(bare), *ASKED.findall(bare)):
        yield from (one for one in literals(FOR_PROGRAMS.sub("", words)) if is_read(one))
    for one in literals(bare):
        if is_sentence(one) and not {word for word in one.replace("{}", " ").split() if word[-1] != "-"} <= classes:
            yield one


def without_classes(script):
    """Yield the parts of a script outside calls that set the classes of a node."""
    at = 0
    for call in re.finditer(r"setClass\(", script):
        yield script[at : call.end()]
        at = closed(script, call.end())[1] - 1
    yield script[at:]


def is_sentence(text):
    """Tell whether a literal reads as words for people, wherever it stands."""
    if SELECTOR.search(text) or text in NAMES:
        return False
    return re.search(r"[a-z]{2,}[,.:;]? \{?[a-zA-Z]|^[A-Z][a-z]+|[:;] \{\}|\{\}[:;] ", text) is not None


def test_no_words_are_shown_that_no_language_has():
    """No literal is shown as it is, and no sentence is put together of parts."""
    styles = "".join(path.read_text("utf-8") for path in STATIC.glob("*.css"))
    classes = set(CLASS.findall(styles))
    found = {name: sorted(set(untranslated(script, classes))) for name, script in scripts().items()}
    assert {name: words for name, words in found.items() if words} == {}


def given_places(words):
    """Return the names in an object of places; None for one that is made elsewhere."""
    if not words.startswith("{") or "..." in words:
        return None
    return {part.partition(":")[0].strip() for part in closed(words, 1)[0] if part.strip()}


def test_each_place_of_a_text_is_filled():
    wrong = []
    for name, script in scripts().items():
        for call in re.finditer(r"(?<![\w.])(?:t|n)\((?=\s*\")", script):
            parts = [part.strip() for part in closed(script, call.end())[0]]
            forms, rest = (parts[:1], parts[1:]) if call[0] == "t(" else (parts[:2], parts[3:])
            given = given_places(rest[0]) if rest and rest[0] else set()
            wanted = set(PLACE.findall("".join(forms))) - ({"{count}"} if call[0] == "n(" else set())
            if given is not None and {f"{{{one}}}" for one in given} != wanted:
                wrong.append((name, forms[-1]))
    assert wrong == []
