"""Servers for the tests of the fleet, with the stream and the buckets, a relay before one, and a store.

`server` is one in the test's loop, and in the long suite a real one too. A module whose tests only a real one can serve
puts `real_server` in its place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from at_work import opened_store
from nats.js.api import KeyValueConfig, StreamConfig
from nats_far_end import NatsFarEnd, nats_far_end
from nats_server import NatsServer, nats_server
from relay import Relay, relay_to

from gateway.fleet.names import AREAS_BUCKET, BUCKET, STREAM, STREAM_SUBJECTS
from gateway.store import Store


@pytest.fixture(scope="module")
def real_server(tmp_path_factory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture
async def far_end() -> AsyncIterator[NatsFarEnd]:
    async with nats_far_end() as far_end:
        yield far_end


@pytest.fixture(params=["far_end", pytest.param("real_server", marks=pytest.mark.long("a real NATS server"))])
def server(request) -> NatsFarEnd | NatsServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def broker(server) -> AsyncIterator[nats.NATS]:
    """A client beside the gateway, at a server whose stream and bucket are empty."""
    client = await nats.connect(server.url)
    js = client.jetstream()
    for stream in await js.streams_info():
        await js.delete_stream(stream.config.name)
    await js.add_stream(StreamConfig(name=STREAM, subjects=[STREAM_SUBJECTS], allow_direct=True, duplicate_window=0.1))
    await js.create_key_value(KeyValueConfig(bucket=BUCKET))
    yield client
    await client.close()


@pytest.fixture
async def areas(server, broker) -> NatsFarEnd | NatsServer:
    """The server, with the bucket of shared areas too."""
    await broker.jetstream().create_key_value(KeyValueConfig(bucket=AREAS_BUCKET, direct=True))
    return server


@pytest.fixture
async def store(tmp_path) -> AsyncIterator[Store]:
    async with opened_store(tmp_path) as store:
        yield store


@pytest.fixture
async def relay(server) -> AsyncIterator[Relay]:
    async with relay_to(server.port) as between:
        yield between
