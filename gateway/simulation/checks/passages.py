"""What the site shows is true: a vehicle that drove through a lane in peace is recorded as a passage, once."""

from __future__ import annotations

from gateway.domain.passages import Passage, PassageOutcome
from gateway.simulation import observations as seen

_RECORDED_WITHIN = 60.0
_MICROS = 1_000_000


class PassagesCheck:
    """Compares vehicles that really passed, where nothing was wrong, with the passages that were recorded."""

    promise = "10 each passage is recorded"
    wants = (seen.Drove, seen.Acknowledged, seen.Refreshed, seen.Presented, seen.Ended)

    def __init__(self) -> None:
        self._owed: dict[str, list[seen.Drove]] = {}
        self._recorded: dict[str, list[float]] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.Drove(outcome="passed", calm=True):
                self._owe(observation)
            case seen.Acknowledged():
                if observation.entry.passage is not None:
                    self._note(observation.entry.passage, observation)
            case seen.Ended():  # what was not on disk by then is lost, as it may be
                self._owed.clear()
                self._recorded.clear()
            case _:
                pass
        return self._overdue(observation.at)

    def _owe(self, drove: seen.Drove) -> None:
        recorded = self._recorded.get(drove.lane, [])
        of_this = [at for at in recorded if at >= drove.began]
        if of_this:
            recorded.remove(of_this[0])
        else:
            self._owed.setdefault(drove.lane, []).append(drove)

    def _note(self, passage: Passage, acknowledged: seen.Acknowledged) -> None:
        if passage.outcome is not PassageOutcome.PASSED:
            return
        owed = self._owed.get(passage.lane_id)
        if owed:
            owed.pop(0)
        else:
            self._recorded.setdefault(passage.lane_id, []).append(acknowledged.at)

    def _overdue(self, now: float) -> str:
        for lane, owed in self._owed.items():
            if owed and now - owed[0].at > _RECORDED_WITHIN:
                drove = owed.pop(0)
                return f"a vehicle passed {lane} in peace at {drove.at:.3f}, and no passage of it was recorded"
        return ""
