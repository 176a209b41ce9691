"""A cache of query results that any commit invalidates."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from gateway.store.engine.connection import Job
from gateway.store.engine.database import Database

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class QueryCache(Generic[K, T]):
    """The results of the latest queries, at most `most` of them. Any commit to the database invalidates all."""

    def __init__(self, *, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._generation = -1
        self._answers: OrderedDict[K, T] = OrderedDict()

    async def read(self, question: K, query: Job[T]) -> T:
        """Return the cached result of `question`, or run `query` as `Database.read` does and cache its result."""
        if question in self._current():
            return self._answers[question]
        generation = self._database.generation
        answer = await self._database.read(query)
        self.keep(question, answer, generation=generation)
        return answer

    def known(self, question: K) -> T | None:
        """Return the cached result, or None."""
        return self._current().get(question)

    def keep(self, question: K, answer: T, *, generation: int) -> None:
        """Cache a result unless it is outdated. `generation`: the database's generation before the read."""
        if generation != self._database.generation:
            return
        answers = self._current()
        answers[question] = answer
        if len(answers) > self._most:
            answers.popitem(last=False)

    def _current(self) -> OrderedDict[K, T]:
        if self._generation != self._database.generation:
            self._answers.clear()
            self._generation = self._database.generation
        return self._answers
