"""Bytes that an open page gets: of a demo site where nothing goes on, and of one with vehicles at every lane.

Run: pytest tests/benchmarks/test_page_traffic.py -m benchmark -s
"""

from __future__ import annotations

import http.client
import time

import pytest
from running_demo import running_demo

from gateway.cli.client import LocalConnection

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(180)]
SETTLES_SECONDS = 25
SECONDS = 30


@pytest.mark.parametrize(
    ("options", "limit"), [(("--no-traffic",), 2_000), ((), 8_000)], ids=["nothing goes on", "vehicles"]
)
def test_traffic_of_an_open_page(tmp_path, options, limit):
    with running_demo(tmp_path / "demo", *options) as run:
        time.sleep(SETTLES_SECONDS)  # noqa: TID251 (a program without a loop)
        connection = LocalConnection(run)
        connection.request("GET", "/status/live")
        stream = connection.getresponse()
        first = _until_blank(stream) + _until_blank(stream)
        began, count = time.monotonic(), 0
        while (took := time.monotonic() - began) < SECONDS:
            count += len(stream.readline())
        connection.close()
    rate = count / took
    told = f"{first:,} bytes at first, then {rate:,.0f} B/s, {rate / limit:.2f} of the limit"
    print(f"\n{' '.join(options) or 'vehicles'}: {told}")


def _until_blank(stream: http.client.HTTPResponse) -> int:
    """Read one event; return its bytes."""
    count = 0
    while (line := stream.readline()) != b"\n":
        count += len(line)
    return count
