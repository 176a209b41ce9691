"""Commands as they come over the fleet: who signed them, when they are too late, and what they need. Pure.

A command is JSON, signed with the sender's NKey over its subject and its bytes. It holds a nonce of the gateway, for
which the sender asks first; the gateway itself knows its date. So no clock needs to be right, a command for an earlier
run is refused, and nobody on the way makes a command live longer.

Nonces and seals of edits are values that only this gateway can have made. The server between may be hostile: it can
hold messages back, repeat them and answer in the gateway's name. It cannot make a nonce, and none is younger than the
gateway says. So a command's life begins before its sender signs it, whatever is held back on the way.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

import nkeys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from gateway.domain.errors import CommandRefused
from gateway.runtime.clock import Clock
from gateway.site.edits import Edit

LONGEST_SECONDS: Final = 60.0
"""The longest life of a command."""
SENDER: Final = "Fleet-Sender"
SIGNATURE: Final = "Fleet-Signature"
PART: Final = "Fleet-Part"
"""The header of a part of a file, with its number."""
ASK_NONCE: Final = b'{"action":"nonce"}'
"""The message that asks a gateway for a nonce."""
_EVERYTHING = "*"

LATE: Final = "the command came too late, so it was not carried out"
_OF_ANOTHER_RUN = "the gateway was started after the command was made; look at the gate, and command it again"
_USED = "the command's nonce was used for another command already"
_MICROS = 1_000_000


class Action(StrEnum):
    """Actions that can be commanded."""

    OPEN = "open"
    CLOSE = "close"
    STOP = "stop"
    HOLD = "hold"
    SNAPSHOT = "snapshot"
    RELOAD = "reload"
    BUNDLE = "bundle"
    CLIP = "clip"
    PROOF = "proof"
    EDIT = "edit"


_NEEDED: Mapping[Action, frozenset[str]] = {
    Action.OPEN: frozenset({"can_control_devices"}),
    Action.CLOSE: frozenset({"can_control_devices"}),
    Action.STOP: frozenset({"can_control_devices"}),
    Action.HOLD: frozenset({"can_control_devices"}),
    Action.SNAPSHOT: frozenset({"can_view_devices"}),
    Action.RELOAD: frozenset({_EVERYTHING}),
    Action.EDIT: frozenset({_EVERYTHING}),
    Action.BUNDLE: frozenset({"can_edit_settings", "can_view_events", "can_view_devices"}),
    Action.CLIP: frozenset({"can_view_cameras", "can_view_camera_events"}),
    Action.PROOF: frozenset({"can_view_events", "can_view_camera_events"}),
}
OF_LANES: Final = frozenset({Action.OPEN, Action.CLOSE, Action.STOP, Action.HOLD})
OF_FILES: Final = frozenset({Action.BUNDLE, Action.CLIP, Action.PROOF})
LONGEST_CLIP_SECONDS: Final = 600


CommandId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")]


class AskNonce(BaseModel):
    """The question for a nonce, which needs no signature."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal["nonce"]


class AskPart(BaseModel):
    """The question for a part of the file that a command with this id has made; signed by the command's sender."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal["part"]
    id: CommandId
    part: Annotated[int, Field(ge=0, lt=2**31)]


NonceText = Annotated[str, Field(min_length=1, max_length=200)]


class Nonce(BaseModel):
    """A nonce for one command. Its date and its proof are the gateway's own; nobody else reads them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    nonce: NonceText


class SiteEdit(BaseModel):
    """An edit of one entry of the site file, as `gateway.site.edits` takes it.

    The name of the site is not among them: with another one the line to the fleet begins anew, and replies are lost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    section: Literal["devices", "cameras", "areas", "lanes", "schedules", "holidays"]
    id: Annotated[str, Field(max_length=120)] = ""
    values: Annotated[dict[str, str | bool | int | float | None], Field(max_length=20)] = {}
    windows: Annotated[tuple[dict[str, str | list[str]], ...], Field(max_length=50)] | None = None
    remove: bool = False

    def edit(self) -> Edit:
        """Return the edit."""
        return Edit(self.section, self.id, dict(self.values), self.windows, self.remove)


class FleetCommand(BaseModel):
    """A command.

    Attributes:
        id: made by the sender, and never used again; another command with it answers with the first one's result.
        lane: the lane's id, for `open`, `close`, `stop` and `hold`.
        order: the standing order of `hold`; null to follow the schedule again.
        edits: the changes of the site file, for `edit`.
        undoes, seal: for an `edit` that takes an earlier one back, the id of that one and the proof from its reply that
            these edits are the gateway's own: on the way somebody else may have put others there to be signed.
        camera, begin, end: the camera and the time of a `clip`, of ten minutes at most.
        event: the event of a `proof`.
        nonce: asked for before the command was signed, for this command alone.
        seconds: the command's life, which begins with the date of its nonce.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: CommandId
    action: Action
    lane: Annotated[str, Field(max_length=40)] = ""
    order: Literal["hold_open", "lock_down", "normal"] | None = "hold_open"
    reason: Annotated[str, Field(max_length=200)] = ""
    edits: Annotated[tuple[SiteEdit, ...], Field(max_length=100)] = ()
    camera: Annotated[int, Field(ge=0, lt=2**53)] = 0
    begin: AwareDatetime | None = None
    end: AwareDatetime | None = None
    event: Annotated[int, Field(ge=0, lt=2**53)] = 0
    undoes: CommandId | None = None
    seal: Annotated[str, Field(max_length=100)] = ""
    nonce: NonceText
    seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS)]

    def span(self) -> tuple[int, int]:
        """Return begin and end of the clip (wall micros). Raises CommandRefused for a time that is not allowed."""
        if self.begin is None or self.end is None or not self.camera:
            raise CommandRefused("a clip needs a camera, begin and end")
        begin, end = (round(time.timestamp() * 1_000_000) for time in (self.begin, self.end))
        if not 0 < end - begin <= LONGEST_CLIP_SECONDS * 1_000_000 or begin < 0:
            raise CommandRefused(f"a clip ends after it begins, and lasts {LONGEST_CLIP_SECONDS} seconds at most")
        return begin, end


