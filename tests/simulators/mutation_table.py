"""The guards of each promise, each broken in one way. `mutations.py` plants them.

The simulation finds those without `tests`. It cannot see footage, card lists of central, permissions and secrets:
those mutations run against the tests that attack these promises.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """One guard, broken: `old` is in the file at `path` exactly once and becomes `new`."""

    promise: int
    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...] = ()


_SAFETY = "gateway/lanes/safety.py"
_RUNNER = "gateway/lanes/runner.py"
_BUS = "drivers/bus.py"

MUTATIONS: tuple[Mutation, ...] = (
    # 1: no unsafe close
    Mutation(
        1, "active safety point ignored", _SAFETY, "if fresh is PointState.ON:", "if fresh is PointState.ON and False:"
    ),
    Mutation(
        1,
        "staleness of inputs ignored",
        _SAFETY,
        "fresh = point.fresh(now, rules.stale)",
        "fresh = point.state",
    ),
    Mutation(1, "fire input left out of the close question", _SAFETY, "if rules.fire_input:", "if False:"),
    Mutation(
        1,
        "clear time ignored",
        _SAFETY,
        "if now < clears_at(rules, state, point) or not point.is_confirmed:",
        "if False:",
    ),
    Mutation(
        1,
        "one reading believed",
        _SAFETY,
        "if now < clears_at(rules, state, point) or not point.is_confirmed:",
        "if now < clears_at(rules, state, point):",
    ),
    Mutation(
        1,
        "free at once after a loss",
        "gateway/lanes/seen.py",
        "return max(self.since + clear, self.returned + after_loss)",
        "return self.since + clear",
    ),
    Mutation(
        1,
        "last question of the lane skipped",
        _RUNNER,
        "forbidden=lambda: self._why_not(wish)",
        'forbidden=lambda: ""',
    ),
    Mutation(1, "last question of the driver skipped", _BUS, "if transaction.forbidden is not None:", "if False:"),
    Mutation(
        1,
        "no opening again",
        "gateway/lanes/reopening.py",
        "    reason = what_came_into_the_way(turn.rules, state, turn.now.at)\n",
        '    reason = ""\n',
    ),
    # 2: no command replayed or late
    Mutation(
        2,
        "deadline not handed to the driver",
        _RUNNER,
        "self._gate.open(deadline=wish.deadline",
        "self._gate.open(deadline=wish.deadline + 600",
    ),
    Mutation(
        2,
        "deadline not handed to the driver on close",
        _RUNNER,
        "self._gate.close(deadline=wish.deadline",
        "self._gate.close(deadline=wish.deadline + 600",
    ),
    Mutation(2, "deadline not kept by the bus", "drivers/transactions.py", "if not self.sent:", "if False:"),
    Mutation(
        2,
        "overtaken command sent",
        _RUNNER,
        'return "" if wish.command.command_id == self._newest else "a later command has taken its place"',
        'return ""',
    ),
    Mutation(
        2,
        "commands of an earlier life sent again",
        "gateway/lanes/lanes.py",
        "            self.recorder.put(Entry(events=(event,), commands=(settled,)))\n",
        "            self._by_gate[command.device_id].post("
        "m.CommandRequested(command, deadline=self._clock.monotonic() + 600))\n",
    ),
    # 3: what was acknowledged is on disk
    Mutation(
        3,
        "a commit of several jobs undone",
        "gateway/store/commit.py",
        'connection.execute("COMMIT")',
        'connection.execute("ROLLBACK" if len(jobs) > 2 else "COMMIT")',
    ),
    Mutation(
        3,
        "events not recorded",
        "gateway/store/journal.py",
        "ids = tuple(insert_event(connection, event, now=now) for event in entry.events)",
        "ids = tuple(insert_event(connection, event, now=now) for event in entry.events)\n"
        '            connection.execute("DELETE FROM event WHERE id % 50 = 0")',
    ),
    Mutation(
        3,
        "passages not recorded",
        "gateway/store/journal.py",
        "passage_id = _insert_passage(connection, entry.passage, last_id) if entry.passage else None",
        "passage_id = _insert_passage(connection, entry.passage, last_id) if entry.passage else None\n"
        '            connection.execute("DELETE FROM passage WHERE id % 20 = 0")',
    ),
    # 4: the books balance
    Mutation(
        4,
        "deliveries counted as dropped",
        "gateway/store/deliveries.py",
        'take_out(connection, there, "delivered")',
        'take_out(connection, there, "dropped")',
    ),
    Mutation(
        4,
        "sent again without a look",
        "gateway/sync/outbox.py",
        "if row.begun and not await self._is_to_go(row, shipment):",
        "if False:",
    ),
    Mutation(
        4,
        "what was sent marked back as not begun",
        "gateway/sync/convoy.py",
        "        self._untried.discard(row.id)\n",
        "",
    ),
    Mutation(
        4,
        "accepted rows not counted",
        "gateway/store/outbox_rows.py",
        "SET count = count + 1 WHERE name = 'accepted'",
        "SET count = count + (id % 2) WHERE name = 'accepted'",
    ),
    # 5: footage of an event is kept
    # 6: no lane is delayed
    Mutation(
        6,
        "the gate waits for the disk",
        _RUNNER,
        "                await self._drive(wish)\n",
        "                await self._recorder.drained(within=5.0)\n                await self._drive(wish)\n",
    ),
    Mutation(
        6,
        "a person's command waits for the disk",
        "gateway/lanes/lanes.py",
        "_COMMAND_RECORDED_WITHIN = 1.0",
        "_COMMAND_RECORDED_WITHIN = 4.5",
    ),
    Mutation(6, "a lane's inbox too small", _RUNNER, "_INBOX = 1000", "_INBOX = 2"),
    # 7: a bad list never shrinks the card list
    # 8: permissions and secrets
    # 9: a clock step does no harm
    Mutation(
        9,
        "any clock believed by decisions",
        "gateway/lanes/decisions.py",
        "clock_trusted=stamp.trusted,\n                recording",
        "clock_trusted=True,\n                recording",
    ),
    Mutation(
        9,
        "any clock believed by events",
        "gateway/lanes/turn.py",
        "            clock_trusted=self.now.stamp.trusted,\n            description",
        "            clock_trusted=True,\n            description",
    ),
    # 10: what the site shows is true
    Mutation(
        10,
        "every 20th passage record dropped",
        "gateway/lanes/recorder.py",
        "        self._taken += 1\n",
        "        if entry.passage is not None and self._taken % 20 == 0:\n"
        "            return\n        self._taken += 1\n",
    ),
)
