"""A change of many sites' files in steps: a few gateways first, and on only while all of them are well."""

from __future__ import annotations

import asyncio
import secrets as randomness
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from gateway.domain.errors import ConfigError, GatewayError
from gateway.fleet import operator
from gateway.fleet.heartbeat import AWAY_SECONDS
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused
from gateway.fleet.names import FleetName
from gateway.fleet.operator import Seen
from gateway.fleet.signed_commands import ASK_NONCE, Action, Reply, SiteEdit
from gateway.runtime.clock import Clock

_EDITS = TypeAdapter(tuple[SiteEdit, ...])


@dataclass(frozen=True, slots=True)
class _Back:
    """Edits that take a change back, as the reply to the command `number` gave them.

    The reply may be anybody's, and the sender signs what it says. By the seal the gateway takes only its own edits.
    """

    number: str
    edits: Sequence[SiteEdit]
    seal: str


@dataclass(kw_only=True)
class Rollout:
    """A change that goes to gateways in waves.

    Attributes:
        seed: the NKey seed of the sender, who may do everything at each gateway.
        edits: the change.
        waves: the size of the first wave, and that of the others.
        healthy_seconds: the time over which all changed gateways must be well before the next wave.
        look_seconds: the time between two looks at them.
        told: takes sentences for the person who runs it.
    """

    line: FleetLine
    seed: str
    edits: Sequence[SiteEdit]
    waves: tuple[int, int]
    healthy_seconds: float
    told: Callable[[str], None]
    clock: Clock
    look_seconds: float = 2.0
    _changed: dict[str, _Back] = field(default_factory=dict, init=False)

    async def run(self, names: Sequence[str]) -> None:
        """Change these gateways. Raises ConfigError if it cannot begin, GatewayError once it was taken back."""
        before = await self._seen()
        for name in names:
            if why := self._why_not_well(before.get(name), None):
                raise ConfigError(f"{name} {why}; nothing was changed")
        try:
            for wave in self._waves(names):
                for name in wave:
                    self._changed[name] = await self._change(name, self.edits)
                await self._stay_well(before)
        except GatewayError as error:
            self.told(f"stopped: {error}")
            await self._take_back()
            raise GatewayError("the change is not rolled out; see above for each gateway") from error

    def _waves(self, names: Sequence[str]) -> Iterator[Sequence[str]]:
        first, others = self.waves
        yield names[:first]
        for begin in range(first, len(names), others):
            yield names[begin : begin + others]

    async def _change(self, name: str, edits: Sequence[SiteEdit], *, undone: _Back | None = None) -> _Back:
        """Change one gateway, or undo a change; wait for the end of its trial, and return what takes it back.

        Raises GatewayError.
        """
        last: Reply | None = None
        place, number = FleetName(*name.split(".")), randomness.token_hex(16)
        try:
            async for reply in operator.command(
                self.line,
                place,
                seed=self.seed,
                action=Action.EDIT,
                edits=edits,
                undoes=None if undone is None else undone.number,
                seal="" if undone is None else undone.seal,
                number=number,
            ):
                last = reply
        except (FleetAway, FleetRefused) as error:
            raise GatewayError(f"{name}: what became of the change is unknown, look at it: {error}") from error
        if last is None or last.state != "done":
            raise GatewayError(f"{name}: {'no reply' if last is None else last.detail or last.state}")
        self.told(f"{name}: {last.detail}")
        try:
            return _Back(number, _EDITS.validate_python(last.result), last.seal)
        except ValidationError as error:
            raise GatewayError(f"{name} does not say how its change is taken back; look at it") from error

    async def _stay_well(self, before: Mapping[str, Seen]) -> None:
        """Watch the changed gateways for the given time. Raises GatewayError for one that is not well."""
        begun = self.clock.monotonic()
        while True:
            waited, seen = self.clock.monotonic() - begun, await self._seen()
            for name in self._changed:
                await self._ask(name)
                if why := self._why_not_well(seen.get(name), before.get(name)):
                    raise GatewayError(f"{name} {why}")
            if waited >= self.healthy_seconds:
                return
            await asyncio.sleep(self.look_seconds)

    async def _ask(self, name: str) -> None:
        """Ask a gateway for a nonce, whether it lives. Raises GatewayError."""
        try:
            await self.line.asked(FleetName(*name.split(".")).commands, ASK_NONCE, refusal="it is away")
        except (FleetAway, FleetRefused) as error:
            raise GatewayError(f"{name} does not answer: {error}") from error

    def _why_not_well(self, seen: Seen | None, before: Seen | None) -> str:
        if seen is None:
            return "has never been heard"
        if self.clock.wall().micros - seen.at > AWAY_SECONDS * 1_000_000:
            return "is away"
        if not seen.beat.ready:
            return f"is not ready: {seen.beat.headline}"
        if before is not None and _alarms(seen) > _alarms(before):
            return f"has a new alarm: {seen.beat.headline}"
        return ""

    async def _take_back(self) -> None:
        """Take the change back wherever it was made, the last first; tell of each gateway where that fails."""
        for name, back in reversed(self._changed.items()):
            try:
                await self._change(name, back.edits, undone=back)
                self.told(f"{name}: taken back")
            except GatewayError as error:
                self.told(f"{name} could not be taken back, look at it: {error}")

    async def _seen(self) -> dict[str, Seen]:
        return {one.name: one async for one in operator.gateways(self.line)}


def _alarms(seen: Seen) -> int:
    return sum(problem.severity == "alarm" for problem in seen.beat.problems)


def read_edits(text: str) -> tuple[SiteEdit, ...]:
    """Read the edits of a file in TOML. Raises ConfigError for edits of accounts, ValueError for what are no edits."""
    raw = tomllib.loads(text).get("edits")
    if isinstance(raw, list) and any("account" in str(one.get("section")) for one in raw if isinstance(one, dict)):
        raise ConfigError("accounts are not in the site file: make them at each site with edge-gateway users")
    found = _EDITS.validate_python(raw)
    if not found:
        raise ValueError("there are no edits")
    return found
