"""Prompts for an installer, their defaults, and the checks of the answers."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from gateway.cli.printing import secret_line
from gateway.domain.errors import ConfigError
from gateway.site.addresses import endpoint_of

_HOST = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
)
_LONGEST_NAME = 120
_ANYWHERE = ("192.0.2.1", 9)  # a documentation address (RFC 5737): only the route is looked up, no packet is sent

Check = Callable[[str], str]


def answer(question: str, given: str | None, *, default: str, check: Check) -> str:
    """Return the checked answer: `given` by an option, else typed by a person, else the default without a terminal.

    After a wrong answer, the reason is printed and the person is asked again. Raises ConfigError for a wrong option.
    """
    if given is not None:
        return check(given)
    if not sys.stdin.isatty():
        return check(default)
    while True:
        try:
            return check(str(typer.prompt(question, default=default, show_default=bool(default))))
        except ConfigError as error:
            typer.echo(str(error))


def site_name(text: str) -> str:
    """Check the site's name. Raises ConfigError."""
    if not 0 < len(text) <= _LONGEST_NAME or text != text.strip() or not text.isprintable():
        raise ConfigError(
            f"the name of the site must be 1 to {_LONGEST_NAME} characters in one line, no blank at either end"
        )
    return text


def time_zone(text: str) -> str:
    """Check a time zone. Raises ConfigError."""
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"there is no time zone {text!r}; write one like America/Toronto") from error
    return text


def address(text: str) -> str:
    """Check a host name or an address. Raises ConfigError."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        if _HOST.fullmatch(text) and not text.replace(".", "").isdecimal():
            return text.lower()
    else:
        if not found.is_unspecified and not found.is_multicast:
            return str(found)
    raise ConfigError(f"{text!r} is no address of this machine; write one like 192.168.1.20 or gate.example.com")


def port(text: str) -> str:
    """Check a port. Raises ConfigError."""
    if not text.isdecimal() or not 0 < int(text) <= 65535:
        raise ConfigError(f"{text!r} is no port; write a number from 1 to 65535")
    return text


def central_url(text: str) -> str:
    """Check central's address; "" means no central. Raises ConfigError."""
    if not text:
        return ""
    try:
        endpoint_of(text, schemes=("http", "https"))
    except ValueError as error:
        raise ConfigError(f"central's address {error}") from error
    return text


def account_name(text: str) -> str:
    """Check the name of an account. Raises ConfigError."""
    from gateway.domain.accounts import AccountChangeRefused, checked_name  # noqa: PLC0415  # help answers faster without it

    try:
        return checked_name(text, "an account")
    except AccountChangeRefused as error:
        raise ConfigError(str(error)) from error


def zone_of_this_machine() -> str:
    """Return the name of the machine's time zone; "UTC" when it cannot be found."""
    try:
        text = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2] or Path("/etc/timezone").read_text(
            "ascii"
        )
        return time_zone(text.strip())
    except (OSError, ValueError, ConfigError):
        return "UTC"


def address_of_this_machine() -> str:
    """Return the IPv4 address by which other machines reach this one; its host name without a route."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(_ANYWHERE)
            return str(asked.getsockname()[0])
    except OSError:
        return socket.gethostname().lower()


def is_number(host: str) -> bool:
    """Return whether a host is an address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def secret_in(file: Path) -> str:
    """Return the first line of a file. Raises ConfigError if it is empty or not UTF-8, OSError if unreadable."""
    line = secret_line(file.read_bytes(), str(file))
    if not line:
        raise ConfigError(f"{file} is empty")
    return line
