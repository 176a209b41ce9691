"""One nats-server for the tests of a module, with the stream and the bucket, a relay before it, and a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from fleet_scene import opened
from nats.js.api import KeyValueConfig, StreamConfig
from nats_server import NatsServer, Relay, nats_server

from gateway.fleet.names import AREAS_BUCKET, BUCKET, STREAM, STREAM_SUBJECTS
from gateway.store import Store


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


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
async def areas(server, broker) -> NatsServer:
    """The server, with the bucket of shared areas too."""
    await broker.jetstream().create_key_value(KeyValueConfig(bucket=AREAS_BUCKET, direct=True))
    return server


@pytest.fixture
async def store(tmp_path) -> AsyncIterator[Store]:
    async with opened(tmp_path) as store:
        yield store


@pytest.fixture
async def relay(server) -> AsyncIterator[Relay]:
    between = Relay(server.port)
    await between.join()
    yield between
    between.let_go()
    await between.cut()
