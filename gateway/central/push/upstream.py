"""Central as the upstream of all who write to it, with what the site knows of its ids and its records."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.central.client.client import CentralClient
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.own_records import OwnRecords
from gateway.central.push.restored_central import RestoreDetector
from gateway.central.push.unknown_outcomes import OutcomeSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A central that takes writes. All who write to it share one.

    Attributes:
        client: the line to it.
        newest: the newest ids that it has given.
        restore: the detector of a central that was set back.
        outcomes: the search for records whose create it may have carried out.
        own_records: the check that its ids still name what this site made.
    """

    client: CentralClient
    newest: NewestIds
    restore: RestoreDetector
    outcomes: OutcomeSearch
    own_records: OwnRecords
