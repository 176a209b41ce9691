"""A test module's tests, run with the functions of packets in Python and with the compiled ones.

A module takes part with `pytestmark = pytest.mark.usefixtures("each_code")`; the fixture stands in `tests/conftest.py`.
"""

from __future__ import annotations

import pytest

from drivers.rtsp import depacketizer
from drivers.rtsp.client import connection
from drivers.rtsp.compiled import compiled
from gateway.camera_worker import transport_stream

_USED = (
    (connection, "_packet_runs", connection.packet_runs),
    (depacketizer, "_whole_slices", depacketizer.whole_slices),
    (transport_stream, "_transport_packets", transport_stream.transport_packets),
)


def use(code: str, patch: pytest.MonkeyPatch) -> None:
    """Put the functions in place; skip where the compiled ones are wanted and are not installed."""
    for module, name, reference in _USED:
        chosen = reference if code == "python" else compiled(reference)
        if code == "compiled" and chosen is reference:
            pytest.skip("installed without a compiler")
        patch.setattr(module, name, chosen)
