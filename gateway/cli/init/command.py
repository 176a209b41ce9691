"""The command `init`: it prompts for values, writes files, starts the gateway, and prints the page's address."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from drivers.system_messages import system_words
from gateway.cli.init import questions
from gateway.cli.init.files import CERTIFICATE, KEY, USUAL_SITE, SiteFolder, prepare_data, put_certificate
from gateway.cli.site_fragment import Findings, FoundLine, fragment
from gateway.cli.target import USUAL_DATA, Data
from gateway.cli.users.accounts import checked_password, hashed, new_password
from gateway.cli.users.register import made
from gateway.cli.users.second_factor import fresh_codes, mfa, picture, show
from gateway.domain.errors import ConfigError, GatewayError
from gateway.site import load
from gateway.site.certificates import serving_context
from gateway.site.new_site import NewCentral, NewSite, site_text
from gateway.web.register.changes import AddAccount, Look, SetSecondFactor

_SYSTEMD = Path("/run/systemd/system")
_UNIT = "edge-gateway"
_START_SECONDS = 100.0

Flag = str | None
_SEARCH_SECONDS = 3.0
_SEARCHED_UNITS = range(1, 33)
_SEARCHED_BAUD = 9600
_ROLE = "administrator"
_SECRET = re.compile(r"[A-Z2-7]{16,64}")


def _option(flag: str, shown: str, help_: str) -> Any:
    return typer.Option(flag, metavar=shown, help=help_, show_default=False)


def init(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file to make.")] = USUAL_SITE,
    *,
    name: Annotated[Flag, _option("--name", "TEXT", "The site's name. Default: this machine's name.")] = None,
    zone: Annotated[Flag, _option("--zone", "ZONE", "Its time zone. Default: this machine's.")] = None,
    address: Annotated[
        Flag, _option("--address", "HOST", "Name or address for browsers. Default: this machine's address.")
    ] = None,
    port: Annotated[Flag, _option("--port", "PORT", "Port of page and interface. Default: 8443.")] = None,
    central: Annotated[Flag, _option("--central", "URL", "Address of central, '' for none. Default: none.")] = None,
    central_user: Annotated[Flag, _option("--central-user", "NAME", "The gateway's account at central.")] = None,
    central_password: Annotated[
        Path | None, _option("--central-password", "FILE", "File with that account's password.")
    ] = None,
    account: Annotated[Flag, _option("--account", "NAME", "The first account. Default: technician.")] = None,
    password: Annotated[
        Path | None, _option("--password", "FILE", "File with its password. Default: asked, or standard input.")
    ] = None,
    authenticator: Annotated[
        Path | None,
        _option("--authenticator", "FILE", "File with its authenticator's secret in base32. Default: a new one."),
    ] = None,
    second_factor: Annotated[
        bool, typer.Option("--second-factor/--no-second-factor", help="Whether it has a second factor.")
    ] = True,
    certificate: Annotated[
        Path | None, _option("--certificate", "FILE", "Your certificate. Default: signed by an authority made here.")
    ] = None,
    key: Annotated[Path | None, _option("--key", "FILE", "Its private key.")] = None,
    look: Annotated[
        bool, typer.Option("--search/--no-search", help="Whether to look for serial ports, and for cameras nearby.")
    ] = True,
    units: Annotated[
        bool,
        typer.Option("--units", help="Also ask units 1 to 32 of each serial port, by Modbus at 9600 bits per second."),
    ] = False,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Whether to start the unit.")] = True,
    data: Data = USUAL_DATA,
) -> None:
    """Set up a new site: write its site file, secrets, certificate and first account, and start the gateway.

    Asks what no option says; without a terminal it takes the defaults. Never changes an existing site file.

    Example: edge-gateway init --name "North car park" --zone America/Toronto
    """
    folder = SiteFolder(site.absolute())
    folder.refuse_existing()
    if (certificate is None) != (key is None):
        raise ConfigError("--certificate and --key belong together")
    try:
        new, host = _asked_site(name, zone, address, port, found=lambda: search(data=data, units=units) if look else "")
        above = _asked_central(central, central_user, central_password)
        first = FirstAccount.asked(account, password, authenticator, second_factor=second_factor)
        folder.prepare()
        own = None if certificate is None or key is None else (certificate, key)
        told = put_certificate(folder, site=new.name, host=host, own=own)
        draft = _draft(folder, new, above)
        prepare_data(data)
        add_first_account(first, data)
        folder.keep_site(draft)  # the last step: whatever fails before, the command can be given again
    except OSError as error:
        raise ConfigError(f"{error.filename or folder.site} cannot be used: {error.strerror}") from error
    typer.echo(f"{folder.site} is written")
    if start and _SYSTEMD.is_dir() and folder.site == USUAL_SITE:
        _start()
    _tell(f"https://{f'[{host}]' if ':' in host else host}:{new.port}/status/", told)


def _asked_site(name: Flag, zone: Flag, address: Flag, port: Flag, *, found: Callable[[], str]) -> tuple[NewSite, str]:
    """Prompt for the site's values; return the site without central, and the host that browsers use."""
    ask = questions.answer
    name = ask("Name of the site", name, default=socket.gethostname(), check=questions.site_name)
    zone = ask("Time zone", zone, default=questions.zone_of_this_machine(), check=questions.time_zone)
    here = questions.address_of_this_machine()
    host = ask("Name or address of this machine for browsers", address, default=here, check=questions.address)
    at_port = ask("Port of the page", port, default="8443", check=questions.port)
    names = () if questions.is_number(host) else (host,)
    new = NewSite(
        name=name,
        timezone=zone,
        host="::" if ":" in host else "0.0.0.0",  # noqa: S104  # browsers come from the site's network
        host_names=names,
        port=int(at_port),
        certificate=f"tls/{CERTIFICATE}",
        key=f"tls/{KEY}",
        found=found(),
    )
    return new, host


