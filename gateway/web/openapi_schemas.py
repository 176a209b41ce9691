"""JSON schemas of the interface's models, as programs that generate clients read them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from gateway.domain.events import EventKind


class JsonSchemas(GenerateJsonSchema):
    """Schemas without titles of fields, and with the names of numbered values.

    A generator makes a type of its own of every field that has a title.
    """

    def field_title_should_be_set(self, schema: CoreSchema | core_schema.ModelField) -> bool:  # noqa: ARG002
        """Leave fields without titles."""
        return False

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Name the values of an enumeration of numbers."""
        made = super().enum_schema(schema)
        if issubclass(schema["cls"], IntEnum):
            made |= _names(schema["cls"])
        return made


def _names(numbers: type[IntEnum]) -> Mapping[str, list[str]]:
    names = {"x-enum-varnames": [number.name for number in numbers]}
    if issubclass(numbers, EventKind):
        names["x-enum-descriptions"] = [kind.label for kind in numbers]
    return names
