"""The second factor: an authenticator enrolled by a QR code in the terminal, and recovery codes."""

from __future__ import annotations

import io
import socket
import sys
from typing import Annotated

import typer

from gateway.cli.target import USUAL_DATA, Data
from gateway.cli.users.register import made
from gateway.domain.errors import GatewayError, NotFoundError
from gateway.runtime.clock import SystemClock
from gateway.web.register.changes import Look, SetRecoveryCodes, SetSecondFactor

_TRIES = 3

Username = Annotated[str, typer.Argument(metavar="NAME", help="The account's name.", show_default=False)]


def mfa(
    username: Username,
    off: Annotated[bool, typer.Option("--off", help="Remove the second factor.")] = False,
    data: Data = USUAL_DATA,
) -> None:
    """Set up a second factor: scan the QR code with an authenticator and type the code it shows.

    Recovery codes are shown once, at the end. Each one signs in once when the authenticator is lost.

    Example: edge-gateway users mfa ada
    """
    _known(username, data)
    if off:
        made(SetSecondFactor(username=username, secret="", step=0), data)
        typer.echo(f"{username} has no second factor; all its sessions have ended")
        return
    import pyotp  # noqa: PLC0415  # other commands start faster without it

    secret = pyotp.random_base32()
    address = pyotp.TOTP(secret).provisioning_uri(name=username, issuer_name=f"edge-gateway {socket.gethostname()}")
    typer.echo(picture(address))
    typer.echo(f"Scan it, or type this secret: {' '.join(secret[at : at + 4] for at in range(0, len(secret), 4))}")
    step = _proven(secret)
    codes, hashes = fresh_codes()
    made(SetSecondFactor(username=username, secret=secret, step=step, codes=hashes), data)
    typer.echo(f"{username} has a second factor; all its sessions have ended")
    show(codes)


def recovery(username: Username, data: Data = USUAL_DATA) -> None:
    """Make new recovery codes and show them once. The old ones stop working.

    Example: edge-gateway users recovery ada
    """
    codes, hashes = fresh_codes()
    made(SetRecoveryCodes(username=username, codes=hashes), data)
    show(codes)


def _known(username: str, data: Data) -> None:
    """Check, before a code is shown, that the account exists. Raises NotFoundError."""
    if username not in {one.username for one in made(Look(), data).accounts}:
        raise NotFoundError(f"there is no account {username!r}")


def picture(address: str) -> str:
    """Return an address as a QR code in text: dark on light with a margin, whatever the terminal's colours are."""
    import segno  # noqa: PLC0415  # other commands start faster without it

    out = io.StringIO()
    segno.make(address, error="m", micro=False).terminal(out, border=2, compact=True)
    return out.getvalue()


def _proven(secret: str) -> int:
    """Prompt for the authenticator's code; return its time step (RFC 6238). Raises GatewayError after three tries."""
    from gateway.web.auth.second_factor import step_of  # noqa: PLC0415  # other commands answer faster without it

    clock = SystemClock()
    for _ in range(_TRIES):
        step = step_of(secret, "".join(_code().split()), at=clock.wall().micros // 1_000_000)
        if step is not None:
            return step
        typer.echo("That code is not valid now. Is the time correct here and on the phone?", err=True)
    raise GatewayError("nothing was changed; scan a new code and try again")


def fresh_codes() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Make new recovery codes; return them, and their hashes in hexadecimal."""
    from gateway.web.auth.second_factor import new_recovery_codes, recovery_hash  # noqa: PLC0415  # likewise

    codes = new_recovery_codes()
    return codes, tuple(recovery_hash(one).hex() for one in codes)


def show(codes: tuple[str, ...]) -> None:
    """Print recovery codes, which cannot be shown again."""
    typer.echo("Recovery codes, which are not shown again; keep them apart from the phone:")
    for one in codes:
        typer.echo(f"  {one}")


def _code() -> str:
    """Prompt for the code that the authenticator shows; without a terminal, read a line."""
    if sys.stdin.isatty():
        return str(typer.prompt("The code that it shows now"))
    return sys.stdin.readline().strip()
