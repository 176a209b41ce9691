"""The operating system's messages about a line that failed, in words alone."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import termios

_UNKNOWN = "nothing that can be understood comes from there"


def system_words(error: BaseException) -> str:
    """Return the system's message of an error, without its number, its address or a library's own phrases.

    Libraries often keep the system's error only as the cause of theirs; asyncio joins several into one text.
    """
    cause: BaseException | None = error
    while cause is not None:
        if words := _words(cause):
            return words
        cause = cause.__cause__ or cause.__context__
    text = str(error)
    return text if isinstance(error, ValueError | EOFError) and text else _UNKNOWN


def _words(error: BaseException) -> str:
    match error:
        case socket.gaierror():
            return "its name is not known"
        case ssl.SSLCertVerificationError():
            return "its certificate is not trusted"
        case ssl.SSLError():
            return "it does not speak TLS as it should"
        case TimeoutError():
            return "it took too long"
        case OSError() | termios.error() if error.args and isinstance(error.args[0], int) and error.args[0] > 0:
            number = error.args[0]
            # A serial port is opened exclusively.
            return "another program has it" if number == errno.EAGAIN else os.strerror(number)
    return ""
