"""What was read last, kept for as long as nothing was written since: who asks again and again costs no reading."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from gateway.store.commit import Job
from gateway.store.database import Database

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Kept(Generic[K, T]):
    """Answers to the questions asked last, at most `most` of them. Any commit of the file makes all of them void."""

    def __init__(self, *, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._generation = -1
        self._answers: OrderedDict[K, T] = OrderedDict()

    async def read(self, question: K, query: Job[T], *, lengthy: bool = False) -> T:
        """The answer that `query` gives now; see `Database.read`."""
        generation = self._database.generation
        if self._generation != generation:
            self._answers.clear()
            self._generation = generation
        if question in self._answers:
            self._answers.move_to_end(question)
            return self._answers[question]
        answer = await self._database.read(query, lengthy=lengthy)
        if self._generation == generation == self._database.generation:  # else it may be older than the last commit
            self._answers[question] = answer
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer
