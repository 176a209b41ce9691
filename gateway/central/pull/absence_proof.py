"""Absence proof: before the site removes a record, central is asked for it by id.

Lists shift while they are walked, and a list may lack records that central still has. Central's answer about the single
record is proof, if central answers such requests at all: a record that it has just listed must be found the same way.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gateway.central.client.answers import CentralDenied, CentralFailed, JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.values import record_id
from gateway.domain.errors import CentralRefused

MOST_ASKED: Final = 100
"""The most single records that are asked for in one pull."""

Found = tuple[tuple[int, JsonObject], ...]
"""Records that central has, with their ids."""

_AT_A_TIME = 10
_NOT_FOUND = 404
_GONE_WORDS = ("not found", "does not exist", "no such", "deleted")
_LISTED_TRIES = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """Central's answers about records by their ids.

    Attributes:
        gone: ids of records that it no longer has.
        there: records that it still has, as they are now.
        unsaid: ids for which its answer shows neither.
        unasked: ids that were not asked for.
    """

    gone: frozenset[int] = frozenset()
    there: Found = ()
    unsaid: frozenset[int] = frozenset()
    unasked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ById:
    """Requests for single records. `names` are the names under which an answer may have the record."""

    client: CentralClient
    path: str
    names: tuple[str, ...]

    async def ask_some(self, record_ids: Iterable[int], *, listed: Iterable[int]) -> Asked:
        """Ask for at most a hundred of these records, chosen at random, ten at a time. Raises as `ask` does.

        Asking stops early when central still has all of ten, because then the list is wrong; and when an answer shows
        neither presence nor absence, because then central does not answer such requests.
        """
        wanted, known = frozenset(record_ids), tuple(islice(listed, _LISTED_TRIES))
        chosen = random.sample(sorted(wanted), min(len(wanted), MOST_ASKED))
        said = Asked()
        for start in range(0, len(chosen), _AT_A_TIME):
            some = chosen[start : start + _AT_A_TIME]
            asked = await self.ask(some, listed=known)
            said = Asked(said.gone | asked.gone, said.there + asked.there, said.unsaid | asked.unsaid)
            if asked.unsaid or len(asked.there) == _AT_A_TIME:
                break
        return Asked(
            said.gone, said.there, said.unsaid, wanted - said.gone - said.unsaid - {number for number, _ in said.there}
        )

    async def ask(self, record_ids: Iterable[int], *, listed: Iterable[int]) -> Asked:
        """Ask central for these records. Raises CentralUnavailable when it does not answer.

        That a record is gone is believed only if one of the `listed` records is found before and after. If none of them
        is found, because the whole list is wrong, one of the wanted records may serve instead.
        """
        wanted, known = tuple(record_ids), tuple(islice(listed, _LISTED_TRIES))
        if not await self._finds_one(known):
            known = wanted[:: max(len(wanted) // _LISTED_TRIES, 1)][:_LISTED_TRIES]
            if not await self._finds_one(known):
                return Asked(frozenset(), (), frozenset(wanted))
        asked = await self._ask(wanted)
        if asked.gone and not await self._finds_one(known):
            return Asked(frozenset(), asked.there, asked.unsaid | asked.gone)
        return asked

    async def _finds_one(self, listed: tuple[int, ...]) -> bool:
        for number in listed:
            if await self._said(number):
                return True
        return False

    async def _ask(self, record_ids: tuple[int, ...]) -> Asked:
        gone: set[int] = set()
        unsaid: set[int] = set()
        there: list[tuple[int, JsonObject]] = []
        for number in record_ids:
            said = await self._said(number)
            if said is None:
                unsaid.add(number)
            elif said:
                there.append((number, said))
            else:
                gone.add(number)
        return Asked(frozenset(gone), tuple(there), frozenset(unsaid))

    async def _said(self, number: int) -> JsonObject | None:
        """Return central's record, {} if central has none, None for an answer that shows neither."""
        try:
            answer = await self.client.call("POST", self.path, {"id": number}, urgent=True)
        except CentralDenied:
            return None
        except CentralRefused as error:
            return {} if error.status == _NOT_FOUND or _says_gone(error.said) else None
        except CentralFailed:  # a failure of central says nothing about the record, whatever its words
            return None
        for name in self.names:
            if name in answer:
                record = answer[name]
                if not record:
                    return {}
                return record if isinstance(record, dict) and record_id(record) == number else None
        return answer if record_id(answer) == number else None


def _says_gone(said: str) -> bool:
    return any(words in said.casefold() for words in _GONE_WORDS)
