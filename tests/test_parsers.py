"""Every parser reads or refuses whatever comes; `make fuzz-parsers` tries a million inputs each.

In 50 ms at most: that is tried in the long suite.

Inputs that once broke one are kept in `tests/corpus`, a folder for each parser.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsers import PARSERS

CORPUS = Path(__file__).with_name("corpus")
SECONDS = 0.05


@st.composite
def spoilt(draw, parser):
    """An input that was good, with pieces changed, cut out, repeated and put in."""
    data = bytearray(draw(st.sampled_from(parser.seeds)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        match draw(st.integers(0, 4)):
            case 0:
                data[at:end] = draw(st.binary(max_size=20))
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end] * draw(st.integers(1, 8))
            case 3:
                del data[at:]
            case 4:
                data[at:at] = draw(
                    st.sampled_from([b"\0", b"\xff" * 4, b'"', b"[" * 200, b"-1", b"9" * 40, b"\r\n", b":", b"="])
                )
    return bytes(data[: parser.longest])


def judged(parser, data):
    """Fed, and not slow thrice; time of this thread, since the machine has others."""
    for _ in range(3):
        begun = time.thread_time()
        parser.feed(data)
        taken = time.thread_time() - begun
        if taken <= parser.seconds:
            return
    pytest.fail(f"{parser.name} took {taken * 1000:.0f} ms for {data!r}")


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_whatever_comes_is_read_or_refused(parser):
    @settings(max_examples=parser.examples)
    @given(st.binary(max_size=200) | spoilt(parser))
    def tried(data):
        parser.feed(data)

    tried()


def kept(parser):
    return (b"", *parser.seeds, *(file.read_bytes() for file in sorted((CORPUS / parser.name).glob("*"))))


def test_good_and_kept_inputs_are_read_or_refused():
    for parser in PARSERS:
        for data in kept(parser):
            parser.feed(data)


@pytest.mark.long("processor time of each parser")
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_no_input_takes_long(parser):
    @settings(max_examples=parser.examples)
    @given(st.binary(max_size=200) | spoilt(parser))
    def tried(data):
        judged(parser, data)

    for data in kept(parser):
        judged(parser, data)
    tried()


@pytest.mark.long("processor time")
def test_a_parser_that_breaks_or_hangs_is_found():
    """The harness itself can fail."""
    from dataclasses import replace

    def slow(_: bytes) -> None:
        until = time.thread_time() + 2 * SECONDS
        while time.thread_time() < until:
            pass

    with pytest.raises(KeyError):
        judged(replace(PARSERS[0], read={}.__getitem__), b"")
    with pytest.raises(pytest.fail.Exception, match="took"):
        judged(replace(PARSERS[0], read=slow), b"")
