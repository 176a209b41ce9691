"""The site's central as all that works with it sees it: built once, and shared."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.central.client.client import CentralClient
from gateway.central.push.lost_records import LostRecords
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.restored_central import OwnRecords, RestoreDetector
from gateway.central.push.search_attempts import ASK_AFTER, MAY_TAKE, SearchAttempts
from gateway.central.push.unknown_outcomes import OutcomeSearch
from gateway.central.site_cards import SiteCards
from gateway.runtime.clock import Clock
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Central, and what the site knows about central's ids and records.

    Attributes:
        client: the client of central.
        cards: the site's cards.
        store: the site's store.
        clock: the clock.
        newest: the newest ids that central has given.
        restore: the detector of a central that was restored from a backup.
        outcomes: the search for records whose create central may have carried out.
        own_records: the check that central's ids still belong to records that this site made.
        attempts: the repetition of searches that did not find a record or file.
    """

    client: CentralClient
    cards: SiteCards
    store: Store
    clock: Clock
    newest: NewestIds
    restore: RestoreDetector
    outcomes: OutcomeSearch
    own_records: OwnRecords
    attempts: SearchAttempts


def upstream(
    client: CentralClient,
    cards: SiteCards,
    *,
    newest: NewestIds | None = None,
    may_take: float = MAY_TAKE,
    ask_after: float = ASK_AFTER,
) -> Upstream:
    """Build what all that works with central shares.

    For `may_take` seconds after a lost answer, central may still carry out the write. After `ask_after` seconds a
    person decides about a row of unknown outcome.
    """
    store, clock = cards.store, cards.clock
    attempts = SearchAttempts(monotonic=clock.monotonic, may_take=may_take, ask_after=ask_after)
    newest = newest or NewestIds(client=client, clock=clock)
    lost_records = LostRecords(client=client, store=store, clock=clock)
    restore = RestoreDetector(lost_records=lost_records, store=store, clock=clock)
    return Upstream(
        client=client,
        cards=cards,
        store=store,
        clock=clock,
        newest=newest,
        restore=restore,
        outcomes=OutcomeSearch(client=client, store=store, clock=clock, attempts=attempts, newest=newest),
        own_records=OwnRecords(client=client, store=store, restore=restore),
        attempts=attempts,
    )