def why_not_allowed(action: Action, permissions: frozenset[str] | None) -> str:
    """Return which permission an account lacks for an action, "" if none. `permissions`: None without an account."""
    if permissions is None:
        return "the sender's account does not exist at this gateway, or is disabled"
    if _EVERYTHING in permissions or permissions >= _NEEDED[action]:
        return ""
    return f"the sender's account lacks {', '.join(sorted(_NEEDED[action] - permissions))}"


class FileOffer(BaseModel):
    """A file that can be fetched: parts of `part_bytes`, the last one shorter. `gaps`: the times a clip lacks."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    part_bytes: Annotated[int, Field(gt=0)]
    gaps: tuple[str, ...] = ()

    @property
    def parts(self) -> int:
        """The number of parts."""
        return -(-self.size // self.part_bytes)


class CommandReply(BaseModel):
    """A reply to a command. The last one is `final`; `state` is `moved` once the gate was seen to move.

    Attributes:
        detail: why it was refused, or why its outcome is unknown; or what was done.
        result: what `snapshot` asks for; for `edit`, the edits that take it back.
        file: the file that `bundle`, `clip` and `proof` have made.
        seal: for `edit`, the gateway's proof of `result`, which a command that takes it back must hold.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    state: Literal["recorded", "sent", "acknowledged", "moved", "done", "refused", "unknown"]
    final: bool
    detail: str = ""
    result: JsonValue = None
    file: FileOffer | None = None
    seal: str = ""


def signed(seed: str, subject: str, body: bytes) -> dict[str, str]:
    """Return the headers that sign a command. Raises ValueError for a seed that is none."""
    try:
        pair = nkeys.from_seed(bytearray(seed.strip().encode()))
        key, signature = pair.public_key.decode(), pair.sign(_text(subject, body))
    except (nkeys.NkeysError, ValueError) as error:
        raise ValueError("must be the seed of a user's NKey, SU…") from error
    return {SENDER: key, SIGNATURE: base64.b64encode(signature).decode()}


def sender_of(headers: Mapping[str, str], subject: str, body: bytes) -> str:
    """Return the public NKey that has signed this message, "" if none has."""
    key = headers.get(SENDER, "")
    try:
        raw = base64.b32decode(key + "=" * (-len(key) % 8))
        Ed25519PublicKey.from_public_bytes(raw[1:33]).verify(
            base64.b64decode(headers.get(SIGNATURE, ""), validate=True), _text(subject, body)
        )
    except (ValueError, InvalidSignature):
        return ""
    return key


def _text(subject: str, body: bytes) -> bytes:
    return subject.encode() + b"\n" + body


class Nonces:
    """The nonces of this run of the gateway.

    One that was asked for needs no memory: it holds its date, under a key of this run. A stranger may ask for many.
    Only a signed command uses one up.
    """

    def __init__(self, *, clock: Clock, longest_seconds: float) -> None:
        """Begin a run. `longest_seconds`: the longest life of a command, after which a nonce is over by itself."""
        self._clock = clock
        self._longest = longest_seconds
        self._key = secrets.token_bytes(32)
        self._used: dict[str, float] = {}

    def issue(self) -> str:
        """Return a new nonce of now."""
        said = f"{int(self._clock.monotonic() * _MICROS)}.{secrets.token_hex(8)}"
        return f"{said}.{self._seal(said)}"

    def use(self, nonce: str, *, seconds: float) -> float:
        """Use a nonce up; return the end of its command's life, `seconds` after its date, in monotonic seconds.

        Raises CommandRefused for one of another run, one that is too old, and one that was used before.
        """
        said, _, seal = nonce.rpartition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(said).encode()):
            raise CommandRefused(_OF_ANOTHER_RUN)
        now, date = self._clock.monotonic(), int(said.partition(".")[0]) / _MICROS
        if now >= date + seconds:
            raise CommandRefused(LATE)
        self._used = {each: end for each, end in self._used.items() if now < end}
        if nonce in self._used:
            raise CommandRefused(_USED)
        self._used[nonce] = date + self._longest
        return date + seconds

    def _seal(self, said: str) -> str:
        return hmac.digest(self._key, said.encode(), "sha256").hex()


def seal_of(key: bytes, command_id: str, edits: bytes) -> str:
    """Return the proof that this gateway gave out these edits as those that take a command back."""
    return hmac.digest(key, command_id.encode() + b"\n" + edits, "sha256").hex()


def is_seal_of(seal: str, key: bytes, command_id: str, edits: bytes) -> bool:
    """Return whether the proof is right for this command and these edits."""
    return hmac.compare_digest(seal.encode(), seal_of(key, command_id, edits).encode())
