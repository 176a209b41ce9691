"""Requests to one unit on a bus. They return values or raise driver errors."""

from __future__ import annotations

from functools import partial

from drivers.bus.bus import Bus, UnitRequests
from drivers.bus.transactions import Exchange, Prelude, Priority, TimedAnswer
from drivers.contract import DeviceFault, Forbidden, LinkError, MonotonicSeconds, ProtocolViolation
from drivers.modbus.frames import (
    ACKNOWLEDGED,
    BUSY,
    UNREACHABLE,
    Framing,
    FunctionCall,
    FunctionResult,
    Read,
    Refusal,
    Reply,
    Request,
    Table,
    Values,
    Write,
    WriteMany,
    encode_request,
    fault_of,
    parse_reply,
)


class DeviceBusy(DeviceFault):
    """The device is busy and has not taken the request: it may take the same one in a moment."""


class ModbusRequests(UnitRequests):
    """Reads and writes of one unit, each a single transaction that is never repeated."""

    def __init__(
        self,
        *,
        bus: Bus,
        unit: int,
        framing: Framing,
        timeout: float,
        scan_shortest: float | None = None,
        pause: float = 0.0,
    ) -> None:
        """Set up requests with this time-out in seconds.

        `pause`: seconds without a byte that the unit needs before each request. `scan_shortest` makes reads scans,
        whose time-out the line may cut to this many seconds; None makes them polls.
        """
        super().__init__(bus=bus, unit=unit, timeout=timeout, shortest=scan_shortest or 0.0)
        self._reads_as = Priority.POLL if scan_shortest is None else Priority.SCAN
        self._framing = framing
        self._prelude = Prelude(silence=pause) if pause else None
        self._is_numbered = framing == "tcp" and bus.spec.numbers_come_back

    async def read(self, read: Read, *, deadline: MonotonicSeconds) -> tuple[tuple[int, ...], MonotonicSeconds]:
        """Read values behind waiting commands; return them and when they were asked for, so that they are no older.

        Raises LinkError, DeviceFault when the device refuses, DeadlinePassed and ProtocolViolation.
        """
        answer = await self._ask(read, self._reads_as, deadline)
        if not isinstance(answer.reply, Values):
            raise self._refused(answer.reply, f"reading {read.table} {read.address}")
        return answer.reply.values, answer.written_at

    async def call(self, call: FunctionCall, *, deadline: MonotonicSeconds) -> bytes:
        """Call a function that only reads; return its answer from the function code on. Raises as `read` does."""
        answer = await self._ask(call, self._reads_as, deadline)
        if not isinstance(answer.reply, FunctionResult):
            raise self._refused(answer.reply, f"function {call.pdu[0]}")
        return answer.reply.pdu

    async def write(
        self, write: Write | WriteMany, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None
    ) -> None:
        """Write a command before waiting polls, and return once the device acknowledged it.

        Raises LinkError when the device does not answer or its answer is garbled (it may have obeyed), DeviceFault when
        it refuses, and DeviceBusy when it refuses only for now. Raises LineDown, DeadlinePassed or, when `forbidden`
        gave a reason, NotPermitted when nothing was sent.
        """
        self._judge((await self._ask(write, Priority.COMMAND, deadline, forbidden)).reply, write)

    async def put(self, write: Write | WriteMany, *, deadline: MonotonicSeconds) -> None:
        """Write a setting or a heartbeat, which is no command, behind waiting commands.

        Raises LinkError, DeviceFault when the device refuses, DeadlinePassed and ProtocolViolation.
        """
        self._judge((await self._ask(write, self._reads_as, deadline)).reply, write)

    def _judge(self, reply: Reply, write: Write | WriteMany) -> None:
        if isinstance(reply, Refusal) and reply.code != ACKNOWLEDGED:
            table = write.table if isinstance(write, Write) else Table.HOLDING_REGISTER
            raise self._refused(reply, f"writing {table} {write.address}")

    async def _ask(
        self, request: Request, priority: Priority, deadline: MonotonicSeconds, forbidden: Forbidden | None = None
    ) -> TimedAnswer[Reply]:
        tag = self._bus.tag()
        exchange: Exchange[Reply] = Exchange(
            unit=self._unit,
            request=encode_request(self._framing, unit=self._unit, tag=tag, request=request),
            parse=partial(_parse, self._framing, self._unit, tag if self._is_numbered else None, request),
            tagged=self._is_numbered,
            prelude=self._prelude,
            explain=partial(_explain, self._framing, self._unit, tag if self._is_numbered else None),
            is_repeated=isinstance(request, Write),
        )
        return await self._transact(exchange, priority, deadline, forbidden)

    def _refused(self, reply: Reply, what: str) -> Exception:
        words = reply.words if isinstance(reply, Refusal) else "an answer of another kind"
        text = f"unit {self._unit} refused {what}: {words}"
        code = reply.code if isinstance(reply, Refusal) else None
        if code in UNREACHABLE:
            return LinkError(text)
        return DeviceBusy(text, said=words) if code == BUSY else DeviceFault(text, said=words)


def _explain(framing: Framing, unit: int, tag: int | None, received: bytes) -> ProtocolViolation | None:
    return fault_of(framing, unit=unit, tag=tag, received=received)


def _parse(framing: Framing, unit: int, tag: int | None, request: Request, received: bytes) -> Reply | None:
    return parse_reply(framing, unit=unit, tag=tag, request=request, received=received)
