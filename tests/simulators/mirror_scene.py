"""A mirror over a store, for tests with a real broker."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleet_scene import SOON
from mosquitto import Mosquitto

from drivers.contract import GatePosition, PointState
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import LaneSnapshot, Phase
from gateway.mqtt.line import Broker
from gateway.mqtt.mirror import Mirror, Topics
from gateway.problems.problem import Problem, SitePart, Verdict
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Store

TOPICS = Topics("edge-gateway/north/gate-1")
WELL = Verdict(problems=(), lanes=1)
BAD = Verdict(
    problems=(
        Problem(
            kind=ProblemKind.CAMERA_STALLED, part=SitePart.CAMERA, id="201", name="Entry", text="no picture for 9 s"
        ),
    ),
    lanes=1,
)


def lane(lane_id: str = "entry", position: GatePosition = GatePosition.CLOSED) -> LaneSnapshot:
    return LaneSnapshot(
        lane_id=lane_id,
        name="Main entry",
        direction="entry",
        phase=Phase.IDLE,
        since=1_790_000_000_000_000,
        gate_id=101,
        position=position,
        vehicle=PointState.OFF,
        under=PointState.OFF,
        note="",
    )


@dataclass
class Shown:
    """The lanes and the verdict of a site."""

    lanes: tuple[LaneSnapshot, ...] = (lane(),)
    verdict: Verdict = field(default=WELL)


def mirror(
    store: Store, at: Mosquitto | int, shown: Shown | None = None, *, backoff: Backoff = SOON, **of_broker
) -> Mirror:
    """A mirror at a broker, or at a port of this machine."""
    port, seen = at if isinstance(at, int) else at.port, shown or Shown()
    host = "localhost" if of_broker.get("is_encrypted") else "127.0.0.1"
    address = {"host": host, "port": port, "is_encrypted": False, "client_id": TOPICS.root}
    return Mirror(
        broker=Broker(**address | of_broker),
        topics=TOPICS,
        site_name=lambda: "North",
        lanes=lambda: seen.lanes,
        verdict=lambda: seen.verdict,
        store=store,
        clock=SystemClock(),
        backoff=backoff,
    )
