"""The gateway itself in numbers: lanes at work, the store, the event loop, its processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import Metric

from gateway.domain.commands import FINAL_STATES, GateAction
from gateway.domain.passages import PassageOutcome
from gateway.lanes.figures import LaneFigures
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.machine_state import ProcessFigures
from gateway.store import Store
from gateway.web.operations.metrics.samples import counter, gauge, histogram


def lane_metrics(lanes: Mapping[str, LaneFigures]) -> Iterator[Metric]:
    """Yield the counters and durations of lanes since the start."""
    yield counter(
        "decisions",
        "Access decisions.",
        [
            ({"lane": lane, "outcome": "granted" if granted else "denied"}, figures.decisions[granted])
            for lane, figures in lanes.items()
            for granted in (True, False)
        ],
    )
    yield histogram(
        "decision_seconds",
        "From the reading that led to a decision to that decision.",
        [({"lane": lane}, figures.decision_seconds) for lane, figures in lanes.items()],
    )
    yield counter(
        "commands",
        "Commands to gates that came to an end.",
        [
            ({"lane": lane, "action": action.value, "end": end.value}, figures.commands[action, end])
            for lane, figures in lanes.items()
            for action in GateAction
            for end in sorted(FINAL_STATES)
        ],
    )
    yield histogram(
        "command_moved_seconds",
        "From the sending of a command to the gate seen on its way.",
        [
            ({"lane": lane, "action": action.value}, timings)
            for lane, figures in lanes.items()
            for action, timings in figures.moved_seconds.items()
        ],
    )
    yield counter(
        "passages",
        "Vehicles that left the lane, by how.",
        [
            ({"lane": lane, "outcome": outcome.value}, figures.passages[outcome])
            for lane, figures in lanes.items()
            for outcome in PassageOutcome
        ],
    )
    yield counter(
        "lane_events_lost",
        "Events that found the lane's inbox full.",
        [({"lane": lane}, figures.overflowed) for lane, figures in lanes.items()],
    )


def store_metrics(store: Store) -> Iterator[Metric]:
    """Yield the durations of the store's commits, and the number of waiting writes."""
    yield histogram(
        "store_commit_seconds",
        "How long commits took.",
        [({"file": file}, timings) for file, timings in store.commit_seconds.items()],
    )
    yield gauge("store_waiting", "Writes whose commit has not ended yet.", [({}, store.waiting)])


def loop_metrics(watch: LoopWatch) -> Iterator[Metric]:
    """Yield the event loop's lag, and the tasks that blocked it."""
    yield histogram("loop_lag_seconds", "By how much the event loop woke late.", [({}, watch.lag)])
    yield counter(
        "loop_held_up",
        "Times that a task held the event loop up for more than a tenth of a second.",
        [({"task": task}, count) for task, count in watch.held().items()],
    )


def process_metrics(processes: Sequence[ProcessFigures]) -> Iterator[Metric]:
    """Yield the number and memory of the gateway's processes, and the bytes that they wrote to disk."""
    names = Counter(one.name for one in processes)
    resident = {name: sum(one.resident for one in processes if one.name == name) for name in names}
    yield gauge("processes", "Processes at work.", [({"process": name}, count) for name, count in names.items()])
    yield gauge(
        "process_resident_bytes",
        "Resident memory; what processes share counts for each.",
        [({"process": name}, size) for name, size in resident.items()],
    )
    yield counter(
        "disk_written_bytes",
        "What the gateway and its processes sent to the disk: the wear of its flash memory.",
        [({}, sum(one.written for one in processes))],
    )
