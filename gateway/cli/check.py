"""`edge-gateway check`: check a site file without starting anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from drivers.device import GateDevice, ReaderDevice
from gateway.cli.printing import print_value
from gateway.cli.target import USUAL_DATA, Data, JsonWanted
from gateway.domain.errors import ConfigError, GatewayError
from gateway.runtime.clock import SystemClock, iso_utc
from gateway.runtime.durable_files import write_durably
from gateway.site import Site, doubtful, load, secrets_beside, unproven
from gateway.site.certificates import ends_at
from gateway.site.file_accounts import accounts_of
from gateway.site.formats import ACCOUNTS, FORMAT, rewritten
from gateway.web.register.changes import AccountShown, Look

_FAULTY = 2


def check(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.", show_default=False)],
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="First write a file of an older format in today's, and keep the old one.")
    ] = False,
    as_json: JsonWanted = False,
    data: Data = USUAL_DATA,
) -> None:
    """Check a site file and list every fault with its place. The exit status is 2 when there is one.

    Looks up the secrets and device profiles that the file names. Warns of likely slips, and notes parts of profiles
    that were never proven on a device. Connects to no device. Accounts are looked up in the data folder, if
    there is one.

    Example: edge-gateway check /etc/edge-gateway/site.toml
    """
    if rewrite:
        _rewrite(site, data)
    if as_json:
        _print_judged(site, data)
        return
    known, accounts = load(site), _accounts(site, data)
    typer.echo(f"{site} is good: {summary(known, accounts=accounts)}")
    for sentence in warnings(known, site, accounts):
        typer.echo(f"warning: {sentence}")
    for sentence in unproven(known, site):
        typer.echo(f"note: {sentence}")


def _accounts(site: Path, data: Path) -> tuple[str, ...] | None:
    """Return the accounts that may sign in: the register's, and those of an older file that it does not have yet.

    None if the register cannot be read here.
    """
    known = _register(data)
    if known is None:
        return None
    names = {one.username for one in known}
    new = (one.username for one in accounts_of(site.read_bytes()) if one.username not in names)
    return (*(one.username for one in known if not one.disabled), *new)


def _register(data: Path) -> tuple[AccountShown, ...] | None:
    """Return the accounts of the register; None if it cannot be read here."""
    with suppress(GatewayError, OSError):
        if (data / "site.db").exists():
            from gateway.cli.users.register import made  # noqa: PLC0415  # a check without a register starts faster

            return made(Look(), data).accounts
    return None


def _print_judged(site: Path, data: Path) -> None:
    try:
        known = load(site)
    except ConfigError as error:
        print_value({"good": False, "faults": list(error.lines()) or [str(error)], "warnings": [], "notes": []})
        raise typer.Exit(_FAULTY) from error
    print_value(
        {
            "good": True,
            "faults": [],
            "warnings": [*warnings(known, site, _accounts(site, data))],
            "notes": [*unproven(known, site)],
        }
    )


def warnings(known: Site, path: Path, accounts: tuple[str, ...] | None) -> Iterator[str]:
    """Yield what a sound site file may mean otherwise than it says. `accounts` as in `summary`."""
    yield from doubtful(known, path)
    if accounts is not None and known.fleet is not None:
        for index, sender in enumerate(known.fleet.senders):
            if sender.account not in accounts:
                why = f"there is no account '{sender.account}' that may sign in, so its commands are refused"
                yield f"fleet.senders[{index}].account: {why}: see edge-gateway users"
    for index, account in enumerate(accounts_of(path.read_bytes())):
        if account.username not in (accounts or ()):
            try:
                secrets_beside(path).get(account.password)
            except ConfigError as error:
                yield f"{ACCOUNTS}[{index}].password: the register cannot take over {account.username!r}: {error}"
    if known.api.tls is not None:
        with suppress(ConfigError):  # it is among the doubts
            ended = ends_at(known.api.tls)
            if ended <= SystemClock().wall().micros:
                name, day = known.api.tls.certificate, iso_utc(ended)[:10]
                yield f"api.tls.certificate: {name} ended on {day}: browsers and programs refuse it, so replace it"


def _rewrite(site: Path, data: Path) -> None:
    """Write the site file in the present format, and keep a copy of the old one beside it. Raises ConfigError."""
    load(site)  # a file with faults stays as it is
    try:
        before = site.read_text("utf-8-sig")
        _expect_taken_over(before, data)
        after = rewritten(before)
        if after == before:
            typer.echo(f"{site} has format {FORMAT} already")
            return
        kept = site.with_name(f"{site.name}.before-format-{FORMAT}")
        write_durably(kept, before.encode())
        write_durably(site, after.encode())
    except OSError as error:
        raise ConfigError(f"{site} cannot be rewritten: {error.strerror}") from error
    typer.echo(f"{site} has format {FORMAT} now; what it was is {kept}")


def _expect_taken_over(text: str, data: Path) -> None:
    """Refuse to take accounts out of a file that the register does not have. Raises ConfigError."""
    known = {account.username for account in _register(data) or ()}
    if lacking := [one.username for one in accounts_of(text.encode()) if one.username not in known]:
        raise ConfigError(
            f"the register of {data} has no account {', '.join(lacking)} yet: start or reload the gateway with this"
            " file first, or take out of [[api.accounts]] what is not wanted any more"
        )


def summary(site: Site, *, accounts: tuple[str, ...] | None = None) -> str:
    """Summarise a site in one line. `accounts`: those of the register, None if it is not known."""
    gates = sum(isinstance(device, GateDevice) for device in site.devices)
    readers = sum(isinstance(device, ReaderDevice) for device in site.devices)
    modules = sum(device.has_points and not isinstance(device, GateDevice) for device in site.devices)
    parts = ", ".join(
        (
            _counted(len(site.lanes), "lane"),
            _counted(gates, "gate"),
            _counted(readers, "reader"),
            *((_counted(modules, "input module"),) if modules else ()),
            _counted(len(site.cameras), "camera"),
            _counted(len(site.links), "link"),
        )
    )
    above = f"central at {site.central.url}" if site.central else "no central service"
    doors = "; nobody can sign in: see edge-gateway users" if accounts == () else ""
    return f"{site.site.name} with {parts}; {above}{doors}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
