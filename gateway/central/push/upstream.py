"""The common part of all senders to central: its client, and what the site knows about central's ids and records."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.central.client.client import CentralClient
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.own_records import OwnRecords
from gateway.central.push.restored_central import RestoreDetector
from gateway.central.push.unknown_outcomes import OutcomeSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The site's central as seen by the senders, which share one instance.

    Attributes:
        client: the client of central.
        newest: the newest ids that central has given.
        restore: the detector of a central that was restored from a backup.
        outcomes: the search for records whose create central may have carried out.
        own_records: the check that central's ids still belong to records that this site made.
    """

    client: CentralClient
    newest: NewestIds
    restore: RestoreDetector
    outcomes: OutcomeSearch
    own_records: OwnRecords
