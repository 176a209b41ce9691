"""What was read last, kept for as long as nothing was written since: who asks again and again costs no reading."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from gateway.store.engine.connection import Job
from gateway.store.engine.database import Database

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Kept(Generic[K, T]):
    """Answers to the questions asked last, at most `most` of them. Any commit of the file makes all of them void."""

    def __init__(self, *, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._generation = -1
        self._answers: OrderedDict[K, T] = OrderedDict()

    async def read(self, question: K, query: Job[T]) -> T:
        """The answer that `query` gives now; see `Database.read`."""
        if question in self._current():
            return self._answers[question]
        generation = self._database.generation
        answer = await self._database.read(query)
        self.keep(question, answer, generation=generation)
        return answer

    def known(self, question: K) -> T | None:
        """The answer if it is known and still holds."""
        return self._current().get(question)

    def keep(self, question: K, answer: T, *, generation: int) -> None:
        """Keep an answer. `generation` is the database's from before it was read: a later one may know better."""
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
