"""Promise 4: the outbox's books balance; nothing is lost on its way to central, nothing doubled."""

from __future__ import annotations

from gateway.simulation import observations as seen
from gateway.store import Books


class BooksCheck:
    """Check with books of its own: what was acknowledged, and what central has."""

    promise = "4 books balance"
    wants = (seen.Acknowledged, seen.CentralTook, seen.BooksSeen)

    def __init__(self) -> None:
        self._acknowledged: set[int] = set()
        self._taken: set[int] = set()

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.Acknowledged():
                self._acknowledged.update(observation.recorded.camera_event_ids)
            case seen.CentralTook():
                self._taken.add(observation.site_id)
                if observation.again and observation.site_id > 0:
                    return f"central has record {observation.site_id} twice"
            case seen.BooksSeen():
                return self._judge(observation)
            case _:
                pass
        return ""

    def _judge(self, observation: seen.BooksSeen) -> str:
        return self._unbalanced(observation.books) or (
            self._unsettled(observation.books) if observation.settled else ""
        )

    def _unbalanced(self, books: Books) -> str:
        if not books.balance():
            return f"the books do not balance: {books}"
        if books.accepted < len(self._acknowledged):
            return f"{len(self._acknowledged)} camera events were acknowledged, {books.accepted} accepted for sending"
        if books.delivered > len(self._taken):
            return f"{books.delivered} counted as delivered, central has {len(self._taken)}"
        return ""

    def _unsettled(self, books: Books) -> str:
        """Return what is wrong when nothing is under way and central has been there for long."""
        if books.delivered + books.waiting + books.parked < len(self._taken):
            return f"central has {len(self._taken)}, and only {books.delivered} are counted as delivered"
        missing = len(self._acknowledged - self._taken)
        kept = books.waiting + books.parked + books.dropped
        if missing > kept:
            return f"{missing} acknowledged camera events are not at central, and only {kept} are still kept"
        if books.waiting > books.parked:  # behind an entry that was refused waits its exit
            return f"{books.waiting} rows still wait long after central came back"
        return ""
