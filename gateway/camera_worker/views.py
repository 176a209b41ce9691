"""The live viewers of this process's cameras: a bounded number of sessions, each served by a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from gateway.camera_worker.live_feed import LiveFeed, why_not_live
from gateway.camera_worker.sdp import NothingInCommon, SdpRefused, checked_offer, trickle, user_fragment
from gateway.domain.viewing import LiveViewing, NotShown, OpenView, TrickleView, ViewOpened, ViewRefusal

if TYPE_CHECKING:
    from gateway.camera_worker.viewer import Viewer

log = structlog.get_logger(__name__)

_ANSWER_SECONDS = 5.0
_MOST_UNREACHED = 2


@dataclass(eq=False)
class _Session:
    camera_id: int
    address: str
    viewer: Viewer
    ufrag: str
    view: str = field(init=False, default="")
    tag: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        """Begin the session's name with the camera's id, so that it is unknown under another camera's path."""
        self.view = f"{self.camera_id}-{secrets.token_urlsafe(32)}"


class Views:
    """The sessions of viewers. `feed_of` returns a camera's feed, None for a camera that is not in this process."""

    def __init__(
        self,
        *,
        feed_of: Callable[[int], LiveFeed | None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._feed_of = feed_of
        self._tasks = tasks
        self._sessions: dict[str, _Session] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._opening: dict[int, int] = {}
        self._allowed = LiveViewing()
        self._expected = False

    @property
    def count(self) -> int:
        """The number of sessions, those being opened included."""
        return len(self._sessions) + sum(self._opening.values())

    def allow(self, allowed: LiveViewing) -> None:
        """Set the limits and addresses for viewers that come from now on."""
        self._allowed = allowed

    def expect(self) -> None:
        """Import WebRTC's library in the background, once, so that the first viewer need not wait for it."""
        if not self._expected:
            self._expected = True
            self._tasks.create_task(self._prepare(), name="viewers' library")

    async def _prepare(self) -> None:
        try:
            await asyncio.to_thread(_library, self._allowed.addresses)
        except Exception:  # the next viewer gets this error anyway, and it must not end the other viewers' tasks
            log.exception("viewers_library_failed")

    async def open(self, asked: OpenView) -> ViewOpened:
        """Begin a session; return its name and the answer. Raises NotShown, with the reason, when it is refused."""
        camera_id = asked.camera_id
        try:
            offer = checked_offer(asked.offer)
        except NothingInCommon as error:
            raise NotShown(ViewRefusal.NOT_ACCEPTABLE, str(error)) from error
        except SdpRefused as error:
            raise NotShown(ViewRefusal.BAD_OFFER, str(error)) from error
        feed = await self._live(camera_id)
        self._end_unreached(camera_id, asked.address)
        watching = sum(session.camera_id == camera_id for session in self._sessions.values())
        most = self._allowed.viewers_per_camera
        if watching + self._opening.get(camera_id, 0) >= most:
            raise NotShown(ViewRefusal.FULL, f"{most} viewers watch this camera already")
        self._opening[camera_id] = self._opening.get(camera_id, 0) + 1
        try:
            return await self._begin(asked, feed, offer)
        finally:
            self._opening[camera_id] -= 1

    def _end_unreached(self, camera_id: int, address: str) -> None:
        """End the oldest views of this address without a connection, so that its offers cannot take all places."""
        unreached = [
            view
            for view, session in self._sessions.items()
            if (session.camera_id, session.address) == (camera_id, address) and not session.viewer.connected
        ]
        for view in unreached[: max(0, len(unreached) + 1 - _MOST_UNREACHED)]:
            self.end(view)

    async def trickle(self, view: str, asked: TrickleView) -> None:
        """Add more ICE candidates of a viewer (RFC 8840). Raises NotShown."""
        session = self._known(view)
        if not asked.tags:
            raise NotShown(ViewRefusal.NO_TAG, "name the ICE session in If-Match: the ETag of the session's answer")
        try:
            fragment = trickle(asked.fragment)
        except SdpRefused as error:
            raise NotShown(ViewRefusal.BAD_OFFER, str(error)) from error
        if fragment.ufrag and fragment.ufrag != session.ufrag:
            raise NotShown(ViewRefusal.RESTART, "ICE restarts are not supported: end this session and begin another")
        if session.tag not in asked.tags and "*" not in asked.tags:
            raise NotShown(ViewRefusal.STALE_TAG, "this ICE session is not the one named in If-Match")
        try:
            await session.viewer.add(fragment)
        except SdpRefused as error:
            raise NotShown(ViewRefusal.BAD_OFFER, str(error)) from error

    def look(self, view: str) -> None:
        """Raise NotShown unless the session exists."""
        self._known(view)

    def end(self, view: str) -> None:
        """End a session. Raises NotShown when it does not exist."""
        session = self._known(view)
        del self._sessions[view]
        session.viewer.leave()

    def end_all(self) -> None:
        """End every session at once."""
        for task in self._serving:
            task.cancel()

    def _known(self, view: str) -> _Session:
        session = self._sessions.get(view)
        if session is None:
            raise NotShown(ViewRefusal.UNKNOWN, "there is no such session, or it has ended")
        return session

    async def _live(self, camera_id: int) -> LiveFeed:
        feed = self._feed_of(camera_id)
        why = "" if feed is None else await feed.awake()
        group = () if feed is None else feed.group()
        if feed is None or not group:
            raise NotShown(ViewRefusal.NO_SOURCE, f"the camera sends no pictures now{why and f': {why}'}")
        if why := why_not_live(group, reorders=feed.reorders):
            raise NotShown(ViewRefusal.NOT_ACCEPTABLE, why)
        return feed

    async def _begin(self, asked: OpenView, feed: LiveFeed, offer: str) -> ViewOpened:
        """Start the viewer's task, which answers the checked offer and then serves it; return the answer."""
        answered: asyncio.Future[ViewOpened] = asyncio.get_running_loop().create_future()
        serving = self._tasks.create_task(
            self._serve(asked, feed, offer, answered), name=f"viewer of camera {asked.camera_id}"
        )
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return await answered

    async def _serve(self, asked: OpenView, feed: LiveFeed, offer: str, answered: asyncio.Future[ViewOpened]) -> None:
        session, camera_id = None, asked.camera_id
        try:
            make = await asyncio.to_thread(_library, self._allowed.addresses)
            async with contextlib.AsyncExitStack() as stack:
                view = stack.enter_context(feed.watch())
                viewer = await stack.enter_async_context(make(camera_id=camera_id, view=view, address=asked.address))
                session = _Session(camera_id, asked.address, viewer, user_fragment(offer))
                async with asyncio.timeout(_ANSWER_SECONDS):
                    answer = await viewer.answer(offer)
                self._sessions[session.view] = session
                opened = ViewOpened(
                    view=session.view, tag=session.tag, answer=answer, viewers=self.count - 1
                )  # it is among those being opened, too
                _resolve(answered, opened)
                why = await viewer.run()
            log.info("viewer_ended", camera_id=camera_id, why=why)
        except SdpRefused as error:
            _refuse(answered, NotShown(ViewRefusal.BAD_OFFER, str(error)))
        except Exception as error:  # a fault in serving one viewer must not end the others
            log.exception("viewer_failed", camera_id=camera_id)
            _refuse(answered, NotShown(ViewRefusal.NO_SOURCE, f"the viewer cannot be served ({type(error).__name__})"))
        finally:
            if session is not None:
                self._sessions.pop(session.view, None)
            if not answered.done():
                answered.cancel()


def _library(addresses: tuple[str, ...]) -> type[Viewer]:
    """Import WebRTC's library and return its viewer class. It is large, and most workers never have a viewer."""
    from gateway.camera_worker import viewer  # noqa: PLC0415

    if addresses:
        viewer.offer_addresses(addresses)
    return viewer.Viewer


def _resolve(answered: asyncio.Future[ViewOpened], opened: ViewOpened) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):  # the request was cancelled meanwhile
        answered.set_result(opened)


def _refuse(answered: asyncio.Future[ViewOpened], why: NotShown) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        answered.set_exception(why)
