"""The site that the tests of the web share."""

from __future__ import annotations

from gateway.domain.server_lines import BrokerStatus, ConnectionState, FleetSeen, GatewaySeen, ProblemSeen
from gateway.runtime.clock import SystemClock
from gateway.site.central_sections import CentralSection
from gateway.site.models import Site

START = 1_760_000_000_000_000
SITE = Site.model_validate(
    {
        "site": {"name": "North Yard", "timezone": "America/Toronto"},
        "links": [{"id": "plc", "url": "tcp://127.0.0.1:502"}, {"id": "desk", "url": "serial:/dev/ttyS0"}],
        "devices": [
            {"id": 101, "name": "Entry barrier", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
            {"id": 102, "name": "Entry reader", "driver": "serial-reader", "link": "desk"},
        ],
        "areas": [{"id": "garage", "name": "Garage", "limit": 2, "anti_passback": "hard"}],
        "lanes": [
            {
                "id": "entry",
                "name": "Main entry",
                "gate": 101,
                "readers": [102],
                "inside": "garage",
                "cameras": [201],
                "inputs": [
                    {"role": "arming", "device": 101, "point": "arming"},
                    {"role": "closing", "device": 101, "point": "closing"},
                ],
            }
        ],
        "cameras": [{"id": 201, "name": "Entry overview", "url": "rtsp://127.0.0.1/one"}],
    }
)

CENTRAL = CentralSection(url="http://127.0.0.1:1", username="gateway", password="gateway")


BROKER = BrokerStatus(
    state=ConnectionState.AWAY,
    since=1_767_225_600_000_000,
    broker="broker.example.com:8883",
    reason="no answer within 10 s",
    waiting=1204,
)


def fleet_seen(_mark: str) -> FleetSeen:
    """Gateways of a fleet: one that is well, one to look at, one that is not ready, and one that is away."""
    now = SystemClock().wall().micros
    text = "the gate's position is not known: open it, then close it"

    def seen(name: str, *problems: tuple[str, str], ago: int = 20, headline: str = "All 2 lanes work") -> GatewaySeen:
        return GatewaySeen(
            name=name,
            at=now - ago * 1_000_000,
            site="North Yard",
            version="1.4.0",
            ready=not headline.startswith("1 of"),
            headline=headline,
            problem_count=len(problems),
            problems=tuple(ProblemSeen(*one) for one in problems),
            last_event=4711,
            last_event_at=now - 90_000_000,
            waiting=1,
        )

    return FleetSeen(
        mark="run-4",
        anew=True,
        seen=(
            seen("north.gate-1"),
            seen("north.gate-2", ("warning", text), headline="1 problem"),
            seen("south.gate-1", ("alarm", text), headline="1 of 2 lanes cannot work, 1 problem"),
            seen("west-car-park.gate-1", ago=7200),
        ),
        gone=(),
        complete=True,
        fault="",
        away_seconds=150.0,
    )
