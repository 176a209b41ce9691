"""Central's answers, parsed: what counts, what is mended, what is refused, and for how long the loop is held."""

from __future__ import annotations

import contextlib
import gc
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.central.client.answers import DEEPEST, Unkept, Unreadable, read_object
from gateway.central.client.connections import BODY_LIMIT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PADDING = {"padding": "x" * 50_000}


def read(raw):
    """The object; None when this is none."""
    try:
        return read_object(raw)
    except Unreadable:
        return None


def seconds_of(raw):
    """CPU seconds of this thread in which a body is read or refused, the least of three.

    Without the collector, whose time goes by all that the tests have in memory.
    """
    taken = []
    gc.disable()
    try:
        for _ in range(3):
            began = time.thread_time()
            with contextlib.suppress(Unreadable):
                read_object(raw)
            taken.append(time.thread_time() - began)
    finally:
        gc.enable()
    return min(taken)


@given(answer=st.dictionaries(st.text(max_size=8), VALUES, max_size=5), spaced=st.booleans(), escaped=st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_large_answer_is_read_as_a_small_one(answer, spaced, escaped):
    def text(value):
        return json.dumps(value, ensure_ascii=escaped, indent=1 if spaced else None).encode()

    assert read(text(answer)) == answer
    assert read(text({**answer, **PADDING})) == {**answer, **PADDING}
    twelve = {"list": [answer] * 12, "one": {"list": [answer, *[PADDING["padding"][:9000]] * 4, answer]}, "last": 1.5}
    assert read(text(twelve)) == twelve


@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: text[:-1],
        lambda text: text[:-40_000],
        lambda text: text + "x",
        lambda text: f"[{text}]",
        lambda text: text.replace("[1, 2]", "[1, 2"),
        lambda text: text.replace("[1, 2]", "[1 2]"),
        lambda text: text.replace("[1, 2]", "[1,]"),
        lambda text: text.replace("[1, 2]", "["),
        lambda text: text.replace("[1, 2]", "[" * 100_000),
        lambda text: text.replace('"list":', "7:"),
        lambda text: text.replace('"list":', '"list"'),
        lambda text: " " * 60_000,
        lambda text: "{" + " " * 60_000,
        lambda text: "<html>" * 10_000,
    ],
)
def test_what_is_no_object_is_none(wrong):
    text = json.dumps({"list": [1, 2], **PADDING})
    assert read(text.encode()) == json.loads(text)
    assert read(wrong(text).encode()) is None


def test_bytes_that_are_no_text_are_none():
    assert read(b'{"a": "' + b"\xff" * 60_000 + b'"}') is None


@pytest.mark.parametrize("name", ["Zoë", "\U0001f600", "plain"])
def test_letters_that_are_written_as_numbers_are_letters(name):
    """As many servers write names."""
    raw = json.dumps({"list": [{"name": name, "number": number} for number in range(4000)]}).encode()
    assert read(raw) == json.loads(raw)


LARGE = {
    "one record": {"list": [{"parts": [[n, "x" * 20] for n in range(2500)], "note": "y" * 30_000}]},
    "one text": {"list": [{"id": 1, "picture": "QUJD/" * 100_000}, {"id": 2}]},
    "escaped text": {"list": [{"id": 1, "data": '{"a": "b\\\\"}\\' * 9000}, {"id": 2}]},
    "one object": {f"name {n}": n for n in range(9000)},
}


@pytest.mark.parametrize("what", LARGE)
def test_large_parts_are_read(what):
    assert read(json.dumps(LARGE[what]).encode()) == LARGE[what]


