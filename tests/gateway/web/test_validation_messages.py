"""Refusals of bodies in our own words, for people who can correct them."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.domain.validation_messages import words_of_first
from gateway.web.catalogue import OPERATIONS
from gateway.web.http.bodies import MOST_VALUES, validated
from gateway.web.http.errors import RequestRefused
from gateway.web.legacy.answers import PageQuery
from gateway.web.legacy.video import RecordingsQuery
from gateway.web.operations.evidence import EvidenceForm

MODELS = {
    **{f"{item.method} {item.path}": item.body for item in OPERATIONS if item.body is not None},
    **{f"{model.__name__}": model for model in (EvidenceForm, PageQuery, RecordingsQuery)},
}
WRONG = (
    None, "", " ", "x", "7x", "1.5", "x" * 3000, "9" * 5000, "a\0b", "a\nb", "a\x1fb", "\ud800", "gone",
    0, 7, -1, 10**30, -(10**30), 1.5, 1e300, float("inf"), float("nan"), True, False,
    [], [1], ["x"], [""], [None], [[]], [{}], [-1], ["x" * 3000], ["x"] * MOST_VALUES, [7] * 1001, {},
    {"x": 1}, {"id": "x"},
)  # fmt: skip
MOST_FAULTS = 20
"""Of a body, however many wrong values it holds: to tell thousands takes seconds, and the first is what is told."""
LIBRARY = (
    "should", "Input", "nable to", "tuple", "String", "Value error", "pattern", "Field required", "cannot be taken",
)  # fmt: skip


def bodies_of(model):
    """An empty body, and each field with each wrong value; alone, because the first fault is told."""
    yield {}
    for name in model.model_fields:
        for value in WRONG:
            yield {name: value}


def told(model, body):
    """Return the gateway's words, the library's, and the number of faults of a body; None for a good one."""
    try:
        model.model_validate(body)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        with pytest.raises(RequestRefused) as refused:
            validated(body, model)
        return str(refused.value), [fault["msg"] for fault in faults if fault["type"] != "value_error"], len(faults)
    return None


def test_no_operation_speaks_in_the_words_of_a_library():
    for name, model in MODELS.items():
        refusals = [said for body in bodies_of(model) if (said := told(model, body))]
        assert refusals or not model.model_fields, name
        speaks_in_our_own(model, refusals)


def speaks_in_our_own(model, refusals):
    for sentence, others, count in refusals:
        assert count <= MOST_FAULTS, sentence
        place, colon, words = sentence.partition(": ")
        assert colon, sentence
        assert place.partition(".")[0] in model.model_fields, sentence
        assert words.startswith(("must ", "is ", "has ", "cannot be read", "names ")), sentence
        assert not [other for other in others if other in sentence], sentence
        assert not [word for word in LIBRARY if word in sentence], sentence
        assert "\n" not in sentence
        assert "xxx" not in sentence
        assert "999" not in sentence


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("POST /api/v1/webhooks", {"url": "https://example.com/", "events": []}, "events: must not be empty"),
        ("POST /api/v1/webhooks", {"url": "", "events": ["access.granted"]}, "url: must not be empty"),
        ("PUT /v1/access", {"number": "5", "pin": "12"}, "pin: must be 4 to 8 digits, or empty"),
        ("PUT /v1/access", {"number": "5", "pin": "1234\n"}, "pin: must be 4 to 8 digits, or empty"),
        ("PUT /v1/device", {"name": " \t"}, "name: must not be blank"),
        ("PUT /v1/camera", {"name": "\N{NO-BREAK SPACE}"}, "name: must not be blank"),
        ("PUT /v1/camera/event", {"camera_id": 201, "name": "\n"}, "name: must not be blank"),
        ("POST /v1/event/list", {"search": "x" * 1001}, "search: must have at most 1000 characters"),
        ("POST /v1/event/list", {"page": 0}, "page: must be at least 1"),
        ("EvidenceForm", {"id": "x"}, "id: must be a valid integer"),
        ("EvidenceForm", {"id": "1", "sha256": "ab"}, "sha256: must be 64 hexadecimal digits"),
        ("PageQuery", {"page": "x"}, "page: must be a valid integer"),
    ],
)
def test_a_sentence_says_what_would_be_right(path, body, sentence):
    with pytest.raises(RequestRefused) as refused:
        validated(body, MODELS[path])
    assert str(refused.value) == sentence


def test_what_nobody_put_into_words_is_still_no_library_s():
    with pytest.raises(ValidationError) as error:
        TypeAdapter(dict[str, complex]).validate_python({"x": "y"})
    assert str(words_of_first(error.value)) == "x: cannot be taken as it is"
