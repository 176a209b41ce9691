"""Commands to this gateway: checked, carried out once, and followed by replies up to the moved gate.

A command is carried out by a task of its own, which a lost line does not end. Replies end with the line; whoever asks
again with the same id gets the first result.

Notices on changed cards come down here too; the line to central fetches those cards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import structlog
from nats.aio.msg import Msg
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from gateway.domain.commands import FINAL_STATES, Command, CommandState, GateAction
from gateway.domain.errors import CameraUnavailable, CommandRefused, ConfigError, NotFoundError, StoreError
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused
from gateway.fleet.names import FleetName
from gateway.fleet.offered_files import FileMaker, OfferedFiles
from gateway.fleet.signed_commands import (
    LATE,
    LONGEST_SECONDS,
    OF_FILES,
    OF_LANES,
    PART,
    Action,
    AskNonce,
    AskPart,
    CommandReply,
    FleetCommand,
    Nonce,
    Nonces,
    SiteEdit,
    is_seal_of,
    seal_of,
    sender_of,
    why_not_allowed,
)
from gateway.lanes import Lanes
from gateway.lanes.machine.state.orders import OrderKind
from gateway.runtime.clock import Clock
from gateway.site.edits import Edit
from gateway.site.running_site import Reloaded, TrialEnd
from gateway.store import Changes
from gateway.store.events.commands import CommandRecords
from gateway.texts import listed, text

log = structlog.get_logger(__name__)

_LONGEST_BODY = 16 * 1024
_MOST_AT_ONCE = 32
_MOST_KNOWN = 1000
_FOLLOWED_SECONDS = 120.0
_LOOK_SECONDS = 1.0
_MESSAGES: TypeAdapter[AskNonce | AskPart | FleetCommand] = TypeAdapter(AskNonce | AskPart | FleetCommand)
_BACK: TypeAdapter[list[Edit]] = TypeAdapter(list[Edit])
_EDITS: TypeAdapter[tuple[SiteEdit, ...]] = TypeAdapter(tuple[SiteEdit, ...])
_STATES: Mapping[CommandState, Literal["recorded", "sent", "acknowledged", "moved", "refused", "unknown"]] = {
    CommandState.RECORDED: "recorded",
    CommandState.SENT: "sent",
    CommandState.ACKNOWLEDGED: "acknowledged",
    CommandState.DONE: "moved",
    CommandState.REFUSED: "refused",
    CommandState.UNKNOWN: "unknown",
}


@dataclass(slots=True, eq=False)
class CommandProgress:
    """Progress of a command: replies on its way, and the last one.

    `until`: the end of its life in monotonic seconds, None for a command that is never late.
    """

    until: float | None = None
    replies: list[CommandReply] = field(default_factory=list)
    final: CommandReply | None = None
    changes: Changes = field(default_factory=Changes)

    def tell(self, reply: CommandReply) -> None:
        """Add a reply; a final one ends it."""
        if reply.final:
            self.final = reply
        else:
            self.replies.append(reply)
        self.changes.bump()


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file."""

    number: int
    content: bytes


