"""The problems of cameras. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.domain.footage import CameraCondition, StreamFault
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Part, Problem, gateway_problem
from gateway.recording import CameraSnapshot, RestartingWorker
from gateway.texts import Text, text

_KINDS = {
    CameraCondition.STARTING: ProblemKind.CAMERA_NEVER_SEEN,
    CameraCondition.UNREACHABLE: ProblemKind.CAMERA_UNREACHABLE,
    CameraCondition.REFUSED: ProblemKind.CAMERA_REFUSED,
    CameraCondition.UNSUPPORTED: ProblemKind.CAMERA_UNSUPPORTED,
    CameraCondition.STALLED: ProblemKind.CAMERA_STALLED,
    CameraCondition.DISK_FAILED: ProblemKind.CAMERA_DISK_FAILED,
}
_STREAM_KINDS = {
    StreamFault.NO_ENTRY_POINTS: ProblemKind.CAMERA_NO_ENTRY_POINTS,
    StreamFault.TIMES_JUMP: ProblemKind.CAMERA_CLOCK_JUMPS,
    StreamFault.OFF_PACE: ProblemKind.CAMERA_OFF_PACE,
    StreamFault.PACKETS_LOST: ProblemKind.CAMERA_PICTURES_MISSING,
    StreamFault.LEAVES_OUT: ProblemKind.CAMERA_PICTURES_MISSING,
    StreamFault.FALLS_BEHIND: ProblemKind.CAMERA_PICTURES_MISSING,
}


def problems_of_camera(camera: CameraSnapshot) -> Iterator[Problem]:
    """Yield the problem that the camera does not record, or the problems of its stream."""
    if (kind := _KINDS.get(camera.condition)) is not None:
        said = text("problem.camera", camera=camera.name, why=camera.detail or camera.condition.value)
        yield _problem(kind, camera, said, since=camera.since)
    for fault in camera.faults:
        yield _problem(_STREAM_KINDS[fault], camera, _of_stream(fault, camera), subject=fault.value)


def _of_stream(fault: StreamFault, camera: CameraSnapshot) -> Text:
    match fault:
        case StreamFault.NO_ENTRY_POINTS:
            return text("problem.camera_no_entry_points.text", camera=camera.name)
        case StreamFault.TIMES_JUMP:
            return text("problem.camera_clock_jumps.text", camera=camera.name)
        case StreamFault.OFF_PACE:
            return text("problem.camera_off_pace.text", camera=camera.name, pace=round(camera.pace, 2))
        case _:
            return text(f"problem.camera_pictures_missing.{fault}", camera=camera.name)


def problem_of_worker(worker: RestartingWorker, cameras: Iterable[CameraSnapshot]) -> Problem:
    """Return the problem of a camera worker that stops repeatedly."""
    named = ", ".join(camera.name for camera in cameras if camera.camera_id in worker.cameras)
    said = text("problem.worker_restarting.text", worker=worker.name, why=worker.reason, cameras=named)
    return gateway_problem(ProblemKind.WORKER_RESTARTING, said, worker.name)


def _problem(kind: ProblemKind, camera: CameraSnapshot, text: Text, *, subject: str = "", since: int = 0) -> Problem:
    return Problem(
        kind=kind,
        part=Part.CAMERA,
        id=str(camera.camera_id),
        name=camera.name,
        text=text,
        subject=subject,
        since=since,
    )
