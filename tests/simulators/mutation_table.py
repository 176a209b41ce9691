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


_SAFETY = "gateway/lanes/machine/safety.py"
_RUNNER = "gateway/lanes/runner.py"
_BUS = "drivers/bus/bus.py"
_RETENTION = ("tests/gateway/recording/test_retention.py",)
_SWEEPS = ("tests/gateway/central/test_list_proof.py", "tests/gateway/central/test_list_proof_promise.py")
_SHARED_AREAS = ("tests/gateway/lanes/test_shared_areas.py",)
_SHARED_LANES = ("tests/gateway/fleet/test_shared_areas.py",)
_SHARED_STRANGERS = ("tests/gateway/fleet/test_strangers.py",)
_AUTHORIZATION = ("tests/gateway/web/test_authorization.py",)

MUTATIONS: tuple[Mutation, ...] = (
    # 1: no unsafe close
    Mutation(
        1, "active safety point ignored", _SAFETY, "if fresh is PointState.ON:", "if fresh is PointState.ON and False:"
    ),
    Mutation(
        1,
        "staleness of inputs ignored",
        _SAFETY,
        "fresh = point.fresh(now, rules.policy.stale_seconds)",
        "fresh = point.state",
    ),
    Mutation(1, "fire input left out of the close question", _SAFETY, "if rules.lane.fire is not None:", "if False:"),
    Mutation(
        1,
        "key switch left out of the close question",
        _SAFETY,
        "if rules.lane.key_switch is not None:",
        "if False:",
        tests=("tests/gateway/lanes/test_side_states.py",),
    ),
    Mutation(
        1,
        "clear time ignored",
        _SAFETY,
        "if now < clears_at(rules, state, point) or not point.is_confirmed:",
        "if False:",
    ),
    Mutation(
        1,
        "close forgotten when the open in its place comes to nothing",
        "gateway/lanes/machine/machine.py",
        "    commands_in_flight.watch_close(lane, flight.instead_of)\n",
        "",
        tests=("tests/gateway/lanes/test_undone_closes.py",),
    ),
    Mutation(
        1,
        "first close forgotten when a person closes once more",
        "gateway/lanes/machine/closing.py",
        "earlier=earlier, before=job)",
        "earlier=False, before=job)",
        tests=("tests/gateway/lanes/test_repeated_closes.py",),
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
        "gateway/lanes/machine/state/inputs.py",
        "return max(self.since + clear, self.resumed + after_loss)",
        "return self.since + clear",
    ),
    Mutation(
        1,
        "one missed poll forgotten at the next answer",
        "gateway/lanes/machine/state/inputs.py",
        "resumed = at if self.missed else max(self.resumed, returned)",
        "resumed = max(self.resumed, returned)",
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
        "no reset after a time-out",
        _BUS,
        '            connection.reset(f"line {self._name} was reset: a command was not answered in time")\n',
        "",
    ),
    Mutation(
        1,
        "a closed connection keeps what was written",
        "drivers/tcp_bounds.py",
        "    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)\n",
        "",
    ),
    Mutation(
        1,
        "a missed poll ignored",
        _SAFETY,
        "        if point.missed:\n",
        "        if False:\n",
    ),
    Mutation(
        1,
        "no opening again",
        "gateway/lanes/machine/reopening.py",
        "    reason = _why_open(lane)\n    if not reason:\n",
        '    reason = ""\n    if not reason:\n',
    ),
    Mutation(
        1,
        "a stop that is asked for ends the opening again",
        "gateway/lanes/machine/stopping.py",
        "    lane.put(lane.state.stop.asked_for(event.command.command_id, by))\n",
        "    lane.put(lane.state.stop.asked_for(event.command.command_id, by))\n    lane.drop_closing()\n",
        tests=("tests/gateway/lanes/test_stopping.py",),
    ),
    Mutation(
        1,
        "a close that opens could not undo forgotten",
        "gateway/lanes/machine/state/closing.py",
        "earlier=goes_on)",
        "earlier=False)",
        tests=("tests/gateway/lanes/test_unanswered_opens.py",),
    ),
    # 2: no command replayed or late
    Mutation(
        2,
        "a busy controller is asked after the deadline",
        "drivers/modbus/gate.py",
        "if self._monotonic() + _BUSY_PAUSE >= deadline or self._has_ended:",
        "if self._has_ended:",
        tests=("tests/drivers/modbus/test_gate.py",),
    ),
    Mutation(
        2,
        "the date of a fleet command's nonce is believed without its proof",
        "gateway/fleet/nonces.py",
        "if not hmac.compare_digest(seal.encode(), self._seal(said).encode()):",
        "if False:",
        tests=("tests/gateway/fleet/test_nonces.py",),
    ),
    Mutation(
        2,
        "a fleet command's nonce counts twice",
        "gateway/fleet/nonces.py",
        "if nonce in self._used:",
        "if False:",
        tests=("tests/gateway/fleet/test_nonces.py",),
    ),
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
    Mutation(
        2,
        "deadline not kept by the bus",
        "drivers/bus/transactions.py",
        "if not self.sent:",
        "if False:",
    ),
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
        "            self._person_commands.settle(command)\n",
        "            self._by_gate[command.device_id].post("
        "m.CommandRequested(command, deadline=self._clock.monotonic() + 600))\n",
    ),
    Mutation(
        2,
        "a command that a stop overtook sent all the same",
        "gateway/lanes/person_commands.py",
        "        if overtaken := self._overtaken(command, given):",
        '        if overtaken := "":',
        tests=("tests/gateway/lanes/test_lanes.py",),
    ),
    Mutation(
        2,
        "an open that crosses another person's stop sent all the same",
        "gateway/lanes/person_commands.py",
        "_UNSEEN_SECONDS = 1.0",
        "_UNSEEN_SECONDS = 0.0",
        tests=("tests/gateway/lanes/test_lanes.py",),
    ),
    # 3: what was acknowledged is on disk
    Mutation(
        3,
        "a commit of several jobs undone",
        "gateway/store/engine/group_commit.py",
        'connection.execute("COMMIT")',
        'connection.execute("ROLLBACK" if len(jobs) > 1 else "COMMIT")',
    ),
    Mutation(
        3,
        "events not recorded",
        "gateway/store/events/journal.py",
        "ids = tuple(insert_event(connection, event, now=now) for event in entry.events)",
        "ids = tuple(insert_event(connection, event, now=now) for event in entry.events)\n"
        '            connection.execute("DELETE FROM event WHERE id % 50 = 0")',
    ),
    Mutation(
        3,
        "passages not recorded",
        "gateway/store/events/journal.py",
        "passage_id = _insert_passage(connection, entry.passage, last_id) if entry.passage else None",
        "passage_id = _insert_passage(connection, entry.passage, last_id) if entry.passage else None\n"
        '            connection.execute("DELETE FROM passage WHERE id % 20 = 0")',
    ),
    Mutation(
        3,
        "the stream not asked which records it has",
        "gateway/fleet/events_up.py",
        "        if newest is None or newest <= mark.read_to:\n",
        "        if True:\n",
        tests=("tests/gateway/fleet/test_thirty_days.py",),
    ),
    Mutation(
        3,
        "an event that the MQTT broker refuses taken for a sent one",
        "gateway/mqtt/line.py",
        "if answer.is_refusal else None",
        "if answer.is_refusal and False else None",
        tests=("tests/gateway/mqtt/test_mirror.py",),
    ),
    # 4: the books balance
    Mutation(
        4,
        "deliveries counted as dropped",
        "gateway/store/outbox/deliveries.py",
        'take_out(connection, there, "delivered")',
        'take_out(connection, there, "dropped")',
    ),
    Mutation(
        4,
        "sent again without a look",
        "gateway/central/push/outbox.py",
        "return not row.begun or await self._is_create_to_go(row, request)",
        "return True",
    ),
    Mutation(
        4,
        "changed without a look whose record it is",
        "gateway/central/push/outbox.py",
        "return await self._is_of_ours(row, request)",
        "return True",
        ("tests/gateway/central/test_central_restored.py",),
    ),
    Mutation(
        4,
        "what was sent marked back as not begun",
        "gateway/central/push/batch_upload.py",
        "        self._untried.discard(row.id)\n",
        "",
    ),
    Mutation(
        4,
        "accepted rows not counted",
        "gateway/store/outbox/rows.py",
        "SET count = count + 1 WHERE name = 'accepted'",
        "SET count = count + (id % 2) WHERE name = 'accepted'",
    ),
    Mutation(
        4,
        "a claim counted that came behind another gateway's write",
        "gateway/lanes/shared_areas.py",
        "            elif revision > own.seen:",
        "            elif False:",
        _SHARED_AREAS,
    ),
    Mutation(
        4,
        "a claim counted beyond the limit of a shared area",
        "gateway/lanes/claims.py",
        "if self.limit is None or records.taken(self.claim.enters) <= self.limit:",
        "if True:",
        _SHARED_AREAS,
    ),
    Mutation(
        4,
        "a passage told to the other gateways before its count",
        "gateway/lanes/shared_areas.py",
        " and self._untold.uncounted.isdisjoint(write.steps)",
        "",
        _SHARED_AREAS,
    ),
    Mutation(
        4,
        "a claim begun while the other gateways cannot be asked",
        "gateway/lanes/shared_areas.py",
        "if self.is_apart or not holder or not touches(self.areas, way):",
        "if not holder or not touches(self.areas, way):",
        _SHARED_AREAS,
    ),
    Mutation(
        4,
        "a gateway takes part in shared areas beside a later one of its name",
        "gateway/lanes/shared_areas.py",
        "self._has_told and counts.run",
        "False and counts.run",
        _SHARED_STRANGERS,
    ),
    Mutation(
        4,
        "a claim of another box with this name given back",
        "gateway/lanes/claims.py",
        " and not one.is_foreign",
        "",
        _SHARED_STRANGERS,
    ),
    Mutation(
        4,
        "a gate opened without a claim",
        "gateway/lanes/decisions.py",
        "if shared is None or not decision.granted:",
        "if True:",
        _SHARED_LANES,
    ),
    Mutation(
        4,
        "a claim kept that nobody used",
        "gateway/lanes/claims.py",
        "                self._release(claim_id)",
        "                pass",
        _SHARED_LANES,
    ),
    Mutation(
        4,
        "backoff of before the start kept",
        "gateway/central/push/outbox.py",
        "        await self._outbox.retry_now()\n",
        "        return\n",
        tests=("tests/gateway/central/test_outbox_sender.py",),
    ),
    Mutation(
        4,
        "a paused operation stays doubtful",
        "gateway/central/push/paused_operations.py",
        "self._troubles.pop(action, None)",
        "self._troubles.get(action, None)",
        tests=("tests/gateway/central/test_paused_operations.py",),
    ),
    # 5: footage of an event is kept
    Mutation(
        5,
        "footage within its days chosen",
        "gateway/recording/retention.py",
        "            transactions_from=now - transactions,\n",
        "            transactions_from=now,\n",
        tests=_RETENTION,
    ),
    Mutation(
        5,
        "incidents kept no longer than others",
        "gateway/recording/retention.py",
        "            incidents_from=now - incidents,\n",
        "            incidents_from=now - transactions,\n",
        tests=_RETENTION,
    ),
    Mutation(
        5,
        "footage of events before continuous footage",
        "gateway/recording/retention.py",
        "        if chosen := await self._segments.discard(continuous):\n",
        "        if False:\n",
        tests=_RETENTION,
    ),
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
        "gateway/lanes/person_commands.py",
        "_RECORDED_WITHIN = 1.0",
        "_RECORDED_WITHIN = 4.5",
    ),
    Mutation(6, "a lane's inbox too small", _RUNNER, "_INBOX = 1000", "_INBOX = 2"),
    # 7: a bad list never shrinks the card list
    Mutation(
        7,
        "large removals believed at once",
        "gateway/central/client/list_proof.py",
        "    if not many:\n",
        "    if True:\n",
        tests=_SWEEPS,
    ),
    Mutation(
        7,
        "gone believed where nothing is found",
        "gateway/central/pull/absence_proof.py",
        "        if asked.gone and not await self._finds_one(known):\n",
        "        if False:\n",
        tests=("tests/gateway/central/test_pull.py",),
    ),
    Mutation(
        7,
        "a count above what came believed",
        "gateway/central/client/list_proof.py",
        '            (count != self._received, f"the count says {count}, but {self._received} came"),\n',
        "",
        tests=_SWEEPS,
    ),
    # 8: permissions and secrets
    Mutation(
        8,
        "a redirect takes a camera's account to another host",
        "drivers/rtsp/client/viewing.py",
        "if there.hostname != home.hostname or (",
        "if (",
        tests=("tests/drivers/rtsp/test_viewing.py", "tests/drivers/rtsp/test_source.py"),
    ),
    Mutation(
        8,
        "a camera's account leaves an encrypted connection",
        "drivers/rtsp/client/viewing.py",
        'home.scheme.lower() == "rtsps" and there.scheme.lower() != "rtsps"',
        "False",
        tests=("tests/drivers/rtsp/test_viewing.py",),
    ),
    Mutation(
        8,
        "a refused digest is followed by the password itself",
        "drivers/rtsp/client/accounts.py",
        "chosen = (fit or digests or offered)[0]",
        "chosen = (fit or offered[::-1])[0] if before is None else offered[-1]",
        tests=("tests/drivers/rtsp/test_accounts.py",),
    ),
    Mutation(
        8,
        "a viewer's candidates at others' addresses are checked",
        "gateway/camera_worker/viewer.py",
        "if not is_at(text, self._address):",
        "if False:",
        tests=("tests/gateway/web/test_whep.py",),
    ),
    Mutation(
        8,
        "a link to evidence outlives its maker's right",
        "gateway/web/operations/evidence.py",
        "if link is None or not good or not await self._makers.may(link, EVIDENCE_ACCESS.rule):",
        "if link is None or not good:",
        tests=("tests/gateway/web/test_evidence.py",),
    ),
    Mutation(
        8,
        "the manifest of a backup is not authenticated",
        "gateway/backup/archive.py",
        "if not hmac.compare_digest(proof, _proof(listed, passphrase, salt)):",
        "if False:",
        tests=("tests/gateway/backup/test_backup.py",),
    ),
    Mutation(
        8,
        "a plate opens where a PIN is asked for",
        "gateway/domain/access/pins.py",
        "if case.credential.plate:",
        "if False:",
        tests=("tests/gateway/domain/test_access.py",),
    ),
    Mutation(
        8,
        "the vehicle behind is let in during a lock-down",
        "gateway/lanes/machine/visits.py",
        "    lane.put(lane.state.visits.with_queued(None))\n    if lane.state.locked_down:",
        "    lane.put(lane.state.visits.with_queued(None))\n    if False:",
        tests=("tests/gateway/lanes/test_ways_and_orders.py",),
    ),
    Mutation(
        8,
        "parts of files given to accounts that lost the right",
        "gateway/fleet/commands_down.py",
        "                await self._expect_allowed(account, self._offered.action_of(command_id))\n",
        "",
        tests=("tests/gateway/fleet/test_fetch.py",),
    ),
    Mutation(
        8,
        "permissions not asked for",
        "gateway/web/auth/admission.py",
        "            if group := operation.rule.missing(caller.permissions):\n",
        "            if group := None:\n",
        tests=_AUTHORIZATION,
    ),
    Mutation(
        8,
        "no session asked for",
        "gateway/web/auth/admission.py",
        "            if operation.rule.session and not caller.signed_in:\n",
        "            if False:\n",
        tests=_AUTHORIZATION,
    ),
    Mutation(
        8,
        "secrets hidden by value alone",
        "gateway/runtime/redaction.py",
        '        return _ASSIGNED.sub(rf"\\g<name>{HIDDEN}", text)\n',
        "        return text\n",
        tests=("tests/gateway/runtime/test_redaction.py",),
    ),
    Mutation(
        8,
        "sign-in throttle by address gone",
        "gateway/web/auth/sign_in.py",
        "            self._by_address.failed(host, now=now)\n",
        "",
        tests=("tests/gateway/web/test_sign_in_by_address.py",),
    ),
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
        "gateway/lanes/machine/transition.py",
        "            clock_trusted=self.now.stamp.trusted,\n            description",
        "            clock_trusted=True,\n            description",
    ),
    Mutation(
        9,
        "the machine's clock followed while it is not trusted",
        "gateway/runtime/clock.py",
        "        if self._ahead is not None:\n            return Stamp(monotonic",
        "        if False:\n            return Stamp(monotonic",
    ),
    # 10: what the site shows is true
    Mutation(
        10,
        "every 20th passage record dropped",
        "gateway/lanes/recorder.py",
        "        self._queued += 1\n",
        "        if entry.passage is not None and self._queued % 20 == 0:\n"
        "            return\n        self._queued += 1\n",
    ),
    Mutation(
        10,
        "visit ended by a close that is refused",
        "gateway/lanes/machine/closing.py",
        "    stopping.lifted(lane, event.command)\n",
        "    stopping.lifted(lane, event.command)\n    lane.rest()\n",
    ),
    Mutation(
        10,
        "a line's own echo taken for an acknowledgement",
        "drivers/bus/echoes.py",
        "        del received[place : place + len(request)]\n",
        "        if self._exchange.is_repeated is False:\n            del received[place : place + len(request)]\n",
        tests=("tests/drivers/modbus/test_echoing_lines.py",),
    ),
    Mutation(
        10,
        "what was granted recorded as denied",
        "gateway/lanes/machine/answers.py",
        "EventKind.ACCESS_GRANTED",
        "EventKind.ACCESS_DENIED",
    ),
    Mutation(
        10,
        "not ready answered like ready",
        "gateway/web/operations/health.py",
        "status=200 if ready else 503",
        "status=200",
        tests=("tests/gateway/web/test_health.py",),
    ),
)
