"""Which cameras go to which worker, with the credentials that they need. Pure but for reading the secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import quote, urlsplit

from gateway.domain.footage import WorkerCamera
from gateway.site import Camera, Secrets

T = TypeVar("T")


def groups(cameras: Sequence[T], *, most: int) -> tuple[tuple[T, ...], ...]:
    """The cameras in as few groups of at most `most` as will do, in their order. Pure."""
    return tuple(tuple(cameras[at : at + most]) for at in range(0, len(cameras), most))


def regrouped(now: Sequence[frozenset[int]], wanted: Sequence[int], *, most: int) -> tuple[frozenset[int], ...]:
    """The groups when the cameras are `wanted`: none changes its group, new ones go where there is room, then to
    groups added at the end. A group without cameras stays, for those that come later. Pure.
    """
    groups = [set(group.intersection(wanted)) for group in now]
    for camera_id in wanted:
        if any(camera_id in group for group in groups):
            continue
        room = next((group for group in groups if len(group) < most), None)
        if room is None:
            groups.append(room := set())
        room.add(camera_id)
    return tuple(frozenset(group) for group in groups)


def worker_camera(camera: Camera, secrets: Secrets, *, segment_seconds: float, clip_before: float = 0) -> WorkerCamera:
    """The camera as its worker must record it. Its URL holds the credentials: never log or show it.

    `clip_before` seconds before an event are held in memory in any case, where it is recorded for events only.
    Raises ConfigError when the secret cannot be had.
    """
    return WorkerCamera(
        camera_id=camera.id,
        url=_with_account(camera.url, camera, secrets),
        live_url=None if camera.live_url is None else _with_account(camera.live_url, camera, secrets),
        audio=camera.audio == "on",
        transport=camera.transport,
        segment_seconds=segment_seconds,
        record=camera.record,
        pre_roll_seconds=max(camera.pre_roll_seconds, clip_before + 2 * segment_seconds),
    )


def _with_account(url: str, camera: Camera, secrets: Secrets) -> str:
    if camera.username is not None and camera.password is not None:
        account = f"{quote(camera.username, safe='')}:{quote(secrets.get(camera.password), safe='')}"
    elif camera.token is not None:
        account = f":{quote(secrets.get(camera.token), safe='')}"
    else:
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=f"{account}@{parts.netloc}").geturl()
