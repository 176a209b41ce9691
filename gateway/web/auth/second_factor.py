"""The second factor of the site's own accounts: codes of an authenticator (RFC 6238), and recovery codes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from enum import Enum

import pyotp
import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.store import UNREADABLE, StoredAccount
from gateway.store.accounts.accounts import Accounts

log = structlog.get_logger(__name__)

STEP_SECONDS = 30
RECOVERY_CODES = 10
_RECOVERY_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without letters that look alike
_RECOVERY_LENGTH = 16
_MEMORY = 1024


class CodeProof(Enum):
    """Results of checking a code."""

    NONE = "none"
    CODE = "code"
    RECOVERY_CODE = "recovery code"


class SecondFactor:
    """Check of codes. Each code counts once; after it, no code of an earlier half minute counts."""

    def __init__(self, *, accounts: Accounts, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._used: dict[tuple[str, str], int] = {}

    @property
    def doubtful(self) -> bool:
        """True while this machine's clock is not synchronised: right codes of an authenticator may then be refused."""
        return not self._clock.wall().trusted

    async def proves(self, account: StoredAccount, code: str) -> CodeProof:
        """Check a code: an authenticator's current code, or an unused recovery code.

        Raises StoreError if a recovery code cannot be marked as used.
        """
        text = "".join(code.split()).replace("-", "").lower()
        if len(text) == _RECOVERY_LENGTH:
            used = await self._accounts.use_recovery_code(account.username, recovery_hash(text))
            return CodeProof.RECOVERY_CODE if used else CodeProof.NONE
        step = step_of(account.totp_secret, text, at=self._clock.wall().micros // 1_000_000)
        return CodeProof.CODE if step is not None and await self._first_use(account, step) else CodeProof.NONE

    async def _first_use(self, account: StoredAccount, step: int) -> bool:
        key = (account.username, account.totp_secret)
        if self._used.get(key, 0) >= step:
            return False
        self._used.pop(key, None)
        self._used[key] = step
        while len(self._used) > _MEMORY:
            del self._used[next(iter(self._used))]
        try:
            return await self._accounts.use_step(account.username, account.totp_secret, step)
        except StoreError as error:
            # A technician must be able to sign in on a full disk. `_used` remembers the code, so it still counts once.
            log.warning("code_in_memory", error=str(error))
            return True


def step_of(secret: str, code: str, *, at: int) -> int | None:
    """Return the time step (RFC 6238, 30 s) of a code; None if the code is wrong.

    The present step and its two neighbours are accepted. `at` is in Unix seconds.
    """
    if secret in ("", UNREADABLE) or not (code.isascii() and code.isdigit()):
        return None
    authenticator = pyotp.TOTP(secret)
    present = at // STEP_SECONDS
    found = None
    for step in (present - 1, present, present + 1):
        if hmac.compare_digest(authenticator.generate_otp(step), code):
            found = step
    return found


def new_recovery_codes() -> tuple[str, ...]:
    """Return ten new recovery codes in groups of four letters, as they are shown. Each has 79 bits."""
    return tuple(
        "-".join("".join(secrets.choice(_RECOVERY_LETTERS) for _ in range(4)) for _ in range(_RECOVERY_LENGTH // 4))
        for _ in range(RECOVERY_CODES)
    )


def recovery_hash(code: str) -> bytes:
    """Return the SHA-256 of a recovery code, ignoring case, spaces and hyphens. A random code needs no slow hash."""
    return hashlib.sha256("".join(code.split()).replace("-", "").lower().encode()).digest()
