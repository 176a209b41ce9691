"""Central as the gateway reports it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gateway.domain.server_lines import CentralStatus
from tests.gateway.web.setups.site import START

CENTRAL_STATUS = CentralStatus(
    reachable=True, since=START, last_sign_in=START, pulled_at=START, pulled="40 access cards, 3 devices, 1 cameras"
)


@dataclass
class CentralInMemory:
    view: CentralStatus = CENTRAL_STATUS
    asked_by: list[str] = field(default_factory=list)

    def show(self, **changed: object) -> None:
        self.view = replace(self.view, **changed)  # type: ignore[arg-type]  # fields of the status

    def snapshot(self) -> CentralStatus:
        return self.view

    async def refresh(self, *, by: str) -> None:
        self.asked_by.append(by)
        self.show(refreshing=True)

    async def reconcile(self, *, days: int, by: str) -> None:
        self.asked_by.append(f"{by}: {days} days")
        self.show(reconciling=True)
