"""Values that only this gateway can have made: nonces of its own date, and seals of edits that it gave out.

The server between may be hostile: it can hold messages back, repeat them and answer in the gateway's name. It cannot
make a nonce, and none is younger than the gateway says. So a command's life begins before its sender signs it, whatever
is held back on the way.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from gateway.domain.errors import CommandRefused
from gateway.runtime.clock import Clock

LATE: Final = "the command came too late, so it was not carried out"
_OF_ANOTHER_RUN = "the gateway was started after the command was made; look at the gate, and command it again"
_USED = "the command's nonce was used for another command already"
_MICROS = 1_000_000


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
