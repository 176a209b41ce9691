"""The problems of cameras. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.domain.footage import CameraCondition, StreamFault
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Part, Problem, gateway_problem
from gateway.recording import CameraSnapshot, RestartingWorker

_KINDS = {
    CameraCondition.STARTING: ProblemKind.CAMERA_NEVER_SEEN,
    CameraCondition.UNREACHABLE: ProblemKind.CAMERA_UNREACHABLE,
    CameraCondition.REFUSED: ProblemKind.CAMERA_REFUSED,
    CameraCondition.UNSUPPORTED: ProblemKind.CAMERA_UNSUPPORTED,
    CameraCondition.STALLED: ProblemKind.CAMERA_STALLED,
    CameraCondition.DISK_FAILED: ProblemKind.CAMERA_DISK_FAILED,
}
_STREAM_KINDS = {
    StreamFault.NO_ENTRY_POINTS: (
        ProblemKind.CAMERA_NO_ENTRY_POINTS,
        "it sends no keyframe for 10 s at a time, so that pictures may be damaged where playing begins",
    ),
    StreamFault.TIMES_JUMP: (ProblemKind.CAMERA_CLOCK_JUMPS, "the times of its pictures jump or stand still"),
    StreamFault.OFF_PACE: (
        ProblemKind.CAMERA_OFF_PACE,
        "its timestamps count {pace:.2f} s in a second, and are corrected",
    ),
    StreamFault.PACKETS_LOST: (
        ProblemKind.CAMERA_PICTURES_MISSING,
        "pictures are lost on the network again and again",
    ),
    StreamFault.LEAVES_OUT: (
        ProblemKind.CAMERA_PICTURES_MISSING,
        "the camera leaves pictures out again and again",
    ),
    StreamFault.FALLS_BEHIND: (
        ProblemKind.CAMERA_PICTURES_MISSING,
        "this box does not keep up with what the camera sends",
    ),
}


def problems_of_camera(camera: CameraSnapshot) -> Iterator[Problem]:
    """Yield the problem that the camera does not record, or the problems of its stream."""
    if (kind := _KINDS.get(camera.condition)) is not None:
        text = f"{camera.name}: {camera.detail or camera.condition.value}"
        yield _problem(kind, camera, text, since=camera.since)
    for fault in camera.faults:
        kind, words = _STREAM_KINDS[fault]
        text = f"{camera.name}: {words.format(pace=camera.pace)}"
        yield _problem(kind, camera, text, subject=fault.value)


def problem_of_worker(worker: RestartingWorker, cameras: Iterable[CameraSnapshot]) -> Problem:
    """Return the problem of a camera worker that stops repeatedly."""
    named = ", ".join(camera.name for camera in cameras if camera.camera_id in worker.cameras)
    text = f"{worker.name} stops again and again: {worker.reason}. Its cameras: {named}"
    return gateway_problem(ProblemKind.WORKER_RESTARTING, text, worker.name)


def _problem(kind: ProblemKind, camera: CameraSnapshot, text: str, *, subject: str = "", since: int = 0) -> Problem:
    return Problem(
        kind=kind,
        part=Part.CAMERA,
        id=str(camera.camera_id),
        name=camera.name,
        text=text,
        subject=subject,
        since=since,
    )
