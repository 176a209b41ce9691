"""Parsing of a site file's addresses into values that are equal if the addresses mean the same."""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from drivers.device import LineKind

_DEFAULT_PORTS = {
    "http": 80,
    "https": 443,
    "rtsp": 554,
    "rtsps": 322,
    "whep": 80,
    "wheps": 443,
    "nats": 4222,
    "tls": 4222,
    "mqtt": 1883,
    "mqtts": 8883,
}
_SERIAL = "serial:"
_LISTEN = "http-listen://"
_PSEUDO_TERMINALS = "/dev/pts/"
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_WEB = ("http://", "https://")
_SECRET_NAMES = frozenset({"password", "passwd", "pass", "pwd", "psw", "token", "secret", "apikey", "api_key"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, in lower case, and a TCP port."""

    host: str
    port: int

    def is_this_machine(self) -> bool:
        """Return whether the host is this machine, judged by its text alone: "localhost", loopback or unspecified."""
        return self.host == "localhost" or _is_local(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


PLACE = re.compile(r"\{(username|password)\}")
"""The place of the account, or of its password, in the address of a camera that takes them there."""
_PLACED = re.compile(rf"(?:[A-Za-z]{{1,12}}=)?{PLACE.pattern}")


def endpoint_of(url: str, *, schemes: Collection[str], has_places: bool = False) -> Endpoint:
    """Return host and port of a URL with one of these schemes; the port defaults to that of the scheme.

    `has_places`: whether it may have a `PLACE` where other URLs would have credentials.

    Raises ValueError, without the URL in its text, for any other URL and for one with credentials, because secrets
    do not belong in the site file.
    """
    wanted = " or ".join(", ".join(f"{scheme}://…" for scheme in schemes).rsplit(", ", 1))
    host = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    parts, port = _split(_PLACED.sub("", url) if has_places and not PLACE.search(host) else url, wanted)
    if parts.scheme not in schemes or not parts.hostname or not _is_connectable(parts.hostname):
        raise ValueError(f"must be {wanted}")
    if port == 0:
        raise ValueError("port 0 cannot be connected to")
    return Endpoint(parts.hostname.lower(), port or _DEFAULT_PORTS[parts.scheme])


def origin_of(url: str) -> str:
    """Return the origin `http://host` or `https://host`, with a port if given.

    Raises ValueError for anything else. A path is refused because the interface's paths begin at `/`, so a proxy
    cannot serve it under another path.
    """
    wanted = "https://host or http://host, with a port if need be and no path"
    parts, port = _split(url, wanted)
    found = endpoint_of(url, schemes=("https", "http"))
    if parts.path.strip("/") or parts.query or parts.fragment or not _is_host(found.host):
        raise ValueError(f"must be {wanted}")
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}"


def _is_host(text: str) -> bool:
    try:
        listening_host(text)
    except ValueError:
        return False
    return True


def _is_connectable(host: str) -> bool:
    """Return whether a host is an address, or a name that DNS can be asked for."""
    if ":" in host:
        return True  # an IPv6 address, as `urlsplit` has found
    try:
        labels = host.encode("idna").decode().removesuffix(".").split(".")
    except UnicodeError:
        return False
    return all(map(_LABEL.fullmatch, labels))


def listening_host(text: str) -> str:
    """Return a host name or address to listen on, after a check. Raises ValueError with one sentence."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        if labels[-1].isdecimal() or not all(map(_LABEL.fullmatch, labels)):
            raise ValueError(
                "must be an address of this machine, like 0.0.0.0 or ::, or a name, without port"
            ) from None
    return text


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on this host can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().removesuffix(".") == "localhost"


def networks(texts: Iterable[str], *, whose: str) -> tuple[Network, ...]:
    """Parse addresses and networks, such as "192.168.1.20" and "10.0.5.0/24".

    Raises ValueError with one sentence for any other text, and for a network of all addresses. `whose`: the owner of
    the addresses, for that sentence.
    """
    found = []
    for text in texts:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise ValueError(
                f"'{text}' is not an address or network; write one like '192.168.1.20' or '10.0.5.0/24'"
            ) from error
        if network.prefixlen == 0:
            raise ValueError(f"'{text}' means every address: name those of {whose}")
        found.append(network)
    return tuple(found)


def line_of(url: str) -> Endpoint | str:
    """Return the line that a link's URL occupies: a network endpoint, or the device path of a serial port.

    Raises ValueError with one sentence for any other URL.
    """
    if url.startswith(_SERIAL):
        path = url.removeprefix(_SERIAL)
        if not path.startswith("/") or (path.startswith("//") and not path.startswith("///")) or path.endswith("/"):
            raise ValueError("must be serial:/dev/…")
        return posixpath.normpath("/" + path.lstrip("/"))
    if url.startswith(_WEB):
        return _bare_endpoint(url, "http://host:port", default=_DEFAULT_PORTS[url.partition(":")[0]])
    if url.startswith(_LISTEN):
        return _bare_endpoint(url, "http-listen://host:port")
    if not url.startswith("tcp://"):
        raise ValueError("must begin with tcp://, serial:/, http://, https:// or http-listen://")
    return _bare_endpoint(url, "tcp://host:port")


def real_line(line: Endpoint | str) -> Endpoint | str:
    """Resolve the symbolic links of a serial port, so that a port has one name.

    A pseudo-terminal keeps the name of its link, because its number is soon reused.
    """
    if isinstance(line, Endpoint):
        return line
    real = os.path.realpath(line)
    return line if real.startswith(_PSEUDO_TERMINALS) else real


def kind_of_line(url: str) -> LineKind:
    """Return the kind of line of a valid link URL."""
    if url.startswith(_WEB):
        return "http"
    if url.startswith(_LISTEN):
        return "http-listen"
    return "serial" if url.startswith(_SERIAL) else "tcp"


def _bare_endpoint(url: str, wanted: str, *, default: int | None = None) -> Endpoint:
    parts, port = _split(url, wanted)
    port = default if port is None else port
    if not parts.hostname or not port or parts.path.strip("/" if default else "") or parts.query or parts.fragment:
        raise ValueError(f"must be {wanted}")
    return Endpoint(_one_spelling(parts.hostname), port)


def _one_spelling(host: str) -> str:
    """Normalise a host: an address to its shortest form, a name to lower case without a final dot."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


def _split(url: str, wanted: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
    except ValueError as error:  # its text may repeat a part of the URL, and with it a password
        raise ValueError(f"must be {wanted}") from error
    # some cameras take credentials within the path: rtsp://host/user=admin&password=… or user=admin_password=…
    last = parts.path.rpartition("/")[2]
    asked = parse_qsl(f"{parts.query}&{last}&{last.replace('_', '&')}", keep_blank_values=True)
    if "@" in parts.netloc or "{" in parts.netloc or any(name.lower() in _SECRET_NAMES for name, _ in asked):
        raise ValueError("must not hold credentials; name a secret in 'password'")
    try:
        port = parts.port
    except ValueError as error:
        raise ValueError("must have a port from 1 to 65535, if any") from error
    return parts, port


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
