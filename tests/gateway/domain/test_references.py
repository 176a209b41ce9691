from __future__ import annotations

import importlib
import inspect
import pkgutil

from pydantic import BaseModel

import gateway.web.legacy
import gateway.web.operations
from gateway.domain.references import (
    GIVEN_BY_CENTRAL,
    OF_THE_SITE,
    REFERENCES,
    Reference,
    may_name_provisional,
    provisional_references,
    translated,
)
from gateway.web.relayed import rows
from simulation.far_ends.central import bodies, parking

CARD = Reference("access_id", "access_card", 2_000_000_005)
KNOWN = {CARD: 4711}


def models() -> set[type[BaseModel]]:
    """Every model of the interface's bodies and records, and of what a central takes."""
    packages = (gateway.web.operations, gateway.web.legacy)
    found = [item for package in packages for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    modules = [*(importlib.import_module(item.name) for item in found), rows, bodies, parking]
    return {
        item
        for module in modules
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, BaseModel)
    }


def test_every_field_that_names_a_record_is_in_the_table():
    fields = {name for model in models() for name in model.model_fields if name.endswith(("_id", "_ids"))}
    assert {"access_id", "device_ids", "camera_id", "exit_device_id"} <= fields
    assert sorted(fields - REFERENCES.keys() - GIVEN_BY_CENTRAL - OF_THE_SITE) == []


def test_no_field_has_two_meanings():
    assert not REFERENCES.keys() & (GIVEN_BY_CENTRAL | OF_THE_SITE)
    assert not GIVEN_BY_CENTRAL & OF_THE_SITE


def test_ids_are_found_and_translated_wherever_they_stand():
    body = {
        "id": 7,
        "access_id": "2000000005",
        "data": {"access_id": 2_000_000_005, "plates": ["2000000005"]},
        "access_ids": [2_000_000_005, 12, 2_000_000_006],
        "number": "2000000005",
        "source_id": 2_000_000_005,
    }
    known = KNOWN | {Reference("access_ids", "access_card", 2_000_000_005): 4711}
    assert {reference.record_id for reference in provisional_references(body)} == {2_000_000_005, 2_000_000_006}
    assert translated(body, known) == {
        "id": 7,
        "access_id": "4711",
        "data": {"access_id": 4711, "plates": ["2000000005"]},
        "access_ids": [4711, 12],
        "number": "2000000005",
        "source_id": 2_000_000_005,
    }
    assert translated({"access_id": 2_000_000_005, "plate": "AB1"}, {}) == {"plate": "AB1"}
    assert translated({"access_id": None}, {}) == {"access_id": None}


def test_text_that_may_name_one_is_known_without_reading_it():
    for text in ('{"access_id":2000000005}', '{"device_ids": [1, 2000000001]}', '{"a":{"camera_id":"2000000001"}}'):
        assert may_name_provisional(text)
    for text in ('{"access_id":4711}', '{"source_id":2000000001}', '{"plate":"2000000001"}', "{}"):
        assert not may_name_provisional(text)
