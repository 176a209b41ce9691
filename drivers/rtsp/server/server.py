"""A small RTSP server for streams on the site's network. Many viewers share one feed; none can slow down another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Self

import structlog

from drivers.listening.addresses import is_this_machine
from drivers.listening.places import Bounds, Crowd, Places
from drivers.rtsp.packetizer import LARGEST_PACKET
from drivers.rtsp.server.messages import LONGEST_HEAD, Credentials
from drivers.rtsp.server.session import Feed, RtspSession
from drivers.throttle import Throttle

log = structlog.get_logger(__name__)

_BOUNDS = Bounds(most=64, per_address=32, for_known=16, for_configured=16)
"""The places; configured is this machine, known is an address with the right password."""
_IDLE_SECONDS = 75.0
_FREE_GUESSES = 5


class ServedStream:
    """One stream of the server, with the faults of cameras that it can imitate for demonstrations and tests.

    Attributes:
        feed: the source of the stream's frames.
        credentials: the account that viewers need; None for none.
        refuse_with: the RTSP status that answers every DESCRIBE and SETUP; None to serve normally.
        stalled: whether to send no frames while connections stay up.
        loses_keyframes: whether to leave out a part of every other keyframe.
        packet_bytes: the greatest size of a picture's packets; some cameras send larger ones over TCP.
    """

    def __init__(self, *, feed: Feed, credentials: Credentials | None = None) -> None:
        self.feed = feed
        self.credentials = credentials
        self.refuse_with: int | None = None
        self.stalled = False
        self.loses_keyframes = False
        self.packet_bytes = LARGEST_PACKET
        self._sessions: set[RtspSession] = set()

    @property
    def viewers(self) -> int:
        """The number of viewers that are served now."""
        return self.feed.viewers

    def drop_viewers(self) -> None:
        """Break every viewer's connection without notice."""
        for session in self._sessions:
            session.abort()

    def joined(self, session: RtspSession) -> None:
        """Note that a session has set up this stream."""
        self._sessions.add(session)

    def left(self, session: RtspSession) -> None:
        """Note that a session has ended."""
        self._sessions.discard(session)


class RtspServer:
    """The server. It listens inside its `async with` block, where `port` is the port in use.

    Args:
        streams: the streams by path (`/gate1`); may change while serving.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        idle_seconds: a viewer that sends neither a request nor a report for so long is taken for gone.
    """

    def __init__(
        self,
        *,
        streams: Mapping[str, ServedStream],
        host: str = "127.0.0.1",
        port: int = 0,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self._idle_seconds = idle_seconds
        self._streams = streams
        self._host = host
        self._wanted_port = port
        self._server: asyncio.Server | None = None
        self._guesses = Throttle(free=_FREE_GUESSES)
        self._places = Places(
            bounds=_BOUNDS, monotonic=time.monotonic, is_configured=is_this_machine, is_proxy=is_this_machine
        )
        self._watching: asyncio.Task[None] | None = None
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[object] | None] = {}
        self.port = port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._host, self._wanted_port, limit=LONGEST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]
        self._watching = asyncio.get_running_loop().create_task(self._places.run(), name="places of the RTSP server")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._server is None:
            return
        if self._watching is not None:
            self._watching.cancel()
        self._server.close()
        tasks = [task for task in self._connections.values() if task is not None]
        for writer in self._connections:
            writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.gather(*tasks)

    @property
    def crowd(self) -> Crowd | None:
        """The callers for whom there was no room in the last minute, None for none."""
        return self._places.crowd

    def url(self, path: str) -> str:
        """Return the URL of the stream at this path."""
        return f"rtsp://{self._host}:{self.port}{path}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = self._places.admit(writer.transport) if isinstance(writer.transport, asyncio.Transport) else None
        if place is None:
            writer.transport.abort()
            return
        self._connections[writer] = asyncio.current_task()
        session = RtspSession(
            reader=reader,
            writer=writer,
            streams=self._streams,
            host=self._host,
            idle_seconds=self._idle_seconds,
            place=place,
            places=self._places,
            guesses=self._guesses,
        )
        try:
            await session.run()
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError) as error:
            log.debug("viewer_left", error=str(error))
        except Exception:  # a fault in serving one viewer must not end the others
            log.exception("viewer_failed")
        finally:
            del self._connections[writer]
            self._places.leave(place)
            writer.transport.abort()
