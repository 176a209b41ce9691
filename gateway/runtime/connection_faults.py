"""Messages for connections that fail, for the person who repairs the line. Pure."""

from __future__ import annotations

import errno
import os
import socket
import ssl

BROKE = "the connection broke before an answer was there"
_WORDS = {
    errno.ECONNREFUSED: "nothing answers at {host}: the connection was refused",
    errno.EHOSTUNREACH: "there is no way to {host} over the network",
    errno.ENETUNREACH: "there is no way to {host} over the network",
    errno.ETIMEDOUT: "{host} does not acknowledge what is sent",
    errno.ECONNRESET: BROKE,
    errno.EPIPE: BROKE,
}


def connection_words(error: OSError, host: str) -> str:
    """Describe why a connection failed in one sentence. `host`: the far end's name or address."""
    match error:
        case socket.gaierror():
            return f"the name {host} is not known: check its spelling and this machine's DNS"
        case ssl.SSLError():
            return f"{host} does not speak TLS as it should"
    number = error.errno or 0
    if number in _WORDS:
        return _WORDS[number].format(host=host)
    return f"{host} cannot be reached: {os.strerror(number)}" if number > 0 else f"{host} cannot be reached"
