"""`[tracing]`: where the traces of cards go."""

from __future__ import annotations

from importlib.util import find_spec

from pydantic import Field, field_validator

from gateway.site.addresses import endpoint_of
from gateway.site.fields import Section

TRACES_MISSING = (
    "what sends traces is not installed: install the package edge-gateway-tracing, or with pip edge-gateway[tracing]"
)


class TracingSection(Section):
    """`[tracing]`: the collector that gets the traces of cards, as OTLP over HTTP. Without it there are none."""

    endpoint: str = Field(description="`http://host:4318` of the collector; traces go to `/v1/traces` there")
    ca_file: str | None = Field(default=None, description="authorities to trust instead of the usual ones")

    @field_validator("endpoint")
    @classmethod
    def _is_endpoint(cls, value: str) -> str:
        endpoint_of(value, schemes=("https", "http"))
        return value


def can_send_traces() -> bool:
    """Return whether the optional library that sends traces is installed."""
    try:
        return find_spec("opentelemetry.sdk") is not None and find_spec("opentelemetry.exporter.otlp") is not None
    except ModuleNotFoundError:
        return False
