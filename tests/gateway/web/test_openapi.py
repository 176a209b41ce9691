"""The interface's description: whole, well formed, and the same models that validate."""

from __future__ import annotations

import json
from enum import IntEnum
from itertools import chain
from pathlib import Path

import pytest
import yaml

from gateway.domain.events import Category, EventKind, Severity
from gateway.web.catalogue import OPERATIONS, PUBLIC
from gateway.web.catalogue import PAGE as OF_THE_PAGE
from gateway.web.openapi import described
from gateway.web.relayed import OPERATIONS as RELAYED

DESCRIBED = described(PUBLIC, release="1.2.3")
METHODS = {"get", "post", "put", "patch", "delete"}
FOUND = {
    (method.upper(), path): there
    for path, item in DESCRIBED["paths"].items()
    for method, there in item.items()
    if method in METHODS
}


def references(value: object):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_operation_is_described():
    left_out = {"/openapi.json", "/metrics", *(item.path for item in OF_THE_PAGE)}
    public = {(item.method, item.path): item for item in (*OPERATIONS, *RELAYED) if item.path not in left_out}
    assert set(FOUND) == {key for key in public if key[0] != "OPTIONS"}
    for key, there in FOUND.items():
        assert there["x-permission"] == public[key].rule.text
        assert there["x-answered-by"] == public[key].answered_by
        assert bool(there["security"]) == public[key].rule.session
        assert there["summary"]
    assert len({there["operationId"] for there in FOUND.values()}) == len(FOUND)


def test_it_is_openapi_and_every_reference_leads_somewhere():
    for reference in set(references(DESCRIBED)):
        place = DESCRIBED
        for word in reference.removeprefix("#/").split("/"):
            place = place[word]
    import schemathesis

    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(DESCRIBED)))
    schema.validate()
    assert schema.specification.version == "3.1.0"


def test_a_refusal_is_the_document_s_envelope():
    schemas, responses = DESCRIBED["components"]["schemas"], DESCRIBED["components"]["responses"]
    assert schemas["Refused_devices"]["properties"] == {
        "success": {"const": False}, "error": {"type": "string"}, "devices": {"type": "null"}
    }  # fmt: skip
    assert schemas["Refused_devices"]["required"] == ["success", "error", "devices"]
    there = FOUND["POST", "/v1/device/list"]["responses"]["500"]["$ref"]
    assert responses[there.rpartition("/")[2]]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Refused_devices"
    }


def test_the_three_carriers_of_a_session_are_named():
    schemes = DESCRIBED["components"]["securitySchemes"]
    assert (schemes["SessionID"]["in"], schemes["SessionID"]["name"]) == ("header", "SessionID")
    assert (schemes["Cookie"]["in"], schemes["Cookie"]["name"]) == ("cookie", "session")
    assert schemes["Bearer"]["scheme"] == "bearer"
    assert FOUND["POST", "/v1/event"]["security"] == [{"SessionID": []}, {"Bearer": []}, {"Cookie": []}]
    assert FOUND["GET", "/"]["security"] == []


def test_what_may_be_absent_may_be_null():
    properties = DESCRIBED["components"]["schemas"]["EventListBody"]["properties"]
    assert {"type": "null"} in properties["search"]["anyOf"]
    assert DESCRIBED["components"]["schemas"]["ById"]["properties"]["id"]["type"] == "integer"
    assert FOUND["POST", "/v1/event"]["requestBody"]["required"]
    assert not FOUND["POST", "/v1/event/list"]["requestBody"]["required"]


CLIENT_SETTINGS = Path(__file__).resolve().parents[3] / "config" / "openapi-python-client.yaml"
KNOWN_TO_THE_GENERATOR = {
    "application/json", "multipart/form-data", "application/x-www-form-urlencoded", "application/octet-stream",
    "text/csv", "text/html",
}  # fmt: skip


def contents(there: dict):
    """The contents of an operation's body and answers, by media type."""
    responses = DESCRIBED["components"]["responses"]
    for response in there["responses"].values():
        name = response.get("$ref", "").rpartition("/")[2]
        yield from (responses[name] if name else response).get("content", {}).items()
    yield from there.get("requestBody", {}).get("content", {}).items()


def test_every_content_has_a_schema_that_says_something():
    for key, there in FOUND.items():
        for media_type, content in contents(there):
            assert content.get("schema"), (key, media_type)