@dataclass(frozen=True, slots=True)
class _Above:
    """The gateway's account at central, with its password."""

    account: NewCentral
    password: str


def _asked_central(url: Flag, user: Flag, password: Path | None) -> _Above | None:
    ask = questions.answer
    url = ask("Address of central (empty for none)", url, default="", check=questions.central_url)
    if not url:
        return None
    user = ask("The gateway's account at central", user, default="gateway", check=questions.account_name)
    if password is None and not sys.stdin.isatty():
        raise ConfigError("--central needs --central-password")
    text = questions.secret_in(password) if password else str(typer.prompt("Its password", hide_input=True))
    return _Above(NewCentral(url=url, username=user), text)


def _draft(folder: SiteFolder, new: NewSite, above: _Above | None) -> Path:
    """Write central's password and a draft of the site file, and check the draft. Raises ConfigError, OSError."""
    if above is not None:
        folder.keep_secret("central-password", above.password)
        new = replace(new, central=above.account)
    draft = folder.write_site(site_text(new))
    try:
        tls = load(draft).api.tls
        if tls is not None:
            serving_context(tls)  # `load` only warns of a certificate that cannot be served
    except GatewayError:
        draft.unlink()
        raise
    return draft


def _start() -> None:
    """Enable and start the systemd unit, and wait until its lanes are under control. Raises GatewayError."""
    typer.echo("starting the gateway")
    words = ["systemctl", "enable", "--now", "--quiet", _UNIT]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_START_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = system_words(error) if isinstance(error, OSError) else f"it took longer than {_START_SECONDS} s"
        raise GatewayError(f"systemctl did not start the gateway: {why}; see journalctl -u {_UNIT}") from error
    if done.returncode:
        raise GatewayError(f"the gateway does not start: {done.stderr.strip()}; see journalctl -u {_UNIT}")


def _tell(url: str, certificate: tuple[str, ...]) -> None:
    typer.echo(picture(url))
    typer.echo(f"The page is at {url}")
    for line in certificate:
        typer.echo(line)
    typer.echo("Next: add lines, devices and lanes to the site file, then edge-gateway check and edge-gateway reload")


def search(*, data: Path, units: bool) -> str:
    """Find serial ports and cameras, and Modbus units if wanted; print them, and return a part of a site file for them.

    Only the search for units sends bytes to devices, to which a device with another protocol may react wrongly. A
    network or port that cannot be searched is reported and skipped.
    """
    from gateway.cli.discover import Kind, ask_network, found_ports, units_on  # noqa: PLC0415  # help is faster

    lines: list[FoundLine] = found_ports(())
    if units:
        lines = [
            units_on(line.url, [*_SEARCHED_UNITS], baud=_SEARCHED_BAUD, framing="rtu", data=data, url="")
            for line in lines
        ]
    try:
        cameras, others = asyncio.run(ask_network(frozenset({Kind.ONVIF, Kind.MDNS}), None, _SEARCH_SECONDS))
    except (OSError, GatewayError) as error:
        typer.echo(f"the network was not searched: {system_words(error) if isinstance(error, OSError) else error}")
        cameras, others = [], []
    for line in lines:
        typer.echo(f"found {line.url}{''.join(f', unit {unit.unit}' for unit in line.units)}")
    for camera in cameras:
        typer.echo(f"found {camera.name or 'a camera'} at {camera.address}")
    return fragment(Findings(tuple(lines), tuple(cameras), tuple(others)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAccount:
    """The first account: name, password, and second factor.

    Attributes:
        second_factor: whether it gets a second factor.
        secret: the authenticator's secret in base32 that the installer supplied; "" to make a new one.
    """

    username: str
    password: str = field(repr=False)
    second_factor: bool
    secret: str = field(default="", repr=False)

    @classmethod
    def asked(
        cls, username: str | None, password: Path | None, authenticator: Path | None, *, second_factor: bool
    ) -> Self:
        """Prompt for the values that no option gives. `password` and `authenticator` are files.

        Raises ConfigError for an unsuitable value, OSError for an unreadable file.
        """
        name = questions.answer("First account", username, default="technician", check=questions.account_name)
        secret = ""
        if authenticator is not None:
            secret = questions.secret_in(authenticator).replace(" ", "").upper()
            if not _SECRET.fullmatch(secret):
                raise ConfigError(f"{authenticator} must hold an authenticator's secret: 16 to 64 letters of base32")
        text = checked_password(name, questions.secret_in(password)) if password else new_password(name)
        return cls(username=name, password=text, second_factor=second_factor, secret=secret)


def add_first_account(first: FirstAccount, data: Path) -> None:
    """Add the account to those of a data folder, which may be new.

    If the account exists already, from an interrupted attempt, it keeps its password and its second factor.
    """
    known = {account.username: account for account in made(Look(), data, new=True).accounts}
    account = known.get(first.username)
    if account is None:
        made(AddAccount(username=first.username, password_hash=hashed(first.password), role=_ROLE), data)
        typer.echo(f"{first.username} may sign in, with the role {_ROLE}")
    else:
        typer.echo(f"{first.username} has an account here already, which keeps its password")
    if not first.second_factor or (account is not None and account.mfa):
        return
    if not first.secret:
        mfa(first.username, off=False, data=data)
        return
    codes, hashes = fresh_codes()
    made(SetSecondFactor(username=first.username, secret=first.secret, step=0, codes=hashes), data)
    show(codes)
