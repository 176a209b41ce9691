"""Messages for faults of the line to central, for the person who repairs it. Pure."""

from __future__ import annotations

import ssl

import aiohttp

from gateway.runtime.connection_faults import BROKE, connection_words


def line_words(error: BaseException, host: str) -> str:
    """Describe a fault in one sentence for people. `host`: central's name or address."""
    words = BROKE
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
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error, host)
    return connection_words(error, host)


def _certificate(cause: BaseException, host: str) -> str:
    said = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else ""
    return f"{host} does not prove that it is central: {said or 'its certificate does not fit its name'}"
