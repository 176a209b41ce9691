"""Live views of the site's cameras by WebRTC, and parts for those by HLS, from the worker that has the camera."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from gateway.domain.errors import CameraUnavailable, NotFoundError, OfferUnanswered
from gateway.domain.footage import WantParts
from gateway.domain.viewing import (
    LONGEST_FRAGMENT,
    LONGEST_OFFER,
    NotShown,
    OpenView,
    TrickleView,
    ViewOpened,
    ViewRefusal,
)
from gateway.recording.worker_client import WorkerClient
from gateway.recording.worker_pool import CameraWorker
from gateway.texts import text


class Viewing:
    """The live views of the site, at most `most` at a time.

    All methods but `expect` and `want_parts` raise NotFoundError for an unknown camera, NotShown for a request that
    cannot be met, and CameraUnavailable while the camera's worker does not run; `open` raises OfferUnanswered when it
    gave no answer to the offer.
    """

    def __init__(
        self, *, cameras: Callable[[], frozenset[int]], workers: Callable[[], Sequence[CameraWorker]], most: int
    ) -> None:
        self._cameras = cameras
        self._workers = workers
        self._most = most
        self._expecting: dict[str, int] = {}

    async def expect(self, camera_id: int) -> None:
        """Prepare the camera's worker for a viewer, because a client has asked for the address of its view.

        It never raises, and waits half a second at most.
        """
        for worker in self._workers():
            client = worker.client
            if camera_id in worker.cameras and client is not None and self._expecting.get(worker.name) != worker.pid:
                self._expecting[worker.name] = worker.pid
                with contextlib.suppress(NotShown, CameraUnavailable):  # the viewer will get the error
                    await client.expect_view()

    async def want_parts(self, wanted: WantParts) -> None:
        """Ask the camera's worker to report parts. It never raises, and waits half a second at most."""
        for worker in self._workers():
            client = worker.client
            if wanted.camera_id in worker.cameras and client is not None:
                with contextlib.suppress(CameraUnavailable):  # whoever watches by HLS gets whole segments then
                    await client.want_parts(wanted)

    async def open(self, camera_id: int, offer: str, *, address: str) -> ViewOpened:
        """Open a view. `offer`: the viewer's SDP offer. `address`: the viewer's own, "" when it is not known."""
        worker = self._worker(camera_id)
        client = self._client(worker)
        _check_length(offer, LONGEST_OFFER)
        if sum(each.viewers for each in self._workers()) >= self._most:
            raise NotShown(ViewRefusal.FULL, text("refused.too_many_viewers", count=str(self._most)))
        worker.viewers += 1  # many may come before the worker's next report
        try:
            opened = await client.open_view(OpenView(camera_id=camera_id, address=address, offer=offer))
        except NotShown:
            worker.viewers = max(0, worker.viewers - 1)  # offers that are refused take no place of others
            raise
        except CameraUnavailable as error:
            raise OfferUnanswered(str(error), retry_after=error.retry_after) from error
        worker.viewers = opened.viewers
        return opened

    async def trickle(self, camera_id: int, view: str, *, tags: tuple[str, ...], fragment: str) -> None:
        """Pass a viewer's further ICE candidates on to the worker."""
        client = self._client(self._worker_of(camera_id, view))
        _check_length(fragment, LONGEST_FRAGMENT)
        await client.trickle_view(view, TrickleView(tags=tags, fragment=fragment))

    async def look(self, camera_id: int, view: str) -> None:
        """Check that a view is open; raise NotShown if it is not."""
        await self._client(self._worker_of(camera_id, view)).look_at_view(view)

    async def end(self, camera_id: int, view: str) -> None:
        """End a view."""
        await self._client(self._worker_of(camera_id, view)).end_view(view)

    def _worker_of(self, camera_id: int, view: str) -> CameraWorker:
        """Return the worker of a camera's view; a view's name begins with its camera's id."""
        worker = self._worker(camera_id)
        if not view.startswith(f"{camera_id}-"):
            raise NotShown(ViewRefusal.UNKNOWN, text("refused.view_unknown"))
        return worker

    def _worker(self, camera_id: int) -> CameraWorker:
        if camera_id not in self._cameras():
            raise NotFoundError(text("refused.camera_unknown", camera=str(camera_id)))
        for worker in self._workers():
            if camera_id in worker.cameras:
                return worker
        raise NotShown(ViewRefusal.NO_SOURCE, text("refused.recording_not_ready"))

    def _client(self, worker: CameraWorker) -> WorkerClient:
        if worker.client is None:
            raise CameraUnavailable(text("refused.worker_restarts"))
        return worker.client


def _check_length(sdp: str, longest: int) -> None:
    if len(sdp) > longest:
        raise NotShown(ViewRefusal.BAD_OFFER, f"the SDP has {len(sdp)} characters, and may have {longest}")
