"""State of the link to central, in words for the page and the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from gateway.central.client.client import CentralClient
from gateway.central.client.state import CentralState
from gateway.central.pull.pull import DownSync, Part, PullProgress, PullReport
from gateway.central.runner import Sync
from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import CentralNotice, CentralStatus
from gateway.runtime.clock import WallTimes, iso_utc
from gateway.texts import Words, text

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralLink:
    """Status of the link to central, read without waiting, and the actions of a technician on it.

    `made_at`: when this link was made, at the gateway's start or after a change of [central] (monotonic seconds).
    `password_in`: where the password of the gateway's account is, and what puts another one in force.
    """

    client: CentralClient
    down: DownSync
    sync: Sync
    made_at: float
    wall_times: WallTimes
    password_in: Words

    def snapshot(self) -> CentralStatus:
        """Return the state of the link now. Never waits."""
        state, report = self.client.state, self.down.report
        return CentralStatus(
            reachable=state.reachable,
            since=self.wall_times.of(self.made_at if state.since is None else state.since),
            error=state.last_error,
            last_sign_in=state.signed_in_at.micros if state.signed_in_at else None,
            pulled_at=report.at.micros if report else None,
            pulled=pulled_text(report) if report else "",
            progress=(
                self.sync.reconcile_progress or progress_text(self.down.progress) or left_text(self.down.anew.left)
            ),
            refreshing=self.sync.refreshing,
            reconciling=self.sync.reconciling,
            reconciled=self.sync.reconciled,
            incomplete=report is not None and bool(report.problems),
            notices=tuple(
                notices(
                    state,
                    report,
                    password_in=self.password_in,
                    clock_alert_seconds=self.sync.clock_alert_seconds,
                    unreadable_events=self.sync.unreadable_events,
                    restored_at=self.down.restore.since,
                    backlog=self.sync.backlog_notice,
                )
            ),
            clock_ahead=clock_ahead(state),
        )

    async def reconcile(self, *, days: int, by: str) -> None:
        """Order a comparison with central of what was sent in the last `days`; what central lacks is sent again.

        Raises StoreError.
        """
        log.info("reconcile_asked", days=days, by=by)
        await self.sync.reconcile(days=days)

    async def refresh(self, *, by: str) -> None:
        """Order a full fetch, now or as soon as central answers. The order is on disk on return. Raises StoreError."""
        log.info("refresh_asked", by=by)
        await self.sync.refresh()


def clock_ahead(state: CentralState) -> float | None:
    """Return by how many seconds at most central's clock is ahead of this machine's; None while central is offline."""
    offset = state.clock_offset if state.reachable else None
    return None if offset is None else offset.seconds + offset.doubt


def pulled_text(report: PullReport) -> str:
    """Describe how many records of each list were pulled; for a list that did not come this time, the last count."""
    counts: dict[Part, int] = {
        "access cards": report.cards.cards,
        "devices": report.devices,
        "cameras": report.cameras,
    }
    return ", ".join(_part_text(report, part, count) for part, count in counts.items())


def _part_text(report: PullReport, part: Part, count: int) -> str:
    if part in report.never:
        return f"{part} not yet"
    return f"{count:,} {part}{' (not this time)' if part in report.missed else ''}"


def progress_text(progress: PullProgress | None) -> str:
    """Describe the progress of a pull."""
    if progress is None:
        return ""
    of = "" if progress.count is None else f" of {progress.count:,}"
    return f"{progress.part}: {progress.received:,}{of}"


def left_text(left: tuple[Part, ...]) -> str:
    """Describe what is still to be fetched anew."""
    return f"{', '.join(left)}: still to come" if left else ""


def notices(
    state: CentralState,
    report: PullReport | None,
    *,
    clock_alert_seconds: float,
    unreadable_events: int,
    restored_at: int | None = None,
    backlog: Words = "",
    password_in: Words = "",
) -> Iterator[CentralNotice]:
    """Yield what a technician should know about central and the last pull."""
    if restored_at is not None:
        yield CentralNotice(
            ProblemKind.CENTRAL_RESTORED, text("problem.central_restored.text", at=iso_utc(restored_at))
        )
    if backlog:
        yield CentralNotice(ProblemKind.CENTRAL_BACKLOG_FULL, backlog)
    if state.sign_in_refused:
        refused: Words = state.sign_in_refused
        if password_in:
            refused = text("problem.central_sign_in_refused.password_in", why=refused, where=password_in)
        yield CentralNotice(ProblemKind.CENTRAL_SIGN_IN_REFUSED, refused)
    for operation, said in state.not_permitted:
        denied = text("problem.central_not_permitted.text", operation=operation)
        if said:
            denied = text("problem.central_not_permitted.said", operation=operation, said=said)
        yield CentralNotice(ProblemKind.CENTRAL_NOT_PERMITTED, denied, subject=operation)
    if state.clock_offset is not None and state.clock_offset.exceeds(clock_alert_seconds):
        yield CentralNotice(ProblemKind.CENTRAL_CLOCK_DIFFERS, state.clock_offset.sentence())
    if state.reachable and state.slow_answers:
        yield CentralNotice(ProblemKind.CENTRAL_SLOW, text("problem.central_slow.text", seconds=state.slow_answers))
    if unreadable_events:
        lost = text("problem.central_commands_unreadable.text", count=unreadable_events)
        yield CentralNotice(ProblemKind.CENTRAL_COMMANDS_UNREADABLE, lost)
    if report is not None:
        yield from _of_pull(report, state)


def _of_pull(report: PullReport, state: CentralState) -> Iterator[CentralNotice]:
    """Yield notices of the last pull, without those that the account's own notices already say."""
    denied = {operation for operation, _ in state.not_permitted}
    own = [
        one.text
        for one in report.problems
        if one.operation not in denied and not (one.at_sign_in and state.sign_in_refused)
    ]
    if own:
        yield CentralNotice(ProblemKind.CENTRAL_LIST_INCOMPLETE, "; ".join(own))
    cards = report.cards
    held_back = (
        (cards.held_back, "access cards", "cards"),
        (report.devices_held_back, "devices", "devices"),
        (report.cameras_held_back, "cameras", "cameras"),
    )
    for count, subject, noun in held_back:
        if count:
            shrank = text(f"problem.central_list_shrank.{noun}", count=count)
            yield CentralNotice(ProblemKind.CENTRAL_LIST_SHRANK, shrank, subject=subject)
    if cards.without_credential:
        unreadable = text("problem.cards_unreadable.credentials", count=cards.without_credential)
        yield CentralNotice(ProblemKind.CARDS_UNREADABLE, unreadable, subject="credentials")
    if cards.unread:
        unreadable = text("problem.cards_unreadable.dates", count=cards.unread)
        yield CentralNotice(ProblemKind.CARDS_UNREADABLE, unreadable, subject="dates")