class Notice(BaseModel):
    """A notice. `number` counts up by one, so that a lost one shows; without ids it says that notices come."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ids: Annotated[tuple[Annotated[int, Field(gt=0, lt=2**53)], ...], Field(max_length=5000)] = ()
    number: int | None = None


class NoticeTaker(Protocol):
    """The line to central, which fetches noticed cards."""

    def take(self, card_ids: Collection[int], *, number: int | None) -> None:
        """Take a notice."""
        ...

    def lost(self) -> None:
        """Note that notices may be missed from now on."""
        ...


@dataclass(kw_only=True)
class CardsDown:
    """The receiver of card notices. `taker` returns the line to central, None at a site without central."""

    name: str = field(default="cards", init=False)
    fleet_name: FleetName
    taker: Callable[[], NoticeTaker | None]

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Take notices until cancelled. They do not count as coming any more when the line is lost."""
        try:
            async with line.listening(self.fleet_name.cards, self._take):
                works()
                await asyncio.Event().wait()
        finally:
            if (taker := self.taker()) is not None:
                taker.lost()

    async def _take(self, message: Msg) -> None:
        taker = self.taker()
        try:
            notice = Notice.model_validate_json(message.data)
        except ValidationError:
            log.warning("card_notice_unreadable", subject=message.subject)
            if taker is not None:
                taker.lost()
            return
        if taker is not None:
            taker.take(notice.ids, number=notice.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDesk:
    """Parts that commands of the fleet reach.

    Attributes:
        lanes: the lanes.
        permissions: returns an account's permissions, None for one that does not exist or is disabled.
        reload: has the site file read again, by an account.
        edit: changes the site file by an account, on trial, and returns the edits that take it back. Raises
            ConfigError.
        tried: returns the end of the trial.
        files: makes the files that commands ask for.
        start: runs a coroutine as an owned task that outlives the line.
        notices: returns the line to central, which fetches noticed cards; None without central.
    """

    lanes: Lanes
    permissions: Callable[[str], Awaitable[frozenset[str] | None]]
    reload: Callable[[str], Awaitable[Reloaded]]
    edit: Callable[[str, Sequence[Edit]], Awaitable[tuple[Reloaded, tuple[Edit, ...]]]]
    tried: Callable[[], Awaitable[TrialEnd]]
    files: FileMaker
    start: Callable[[str, Coroutine[Any, Any, None]], object]
    notices: Callable[[], NoticeTaker | None]


@dataclass(kw_only=True, eq=False)
class CommandsDown:
    """The receiver of commands.

    Attributes:
        fleet_name: this gateway's name in the fleet.
        senders: the account of each sender, by the sender's public key.
        desk: the parts that commands reach.
        snapshot: returns the site's present state, as JSON values.
        seal_key: the secret of this gateway by which it knows its own edits again, after a restart too.
    """

    name: str = field(default="commands", init=False)
    fleet_name: FleetName
    senders: Mapping[str, str]
    desk: CommandDesk
    commands: CommandRecords
    changes: Changes
    snapshot: Callable[[], JsonValue]
    clock: Clock
    seal_key: bytes = field(repr=False)
    _nonces: Nonces = field(init=False)
    _known: dict[str, CommandProgress] = field(default_factory=dict, init=False)
    _offered: OfferedFiles = field(init=False)

    def __post_init__(self) -> None:
        self._offered = OfferedFiles(clock=self.clock)
        self._nonces = Nonces(clock=self.clock, longest_seconds=LONGEST_SECONDS)

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Take commands until cancelled."""
        async with asyncio.TaskGroup() as group:

            async def take(message: Msg) -> None:
                if message.reply:  # nobody could know what became of it
                    group.create_task(self._answer(line, message))

            async with line.listening(self.fleet_name.commands, take):
                works()
                await asyncio.Event().wait()

    async def _answer(self, line: FleetLine, message: Msg) -> None:
        """Answer a message up to its last reply. A lost line ends the replies, not the command."""
        try:
            taken = await self._taken(message)
            if isinstance(taken, CommandProgress):
                await self._follow(line, message.reply, taken)
            elif isinstance(taken, FilePart):
                await line.say(message.reply, taken.content, headers={PART: str(taken.number)})
            else:
                await line.say(message.reply, taken.model_dump_json().encode())
        except (FleetAway, FleetRefused) as error:
            log.info("fleet_reply_lost", error=str(error))

    async def _taken(self, message: Msg) -> CommandProgress | FilePart | CommandReply | Nonce:
        """Check a message, and begin what it commands unless that was begun before."""
        number = ""
        try:
            asked = _read(message.data)
            if isinstance(asked, AskNonce):
                return Nonce(nonce=self._nonces.issue())
            number, account = asked.id, self._account_of(message)
            command_id = _command_id(account, asked.id)
            if isinstance(asked, AskPart):
                await self._expect_allowed(account, self._offered.action_of(command_id))
                return FilePart(asked.part, await self._offered.part(command_id, asked.part))
            await self._expect_allowed(account, asked.action)
            if (done := await self._stored(command_id)) is not None and command_id not in self._known:
                return CommandReply(id=asked.id, state=_STATES[done.state], final=True, detail=str(done.detail))
            if (known := self._known.get(command_id)) is not None:
                return CommandProgress(final=known.final) if known.final else known
            return self._begun(asked, account, command_id)
        except (CommandRefused, NotFoundError, StoreError) as error:
            log.warning("fleet_command_refused", id=number, why=str(error))
            return CommandReply(id=number, state="refused", final=True, detail=str(error))

    def _account_of(self, message: Msg) -> str:
        """Return the account of a message's sender. Raises CommandRefused for a sender that is not known."""
        account = self.senders.get(sender_of(message.headers or {}, message.subject, message.data))
        if account is None:
            raise CommandRefused("the command is not signed by a sender that this gateway knows")
        return account

    async def _expect_allowed(self, account: str, action: Action) -> None:
        """Raise CommandRefused if the account has not the right."""
        if why := why_not_allowed(action, await self.desk.permissions(account)):
            raise CommandRefused(why)

    def _begun(self, command: FleetCommand, account: str, command_id: str) -> CommandProgress:
        """Begin to carry out a command. Raises CommandRefused for a late one, or one too many. A stop is never late."""
        until = None if command.action is Action.STOP else self._nonces.use(command.nonce, seconds=command.seconds)
        if command.action is not Action.STOP and self._busy() >= _MOST_AT_ONCE:
            raise CommandRefused("too many commands are under way; try again in a moment")
        progress = self._known[command_id] = CommandProgress(until)
        self._forget_oldest()
        log.info("fleet_command", action=command.action.value, lane=command.lane, account=account, id=command.id)
        self.desk.start(f"fleet-{command.id}", self._carry_out(command, account, command_id, progress))
        return progress

    async def _stored(self, command_id: str) -> Command | None:
        """Return a command for a gate from the store; None also while that cannot be read."""
        try:
            return await self.commands.get(command_id)
        except StoreError as error:
            log.debug("fleet_command_not_read", error=str(error))  # the store reports its own failure
            return None

    def _busy(self) -> int:
        return sum(progress.final is None for progress in self._known.values())

    def _forget_oldest(self) -> None:
        """Drop what finished commands need no more; their results stay for as long as a copy could act."""
        for progress in self._known.values():
            if progress.final is not None:
                progress.replies = []
        for number in [number for number, progress in self._known.items() if progress.final is not None][:-_MOST_KNOWN]:
            del self._known[number]

    async def _follow(self, line: FleetLine, reply_to: str, progress: CommandProgress) -> None:
        said, replies, version = 0, progress.replies, -1
        while True:
            while said < len(replies):
                await line.say(reply_to, replies[said].model_dump_json().encode())
                said += 1
            if progress.final is not None:
                await line.say(reply_to, progress.final.model_dump_json().encode())
                return
            version = await progress.changes.beyond(version, within=_FOLLOWED_SECONDS)

    async def _carry_out(self, command: FleetCommand, account: str, command_id: str, progress: CommandProgress) -> None:
        final = partial(CommandReply, id=command.id, final=True)
        last = final(state="unknown", detail="the command failed by a fault of the gateway")
        try:
            if command.action in OF_FILES:
                made = await self.desk.files.make(command, account)
                last = final(state="done", file=await self._offered.offer(command_id, command.action, made))
            else:
                last = await self._done(command, account, command_id, progress)
        except (CameraUnavailable, CommandRefused, ConfigError, NotFoundError, StoreError) as error:
            last = final(state="refused", detail=str(error))
        finally:
            progress.tell(last)

    async def _done(
        self, command: FleetCommand, account: str, command_id: str, progress: CommandProgress
    ) -> CommandReply:
        final, source = partial(CommandReply, id=command.id, final=True), f"user:{account}"
        if command.action in OF_LANES:
            lane = next((lane for lane in self.desk.lanes.lanes() if lane.lane_id == command.lane), None)
            if lane is None:
                raise NotFoundError(text("refused.lane_unknown", lane=command.lane))
            if command.action is not Action.HOLD:
                return await self._moved(command, lane.gate_id, source, command_id, progress)
            kind = None if command.order is None else OrderKind(command.order)
            await self.desk.lanes.order(lane_id=lane.lane_id, kind=kind, reason=command.reason, source=source)
            return final(state="done")
        return await self._of_site(command, account, command_id, progress)

    async def _of_site(
        self, command: FleetCommand, account: str, command_id: str, progress: CommandProgress
    ) -> CommandReply:
        """Carry out a command that is for the whole site."""
        final, source = partial(CommandReply, id=command.id, final=True), f"user:{account}"
        if command.action is Action.SNAPSHOT:
            return final(state="done", result=self.snapshot())
        if command.action is Action.EDIT:
            self._expect_own(command, account)
            return await self._edited(command, source, command_id, progress)
        done = await self.desk.reload(source)
        if not done.is_taken:
            return final(state="refused", detail="; ".join((*done.faults, *done.refused)))
        return final(state="done", detail=str(listed(done.words())) or "nothing is different in the site file")

    def _expect_own(self, command: FleetCommand, account: str) -> None:
        """Refuse to undo a command by edits that this gateway did not give out for that. Raises CommandRefused."""
        if command.undoes is None:
            return
        undone, edits = _command_id(account, command.undoes), _EDITS.dump_json(command.edits)
        if not is_seal_of(command.seal, self.seal_key, undone, edits):
            raise CommandRefused(
                "these edits are not those that this gateway gave for taking the change back: somebody between it and"
                " the sender put others there; look at the site file"
            )

    async def _edited(
        self, command: FleetCommand, source: str, command_id: str, progress: CommandProgress
    ) -> CommandReply:
        """Change the site file, and follow its trial: done once it is confirmed, refused if it takes itself back."""
        final = partial(CommandReply, id=command.id, final=True)
        done, back = await self.desk.edit(source, [one.edit() for one in command.edits])
        unseen: list[str] = []
        if not done.is_taken:
            return final(state="refused", detail="; ".join((*done.faults, *done.refused)))
        if done.on_trial:
            progress.tell(CommandReply(id=command.id, state="acknowledged", final=False, detail="on trial"))
            ended = await self.desk.tried()
            if not ended.confirmed:
                return final(state="refused", detail=f"the change took itself back: {ended.why}")
            unseen = [str(reader.words) for reader in ended.unseen]
        said = str(listed((*done.words(), *unseen))) or "nothing is different in the site file"
        result = _BACK.dump_python(list(back), mode="json")
        given = _EDITS.dump_json(_EDITS.validate_python(result))
        return final(state="done", detail=said, result=result, seal=seal_of(self.seal_key, command_id, given))

    async def _moved(
        self, command: FleetCommand, gate: int, source: str, command_id: str, progress: CommandProgress
    ) -> CommandReply:
        """Command a gate, and follow the command until its outcome is known."""
        left = None if progress.until is None else progress.until - self.clock.monotonic()
        if left is not None and left <= 0:
            raise CommandRefused(LATE)
        given = await self.desk.lanes.command(
            device_id=gate, action=GateAction(command.action.value), source=source, command_id=command_id, within=left
        )
        state, until, version = given.state, self.clock.monotonic() + _FOLLOWED_SECONDS, -1
        progress.tell(CommandReply(id=command.id, state=_STATES[state], final=False))
        while self.clock.monotonic() < until:
            now = await self._stored(command_id)
            if now is not None and now.state in FINAL_STATES:
                return CommandReply(id=command.id, state=_STATES[now.state], final=True, detail=str(now.detail))
            if now is not None and now.state is not state:
                state = now.state
                progress.tell(CommandReply(id=command.id, state=_STATES[state], final=False))
            version = await self.changes.beyond(version, within=_LOOK_SECONDS)
        return CommandReply(
            id=command.id, state="unknown", final=True, detail="its outcome is not known yet: look at the gate"
        )


def _command_id(account: str, number: str) -> str:
    return f"fleet-{account}-{number}"


def _read(body: bytes) -> AskNonce | AskPart | FleetCommand:
    """Parse a message. Raises CommandRefused."""
    if len(body) > _LONGEST_BODY:
        raise CommandRefused("the command is too long")
    try:
        return _MESSAGES.validate_json(body)
    except ValidationError as error:
        raise CommandRefused("the command cannot be read; docs/fleet.md says what it looks like") from error
