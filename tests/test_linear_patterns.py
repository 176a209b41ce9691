"""The check of patterns: its interpreter matches as `re` does, and it finds what takes more than linear time."""

from __future__ import annotations

import importlib
import random
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
linear_patterns = importlib.import_module("linear_patterns")
pattern_steps = importlib.import_module("pattern_steps")


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?<![A-Za-z])(?:\w*[_\-])?(?:password|token)=", "search"),
        (r'(\w+)="?([^",]*)"?', "search"),
        (r"^a=candidate:(\S+ \d+ typ .*?)\s*$", "match"),
        (r"\b[a-z][a-z0-9+.\-]*://[^\s/?#]*@", "search"),
        (r"(://[^\s?#]*\?)[^\s]+", "search"),
        (r"key=(?:\[[^\]]*\]|[^\s,}\]]+)", "search"),
        (r"-----BEGIN X-----.+?-----END X-----", "search"),
        (r"\s+$", "search"),
        (r"(a+)+b", "match"),
        (r"(?:a|ab|b)*c", "match"),
        (r"\d*\d*x", "fullmatch"),
        (r"(?:x\w*y?)*z", "fullmatch"),
        (rb"#[^;]*!", "search"),
    ],
)
def test_a_pattern_that_takes_more_than_linear_time_is_found(pattern, method):
    assert linear_patterns.slow_text(pattern, 0, method) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?<![A-Za-z])(?:password|token)[\"']?\s*=", "search"),
        (r"(?<!\w)(\w+)\s*=\s*(?:\"([^\"]*)\"|([^\",\s]*))", "search"),
        (r"(?<=://)[^\s/?#]*@", "search"),
        (r"(?<![0-9])[0-9]{4,}(?![0-9])", "search"),
        (r"\w+", "search"),
        (r"\d+\.mp4", "fullmatch"),
        (r"\"(?:[^\"\\]|\\.)*+\"?", "search"),
    ],
)
def test_a_linear_pattern_is_none(pattern, method):
    assert linear_patterns.slow_text(pattern, 0, method) is None


def test_a_slow_pattern_planted_in_a_module_is_found_by_its_line():
    source = 'import re\n\n_HEAD = "x"\n_BAD = re.compile(rf"{_HEAD}*y", re.ASCII)\n_BAD.search("")\n'
    module = ModuleType("planted")
    exec(source, vars(module))  # a module without a file
    (found,) = linear_patterns.patterns(module, source, "gateway/planted.py")
    assert (found.place, found.method) == ("gateway/planted.py:4", "search")
    assert linear_patterns.slow_text(found.pattern.pattern, found.pattern.flags, found.method) is not None


def test_a_pattern_that_cannot_be_read_is_refused():
    source = "import re\n\n\ndef f(word, text):\n    return re.search(word + '*y', text)\n"
    module = ModuleType("planted")
    with pytest.raises(ValueError, match="cannot be read"):
        list(linear_patterns.patterns(module, source, "gateway/planted.py"))


def test_all_patterns_of_the_product_are_read_and_the_interpreter_matches_as_re_does():
    """On texts that the patterns' own parts suggest; a repetition of a group is one of the texts' characters."""
    dice = random.Random(5)  # the same texts each time
    compared = 0
    of_the_product = list(linear_patterns.of_the_product())
    assert len({one.place for one in of_the_product}) > 100
    for found in of_the_product:
        program = pattern_steps.Program(found.pattern.pattern, found.pattern.flags, found.method)
        for _ in range(2):
            samples = [pattern_steps.sample(program.tree, dice) for _ in range(3)]
            text = dice.choice(["", " ", "x"]).join(samples)
            given = text.encode("latin-1", "replace") if isinstance(found.pattern.pattern, bytes) else text
            text = given.decode("latin-1") if isinstance(given, bytes) else given
            if found.method == "search":
                expected = [one.span() for one in re.finditer(found.pattern, given)]
                assert program.spans(text) == expected, (found, text)
                compared += bool(expected)
    assert compared > 50
