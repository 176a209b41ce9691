"""Promise 4: the outbox's books balance; nothing is lost on its way to central, nothing doubled."""

from __future__ import annotations

from gateway.simulation import observations as seen


class BooksCheck:
    """Keeps books of its own beside the outbox's: what was acknowledged, and what central has."""

    promise = "4 books balance"
    wants = (seen.Acknowledged, seen.CentralTook, seen.BooksSeen)

    def __init__(self) -> None:
        self._acknowledged: set[int] = set()
        self._taken: dict[int, str] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.Acknowledged():
                self._acknowledged.update(observation.recorded.camera_event_ids)
            case seen.CentralTook():
                if self._taken.setdefault(observation.source_id, observation.key) != observation.key:
                    return f"what {observation.source_id} tells of went up under two keys"
            case seen.BooksSeen():
                return self._judge(observation)
            case _:
                pass
        return ""

    def _judge(self, observation: seen.BooksSeen) -> str:
        books = observation.books
        if not books.balance():
            return f"the books do not balance: {books}"
        if books.accepted < len(self._acknowledged):
            return f"{len(self._acknowledged)} camera events were acknowledged, {books.accepted} accepted for sending"
        if books.delivered > len(self._taken):
            return f"{books.delivered} counted as delivered, central has {len(self._taken)}"
        missing = len(self._acknowledged - self._taken.keys())
        kept = books.waiting + books.parked + books.dropped
        if observation.settled and missing > kept:
            return f"{missing} acknowledged camera events are not at central, and only {kept} are still kept"
        if observation.settled and books.waiting > books.parked:  # behind an entry that was refused waits its exit
            return f"{books.waiting} rows still wait long after central came back"
        return ""
