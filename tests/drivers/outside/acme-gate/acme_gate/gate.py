"""The driver: what is asked, and what the answers mean. The base has the rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import ClassVar

from acme_gate.section import INPUTS
from drivers.contract import DeviceFault, GatePosition, PointState, ProtocolViolation
from drivers.gates.http_gate import HttpGate, HttpRequest, HttpStatus


class AcmeGate(HttpGate):
    """A `drivers.contract.Gate` that speaks JSON."""

    called: ClassVar[str] = "the ACME gate"

    def __init__(
        self,
        *,
        device_id: int,
        url: str,
        token: str,
        poll_seconds: float = 0.2,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(device_id=device_id, url=url, poll_seconds=poll_seconds, monotonic=monotonic)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def command_request(self, command: str) -> HttpRequest:
        """Return the request of a command."""
        return HttpRequest("/command", "POST", json.dumps({"command": command}).encode(), self._headers)

    def check_answer(self, body: bytes) -> None:
        """Raise DeviceFault for a refusal, ProtocolViolation for an unreadable answer."""
        answer = _object(body)
        if answer.get("done") is not True:
            raise DeviceFault(f"the ACME gate refuses: {str(answer.get('why'))[:80]}")

    def status_request(self) -> HttpRequest:
        """Return the request of the state."""
        return HttpRequest("/state", headers=self._headers)

    def read_status(self, body: bytes) -> HttpStatus:
        """Parse the state. Raises ProtocolViolation for an unreadable one."""
        state = _object(body)
        try:
            position, inputs = GatePosition(state["arm"]), state["inputs"]
            return HttpStatus(position, {name: _POINTS[inputs[name]] for name in INPUTS})
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolViolation("a state without arm or inputs") from error


_POINTS = {True: PointState.ON, False: PointState.OFF}


def _object(body: bytes) -> dict[str, object]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise ProtocolViolation("an answer that is not JSON") from error
    if not isinstance(answer, dict):
        raise ProtocolViolation("an answer that is no object")
    return answer