def test_what_central_answers_has_schemas_of_success_and_refusal():
    relayed = {key: there for key, there in FOUND.items() if there["x-answered-by"] == "central"}
    for (method, path), there in relayed.items():
        assert there["responses"]["2XX"]["content"], path
        assert there["responses"]["default"] == {"$ref": "#/components/responses/Relayed"}
        assert ("requestBody" in there) == (method != "GET"), path
    schemas = DESCRIBED["components"]["schemas"]
    assert schemas["RelayedAnswer"]["required"] == ["success"]
    assert schemas["RelayedRefusal"]["required"] == ["success", "error"]
    told = relayed["POST", "/v1/companies/list"]["responses"]["2XX"]["content"]
    assert told == {"application/json": {"schema": {"$ref": "#/components/schemas/RelayedAnswer"}}}


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        (("POST", "/v1/camera/event/evidence"), {"id", "name", "description", "kept_as", "sha256", "file"}),
        (("PUT", "/v1/document/upload"), {"file"}),
        (("POST", "/v1/work/orders/{id}/documents"), {"file"}),
        (("PUT", "/v1/work/orders/{id}/documents"), {"file"}),
    ],
)
def test_an_upload_is_a_form_with_a_file(operation, fields):
    content = FOUND[operation]["requestBody"]["content"]
    assert set(content) == {"multipart/form-data"}
    name = content["multipart/form-data"]["schema"]["$ref"].rpartition("/")[2]
    form = DESCRIBED["components"]["schemas"][name]
    assert set(form["properties"]) == fields
    assert "file" in form["required"]
    assert form["properties"]["file"] == {"type": "string", "format": "binary"}


def test_a_client_generator_knows_every_media_type():
    overridden = yaml.safe_load(CLIENT_SETTINGS.read_text("utf-8"))["content_type_overrides"]
    used = {media_type for media_type, _ in chain.from_iterable(map(contents, FOUND.values()))}
    assert used <= KNOWN_TO_THE_GENERATOR | set(overridden)
    assert set(overridden) <= used, "a setting that nothing needs"


def test_no_field_has_a_title():
    """A generator makes a type of its own of every field with a title."""
    for schema in DESCRIBED["components"]["schemas"].values():
        for name, there in schema.get("properties", {}).items():
            assert "title" not in there, name


@pytest.mark.parametrize(("field", "numbers"), [("type", EventKind), ("category", Category), ("subcategory", Severity)])
def test_the_numbers_of_events_are_enumerations_with_names(field: str, numbers: type[IntEnum]):
    schemas = DESCRIBED["components"]["schemas"]
    assert schemas["EventRecord"]["properties"][field] == {"$ref": f"#/components/schemas/{numbers.__name__}"}
    described_numbers = schemas[numbers.__name__]
    assert described_numbers["type"] == "integer"
    assert described_numbers["enum"] == [number.value for number in numbers]
    assert described_numbers["x-enum-varnames"] == [number.name for number in numbers]


def test_types_of_events_have_their_names_for_people():
    described_kinds = DESCRIBED["components"]["schemas"]["EventKind"]
    assert described_kinds["x-enum-descriptions"] == [kind.label for kind in EventKind]


async def test_it_is_served_to_everybody_and_asked_again_by_its_tag(gateway):
    async with gateway.client.get(f"{gateway.url}/openapi.json") as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        text, tag = await answer.read(), answer.headers["ETag"]
    assert json.loads(text)["paths"].keys() == DESCRIBED["paths"].keys()
    async with gateway.client.get(f"{gateway.url}/openapi.json", headers={"If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")


@pytest.mark.parametrize("secret", ["North Yard", "chief", "tcp://", "rtsp://"])
async def test_it_says_nothing_of_the_site(gateway, secret):
    async with gateway.client.get(f"{gateway.url}/openapi.json") as answer:
        assert secret not in await answer.text()


def test_what_the_gateway_answers_is_described_whole():
    """Purpose, body and answer of each: an operation is not added without."""
    without_body = {"/v1/auth/logout"}  # and what is deleted by its path
    for item in PUBLIC:
        if item.answered_by == "central" or item.method == "OPTIONS":
            continue
        assert item.purpose, item
        assert item.answer is not None or item.answer_type != "application/json" or "/whep/" in item.path, item
        takes = item.method not in ("GET", "DELETE") or (item.method == "DELETE" and "{" not in item.path)
        if takes and item.path not in without_body:
            assert item.body is not None or item.body_type != "application/json", item
