"""The site file of a running gateway. Changes are applied on trial, until they are confirmed or taken back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from secrets import token_hex

import structlog

from gateway.domain.commands import actor
from gateway.domain.errors import ConfigError
from gateway.site.difference import Change, Difference, difference
from gateway.site.faults import SiteFaults
from gateway.site.load import LoadedSite, doubtful, load_whole
from gateway.site.models import Site
from gateway.site.secrets import Secrets
from gateway.site.trial_files import TrialFiles
from gateway.site.unseen_readers import UnseenReader, UnseenReaders, WatchReaders
from gateway.texts import Text, Words, listed, text

log = structlog.get_logger(__name__)

TRIAL_SECONDS = 60.0
LANE_WAIT_SECONDS = 30.0
GOOD_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_AGAIN_SECONDS = 2.0

Take = Callable[[Site, Difference, float, Callable[[], bool]], Awaitable[None]]
"""Applies a changed site; waits up to that many seconds for its lanes, or until a person says that they are free.

If it raises ConfigError, nothing changed.
"""


class TrialStep(StrEnum):
    """A step of a change: taken on trial, confirmed, taken back (RETURNED), or refused."""

    TAKEN = "taken"
    CONFIRMED = "confirmed"
    RETURNED = "returned"
    REFUSED = "refused"


Told = Callable[[TrialStep, Words, str], None]
"""Records a step of a change, with a sentence and the account that made it."""
_LANES_ARE_FREE = text("trial.lanes_are_free")


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Result of a reload.

    Attributes:
        faults: the faults of the file; with any, nothing was changed.
        refused: the reasons why a valid file was not applied; with any, nothing was changed.
        changes: the differences from the running site.
        on_trial: whether the changes are in force on trial.
    """

    faults: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    on_trial: bool = False

    @property
    def is_taken(self) -> bool:
        """True if the file is in force."""
        return not self.faults and not self.refused

    def words(self) -> tuple[Text, ...]:
        """Describe each change in one sentence."""
        return tuple(change.words() for change in self.changes)


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that is in force on trial.

    Attributes:
        by: the account that made it.
        asks_person: whether a person must confirm it; otherwise it is confirmed once lanes and interface have no new
            problem.
        ends: when it is taken back unless it is confirmed (monotonic seconds).
        before: the site before the change.
        after: the changed site.
        changes: the differences.
        known: the keys of the hindrances from before the change.
        unseen: returns the readers that it connected anew and that were not seen to work yet.
        over: set once the change is confirmed or taken back.
    """

    by: str
    asks_person: bool
    ends: float
    before: LoadedSite
    after: LoadedSite
    changes: tuple[Change, ...]
    known: frozenset[tuple[str, ...]]
    unseen: UnseenReaders
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Word:
    """A person's decision on a trial: whether to keep the change."""

    by: str
    keep: bool


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """The end of a trial: whether the change was confirmed or taken back, and why.

    `unseen`: the readers that a confirmed change connected anew and that were not seen to work until then.
    """

    confirmed: bool
    why: Words
    unseen: tuple[UnseenReader, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContext:
    """The gateway as its site file needs it.

    Attributes:
        secrets: the look-up of secrets.
        take: applies a changed site.
        read: called after each reload, with or without faults, and after each trial.
        monotonic: returns monotonic seconds.
        hindrances: returns the problems that keep lanes or the interface from working now: a sentence by the key that
            identifies the problem.
        watch_readers: begins to watch the readers that a change connected anew.
        tell: records each step of a change.
        lasts: called with a changed site once it is in force for good.
    """

    secrets: Secrets
    take: Take
    read: Callable[[], None]
    monotonic: Callable[[], float]
    hindrances: Callable[[], Mapping[tuple[str, ...], str]]
    watch_readers: WatchReaders
    tell: Told
    lasts: Callable[[LoadedSite], None]


class RunningSite:
    """The site file while the gateway runs. A file with faults changes nothing.

    A change that affects more than cameras is on trial: it is taken back unless it is confirmed within a minute. If a
    person is asked, the person confirms it. Otherwise it is confirmed once no lane has had a new problem for 5 s. With
    a reader that was read regularly and is not seen to work yet, that waits for the end of the minute; if vehicles
    waited at its lane by then and nothing was read, the change is taken back. Keep `run` alive as a task.
    """

    def __init__(self, context: SiteContext, *, files: TrialFiles, loaded: LoadedSite, notice: str = "") -> None:
        """Start with the running site.

        Args:
            context: the gateway.
            files: the site file, and the files of a trial.
            loaded: the running site.
            notice: a sentence about an unconfirmed change that was taken back at the start, "" for none.
        """
        self._context = context
        self._files = files
        self._notice = notice
        self._running = loaded
        self._last = Reloaded()
        self._lock = asyncio.Lock()
        self._trial: Trial | None = None
        self._begun = asyncio.Event()
        self._word: _Word | None = None
        self._outcome = TrialEnd(confirmed=True, why="")
        self.run_name = token_hex(8)
        self._lanes_are_free = False

    @property
    def path(self) -> Path:
        """The site file."""
        return self._files.path

    @property
    def running(self) -> LoadedSite:
        """The site in force."""
        return self._running

    @property
    def trial(self) -> Trial | None:
        """The change on trial, None for none."""
        return self._trial

    @property
    def last_outcome(self) -> TrialEnd:
        """The end of the last trial."""
        return self._outcome

    def seconds_left(self) -> float:
        """Return for how many seconds the change on trial can still be confirmed, 0 without a trial."""
        return 0.0 if self._trial is None else max(0.0, self._trial.ends - self._context.monotonic())

    def notices(self) -> tuple[str, ...]:
        """Return the sentences that say why the site file is not in force; empty if it is."""
        last = self._last
        if last.faults:
            count, first = len(last.faults), last.faults[0]
            if count == 1:
                return (f"the site file has a fault and is not in use: {first}",)
            return (f"the site file has {count} faults and is not in use; the first: {first}",)
        if last.refused:
            return (f"the site file was changed and is not in use: {'; '.join(last.refused)}",)
        return (self._notice,) if self._notice else ()

    async def look(self) -> tuple[bytes, LoadedSite | None, SiteFaults | None]:
        """Return the site file's text, and its content or its faults. Changes nothing. Raises OSError."""
        text = await asyncio.to_thread(self._files.path.read_bytes)
        try:
            return (
                text,
                await asyncio.to_thread(partial(load_whole, self.path, secrets=self._context.secrets, text=text)),
                None,
            )
        except SiteFaults as error:
            return text, None, error

    async def compare(self, text: bytes | None = None) -> Reloaded:
        """Return the result that a reload would have, without a change. `text`: a text instead of the site file's."""
        result, _, _ = await self._looked(text)
        return result

    async def reload(
        self,
        *,
        by: str = "",
        text: bytes | None = None,
        asks_person: bool = False,
        wait: float = LANE_WAIT_SECONDS,
        lanes_are_free: bool = False,
    ) -> Reloaded:
        """Read the file, check it, and apply its changes.

        Args:
            by: the account that asks, for the record.
            text: the text of a new site file, which replaces the old one if it is applied.
            asks_person: whether a person must `confirm` the change.
            wait: the longest time to wait for lanes to be free of vehicles, in seconds.
            lanes_are_free: a person says that nobody is in the lanes, whatever their inputs say. An earlier change on
                trial is then taken back first.
        """
        if lanes_are_free and (trial := self._trial) is not None:
            self._lanes_are_free = self.take_back(by=by)
            await trial.over.wait()
        if self._lock.locked() or self._trial is not None:
            return Reloaded(refused=("another change of the site file is under way; confirm it, or wait a minute",))
        async with self._lock:
            self._lanes_are_free = lanes_are_free
            self._last = await self._reload(by=by, text=text, asks_person=asks_person, wait=wait)
            self._lanes_are_free = False  # the word is for this moment
            self._context.read()
        return self._last

    def confirm(self, *, by: str) -> bool:
        """Confirm the change on trial; return False if there is none (any more)."""
        if self._trial is None:
            return False
        self._word = _Word(by, keep=True)
        return True

    def take_back(self, *, by: str) -> bool:
        """Take back the change on trial; return False if there is none (any more)."""
        if self._trial is None:
            return False
        self._word = _Word(by, keep=False)
        return True

    async def outcome(self) -> TrialEnd:
        """Wait for the end of the trial, if there is one, and return the last outcome."""
        if (trial := self._trial) is not None:
            await trial.over.wait()
        return self._outcome

    async def run(self) -> None:
        """Follow each trial to its end, until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            if (trial := self._trial) is not None:
                await self._follow(trial)

    async def _looked(self, text: bytes | None) -> tuple[Reloaded, LoadedSite | None, Difference]:
        try:
            loaded, doubts = await asyncio.to_thread(self._load, text)
        except ConfigError as error:
            faults = tuple(error.lines()) if isinstance(error, SiteFaults) else (str(error),)
            return Reloaded(faults=faults), None, Difference()
        for doubt in doubts:
            log.warning("site_file_doubtful", doubt=doubt)
        found = difference(self._running, loaded)
        return Reloaded(refused=found.refused, changes=found.changes), loaded, found

    async def _reload(self, *, by: str, text: bytes | None, asks_person: bool, wait: float) -> Reloaded:
        result, loaded, found = await self._looked(text)
        if loaded is None:
            log.error("site_file_not_taken", faults=result.faults)
            return result
        if result.refused:
            log.warning("site_file_needs_restart", changed=result.refused)
            self._context.tell(TrialStep.REFUSED, "; ".join(result.refused), by)
            return result
        known, before = frozenset(self._context.hindrances()), self._running
        tried = bool(found.touches_more_than_cameras or text is not None)
        try:
            if tried and found.changes:
                await asyncio.to_thread(self._files.begin, before=before.text, after=loaded.text)
            if text is not None:
                await asyncio.to_thread(self._files.put, loaded.text)
        except OSError as error:
            await self._forget_trial()
            return Reloaded(
                refused=(f"the change cannot be kept on disk: {error.strerror}",),
                changes=result.changes,
            )
        try:
            await self._context.take(loaded.site, found, wait, self._are_free)
        except ConfigError as error:
            if text is not None:
                await self._put_back(before)
            await self._forget_trial()
            self._context.tell(TrialStep.REFUSED, str(error), by)
            log.warning("site_file_not_taken", why=str(error))
            return Reloaded(refused=(str(error),), changes=result.changes)
        self._running = loaded
        self._notice = ""
        log.info("site_file_taken", changed=[str(one) for one in result.words()])
        if result.changes:
            said = (_LANES_ARE_FREE,) if self._lanes_are_free else ()
            self._context.tell(TrialStep.TAKEN, listed((*result.words(), *said)), by)
        if not (tried and found.changes):
            self._context.lasts(loaded)
            return result
        unseen = await self._context.watch_readers(found.devices)
        ends = self._context.monotonic() + TRIAL_SECONDS
        self._word = None
        self._trial = Trial(by, asks_person, ends, before, loaded, result.changes, known, unseen)
        self._begun.set()
        return Reloaded(changes=result.changes, on_trial=True)

    def _are_free(self) -> bool:
        return self._lanes_are_free

    def _load(self, text: bytes | None) -> tuple[LoadedSite, tuple[str, ...]]:
        """Load the file. Blocks. Raises ConfigError."""
        loaded = load_whole(self._files.path, secrets=self._context.secrets, text=text)
        return loaded, tuple(doubtful(loaded.site, self._files.path))

    async def _follow(self, trial: Trial) -> None:
        good_since: float | None = None
        while self._trial is trial:
            now = self._context.monotonic()
            new = [sentence for key, sentence in self._context.hindrances().items() if key not in trial.known]
            good_since = None if new else now if good_since is None else good_since
            is_good = good_since is not None and now >= good_since + GOOD_SECONDS
            awaited = [reader for reader in trial.unseen() if reader.is_regular]
            if (word := self._word) is not None and word.keep:
                await self._keep(trial, by=word.by)
            elif word is not None:
                await self._return(trial, text("trial.taken_back_by", who=actor(word.by)), by=word.by)
            elif now >= trial.ends:
                why = text("trial.not_confirmed", seconds=TRIAL_SECONDS)
                missed = [str(reader.why_back) for reader in awaited if reader.is_missed]
                if is_good and not missed and not trial.asks_person:
                    await self._keep(trial, by="")
                else:
                    await self._return(trial, why if trial.asks_person else "; ".join([*new, *missed]) or why, by="")
            elif is_good and not awaited and not trial.asks_person:
                await self._keep(trial, by="")
            else:
                await asyncio.sleep(_LOOK_SECONDS)

    async def _keep(self, trial: Trial, *, by: str) -> None:
        await self._forget_trial()
        why = text("trial.confirmed_by", who=actor(by)) if by else text("trial.no_new_problem")
        outcome = TrialEnd(confirmed=True, why=why, unseen=trial.unseen())
        self._over(trial, outcome)
        self._context.lasts(trial.after)
        unseen = (reader.words for reader in outcome.unseen)
        self._context.tell(TrialStep.CONFIRMED, listed((text("event.site_change_kept", why=why), *unseen)), by)
        log.info("site_file_confirmed", why=str(why))

    async def _return(self, trial: Trial, why: Words, *, by: str) -> None:
        """Take the change back: restore the file at once, and apply the earlier site as soon as its lanes are free."""
        async with self._lock:
            if self._trial is not trial:
                return
            log.warning("site_file_returns", why=str(why))
            await self._put_back(trial.before)
            found = difference(trial.after, trial.before)
            while True:
                try:
                    await self._context.take(trial.before.site, found, LANE_WAIT_SECONDS, self._are_free)
                    break
                except ConfigError as error:
                    self._notice = f"the site file was taken back and is not in use yet: {error}"
                    self._context.read()
                    await asyncio.sleep(_AGAIN_SECONDS)
            self._running = trial.before
            self._notice = ""
            self._over(trial, TrialEnd(confirmed=False, why=why))
            self._context.tell(TrialStep.RETURNED, text("event.site_change_returned", why=why), by)

    def _over(self, trial: Trial, outcome: TrialEnd) -> None:
        self._trial, self._outcome = None, outcome
        trial.over.set()
        self._context.read()

    async def _put_back(self, before: LoadedSite) -> None:
        try:
            await asyncio.to_thread(self._files.take_back, before=before.text)
        except OSError as error:
            log.error("site_file_not_put_back", file=str(self._files.path), error=error.strerror)  # noqa: TRY400 (the sentence says it all)

    async def _forget_trial(self) -> None:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._files.end)
