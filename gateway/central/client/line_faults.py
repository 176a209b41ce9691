"""Messages for faults of the line to central, for the person who repairs it. Pure."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import aiohttp

_BROKE = "the connection broke before an answer was there"
_WORDS = {
    errno.ECONNREFUSED: "nothing answers at {host}: the connection was refused",
    errno.EHOSTUNREACH: "there is no way to {host} over the network",
    errno.ENETUNREACH: "there is no way to {host} over the network",
    errno.ETIMEDOUT: "{host} does not acknowledge what is sent",
    errno.ECONNRESET: _BROKE,
    errno.EPIPE: _BROKE,
}


def line_words(error: BaseException, host: str) -> str:
    """Describe a fault in one sentence for people. `host`: central's name or address."""
    words = _BROKE
    match error:
        case TimeoutError():
            words = f"{host} does not answer in time"
        case aiohttp.ClientConnectorCertificateError():
            words = _certificate(error.certificate_error, host)
        case aiohttp.ClientConnectorError():
            words = _system(error.os_error, host)
        case aiohttp.ClientPayloadError():
            words = "the answer was cut off in the middle"
        case aiohttp.ClientResponseError():
            words = f"what answers at {host} does not speak HTTP as it should"
        case OSError() if error.errno:
            words = _system(error, host)
        case aiohttp.ClientError() if error.__cause__ is not None:
            words = line_words(error.__cause__, host)
    return words


def _system(error: OSError, host: str) -> str:
    match error:
        case socket.gaierror():
            return f"the name {host} is not known: check its spelling and this machine's DNS"
        case ssl.SSLCertVerificationError():
            return _certificate(error, host)
        case ssl.SSLError():
            return f"{host} does not speak TLS as it should"
    number = error.errno or 0
    if number in _WORDS:
        return _WORDS[number].format(host=host)
    return f"{host} cannot be reached: {os.strerror(number)}" if number > 0 else f"{host} cannot be reached"


def _certificate(cause: BaseException, host: str) -> str:
    said = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
    return f"{host} does not prove that it is central: {said or 'its certificate does not fit its name'}"
