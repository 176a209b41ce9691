"""Texts for people: one file of sentences by key for each language, and the sentence that is made of a text."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from gateway.texts import FOLDER, Words, english, has_key, keyed, read_language, text

ROOT = Path(__file__).parents[3]
PLACE = re.compile(r"\{(\w*)\}")
LANGUAGES = sorted(path.stem for path in FOLDER.glob("*.json"))
WITHOUT_A_CALL = ("language", "mark.", "page.", "said.")
"""Keys of what the page or a stored sentence has in English, for which nothing makes a text yet."""


def forms(sentence):
    return [sentence] if isinstance(sentence, str) else list(sentence.values())


def places(sentence):
    return sorted(set(PLACE.findall("".join(forms(sentence)))))


def made_texts():
    """Yield each call that makes a text: its key, with * for what is computed, its arguments, and where it stands."""
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        source = path.read_text("utf-8")
        if "gateway.texts import" not in source and path.parent != FOLDER:
            continue
        for call in ast.walk(ast.parse(source)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "text":
                key = call.args[0]
                parts = key.values if isinstance(key, ast.JoinedStr) else [key]
                name = "".join(part.value if isinstance(part, ast.Constant) else "*" for part in parts)
                given = [one.arg for one in call.keywords]
                yield name, given, f"{path.relative_to(ROOT)}:{call.lineno}"


def test_a_language_is_one_file_with_its_own_name():
    assert LANGUAGES[:2] == ["en", "fr"]
    assert len({read_language(name)["language"] for name in LANGUAGES}) == len(LANGUAGES)


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_has_the_same_keys_in_order_and_each_key_once(name):
    keys = [key for key, _ in json.loads((FOLDER / f"{name}.json").read_text("utf-8"), object_pairs_hook=list)]
    assert [key for key, count in Counter(keys).items() if count > 1] == []
    assert keys == sorted(english())


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_sentence_has_the_places_of_the_english_one(name):
    others = read_language(name)
    assert [key for key, sentence in english().items() if places(others[key]) != places(sentence)] == []
    assert [key for key, sentence in others.items() if "" in forms(sentence) or "" in places(sentence)] == []


def test_no_english_sentence_stands_twice_for_one_who_reads_it_back():
    """A sentence without its key is found by its form."""
    times = Counter(form for key, sentence in english().items() for form in forms(sentence) if key.startswith("said."))
    assert [form for form, count in times.items() if count > 1] == []


def test_a_mark_has_its_space_in_french():
    """A value in a place has its space already, so it is not looked at."""
    bare = re.compile(r"[^\s{}\d\u00a0][;!?»](\s|$)|[^\s{}\u00a0]:(\s|$)|«[^ ]")
    assert [form for sentence in read_language("fr").values() for form in forms(sentence) if bare.search(form)] == []


def test_each_text_that_is_made_has_its_sentence_and_fills_its_places():
    wrong = []
    for key, given, where in made_texts():
        pattern = re.compile(re.escape(key).replace(r"\*", r"\w+"))
        found = [sentence for known, sentence in english().items() if pattern.fullmatch(known)]
        if not found or any(places(sentence) != sorted(given) for sentence in found):
            wrong.append((where, key))
    assert wrong == []


def test_each_key_is_used():
    patterns = [re.escape(key).replace(r"\*", r"\w+") for key, _, _ in made_texts()]
    used = re.compile("|".join(patterns) or "$.")
    assert [key for key in english() if not key.startswith(WITHOUT_A_CALL) and not used.fullmatch(key)] == []


@pytest.fixture
def sentences(monkeypatch):
    known = {"waits": "{what} waits: {why}", "records": {"one": "1 record", "other": "{count} records"}}
    monkeypatch.setattr("gateway.texts.english", lambda: known)


@pytest.mark.usefixtures("sentences")
def test_english_is_made_of_the_key_and_what_stands_in_its_places():
    inner = text("waits", what=1234.5, why="it is {lost}")
    assert str(text("waits", what="Gate", why=inner)) == "Gate waits: 1,234.5 waits: it is {lost}"
    assert [str(text("records", count=count)) for count in (0, 1, 1204)] == ["0 records", "1 record", "1,204 records"]


@pytest.mark.usefixtures("sentences")
def test_the_page_gets_the_key_and_the_arguments_and_programs_the_sentence():
    told = text("waits", what="Gate", why=text("records", count=1))
    assert keyed(told) == {
        "key": "waits",
        "arguments": {"what": "Gate", "why": {"key": "records", "arguments": {"count": 1}}},
        "english": "Gate waits: 1 record",
    }
    assert keyed("a device's own words") == "a device's own words"
    assert TypeAdapter(tuple[Words, ...]).dump_python((told, "own"), mode="json") == ["Gate waits: 1 record", "own"]


def test_a_text_is_known_by_its_key_alone():
    assert has_key(text("waits", what="", why=""), "waits")
    assert not has_key("waits", "waits")
    assert text("records", count=1) == text("records", count=1) != text("records", count=2)