REFUSED = {
    "empty lists": '{"list": [' + "[]," * 340_000 + "[]]}",
    "one record of lists": '{"list": [{"a": [' + "[]," * 340_000 + "[]]}]}",
    "a list in a list": '{"list": [[' + "[]," * 340_000 + "[]]]}",
    "numbers": '{"list": [' + "1," * 500_000 + "1]}",
    "long numbers": '{"list": [[' + ("9" * 4000 + ",") * 250 + "x]]}",
    "names": "{" + ",".join(f'"{n}":1' for n in range(90_000)) + "}",
    "quotes": '{"list": ["' + '\\"' * 500_000 + '"]}',
    "backslashes": '{"list": ["' + "\\" * 1_000_000 + '"]}',
    "a text without end": '{"list": ["' + "x" * 1_000_000,
    "deep": '{"list": ' + "[" * 500_000 + "]" * 500_000 + "}",
    "deep objects": '{"a":' * 150_000 + "1" + "}" * 150_000,
    "deep at last": '{"list": [' + "1, " * 9000 + "[" * 150 + "]" * 150 + "]}",
    "a long number": '{"list": [' + "1" * 1_000_000 + "]}",
    "space": '{"list": [' + " " * 1_000_000,
    "halves": '{"list": [' + '"\\ud83d",' * 90_000 + "1]}",
    "only what is no number": '{"list": [' + "1e999," * 100_000 + "NaN]}",
    "a letter cut at last": '{"list": ["' + "\\u00eb" * 150_000 + '\\ud83d"]}',
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_made_to_hurt_is_refused(what):
    assert len(REFUSED[what]) <= BODY_LIMIT
    with pytest.raises(Unreadable):
        read_object(REFUSED[what].encode())


LETTERS = '{"list": [' + '"\\ud83d\\ude00",' * 9000 + '"\\ud83d"]}'


def test_many_letters_and_halves_of_some_are_read():
    assert read(LETTERS.encode()) == {"list": ["\U0001f600"] * 9000 + ["\ufffd"]}


SLOWEST = {
    "digits": '{"list": [1.' + "1" * 1_000_000 + "]}",
    "letters": LETTERS,
    "halves of letters": '{"list": [' + '"\\ud83dx",' * 19_000 + "1]}",
    "no numbers": '{"list": [' + "1e999," * 19_000 + "NaN]}",
    "long numbers": '{"list": [' + ("9" * 4000 + ",") * 120 + "NaN]}",
    "lists": '{"list": [' + "[]," * 19_000 + "[]]}",
    "names": "{" + ",".join(f'"{n:014}":1' for n in range(39_000)) + "}",
    "a page": json.dumps({"cards": [{f"f{n}": f"{n}" * 20 for n in range(14)} for _ in range(500)]}),
}


@pytest.mark.long("processor time between two turns of the loop")
@pytest.mark.parametrize("what", [*REFUSED, *SLOWEST])
def test_what_is_made_to_hurt_does_not_make_lanes_wait(what):
    taken = seconds_of((REFUSED | SLOWEST)[what].encode())
    assert taken < (0.005 if what == "a page" else 0.02), f"{taken * 1000:.1f} ms of this thread's time"


def test_the_last_of_several_values_of_one_name_counts_however_long_the_answer_is():
    for padding in ("", "x" * 60_000):
        found = read_object(f'{{"success": false, "x": "{padding}", "success": true}}'.encode())
        assert found["success"] is True


@pytest.mark.parametrize("padding", ["", "x" * 60_000])
def test_what_lies_deeper_than_is_kept_is_refused(padding):
    def text(depth):
        return f'{{"x": "{padding}", "list": {"[" * depth}{"]" * depth}}}'.encode()

    assert read_object(text(DEEPEST - 2))["list"]
    with pytest.raises(Unkept, match="within each other"):
        read_object(text(DEEPEST + 2))


@pytest.mark.parametrize("padding", [{}, PADDING])
def test_half_a_letter_is_replaced(padding):
    """It could be kept nowhere, and a name that was cut must not keep a list from being read."""
    odd = {"n\ude00": ["\ud83d", {"name": "Zo\ud83d \U0001f600"}], **padding}
    mended = {"n\ufffd": ["\ufffd", {"name": "Zo\ufffd \U0001f600"}], **padding}
    assert read(json.dumps(odd).encode()) == mended
