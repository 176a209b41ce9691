"""Large answers read a few records at a time: the same as at once, and nothing that is no JSON."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sync.stretches import read_object, read_small

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PADDING = {"padding": "x" * 50_000}


def read(raw):
    return asyncio.run(read_object(raw))


@given(answer=st.dictionaries(st.text(max_size=8), VALUES, max_size=5), spaced=st.booleans(), escaped=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_large_answer_is_read_as_a_small_one(answer, spaced, escaped):
    text = json.dumps({**answer, **PADDING}, ensure_ascii=escaped, indent=1 if spaced else None).encode()
    assert read(text) == read_small(text) == {**answer, **PADDING}


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
        lambda text: text.replace("[1, 2]", "NaN"),
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


async def test_letters_that_are_written_as_numbers_do_not_make_lanes_wait():
    """As many servers write names."""
    raw = json.dumps({"list": [{"name": "Zoë", "number": number} for number in range(4000)]}).encode()
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        counting = group.create_task(count())
        found = await read_object(raw)
        counting.cancel()
    assert found == json.loads(raw)
    assert turns >= 50


def test_half_a_character_is_refused():
    """It could be kept nowhere."""
    assert read(json.dumps({"name": "\ud800", **PADDING}).encode()) is None
    assert read(json.dumps({"name": "\U0001f600", **PADDING}).encode())["name"] == "\U0001f600"
