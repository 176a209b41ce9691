"""The operating system's messages about a failed line, in words for people."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import termios

_TLS_WORDS = {
    **dict.fromkeys(
        ("UNSUPPORTED_PROTOCOL", "VERSION_TOO_LOW", "TLSV1_ALERT_PROTOCOL_VERSION"),
        "it speaks only TLS 1.0 or 1.1, which are too old",
    ),
    **dict.fromkeys(
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "NO_SHARED_CIPHER", "NO_CIPHERS_AVAILABLE"),
        "it takes none of the ciphers that are offered",
    ),
    **dict.fromkeys(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"), "it does not speak TLS"),
    **dict.fromkeys(
        ("DH_KEY_TOO_SMALL", "EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"), "its key is too weak for TLS"
    ),
    "UNEXPECTED_EOF_WHILE_READING": "it hung up",
}
"""Words for the reasons of OpenSSL that name a cause."""
_UNKNOWN = "nothing that can be understood comes from there"


def system_words(error: BaseException) -> str:
    """Return the system's message of an error, without numbers, addresses and phrases of libraries.

    The causes of the error are searched too: a library often wraps the system's error in its own, and asyncio joins
    several into one text.
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
            return _TLS_WORDS.get(getattr(error, "reason", None) or "", "it does not speak TLS as it should")
        case TimeoutError():
            return "it took too long"
        case OSError() | termios.error() if error.args and isinstance(error.args[0], int) and error.args[0] > 0:
            number = error.args[0]
            # A serial port is opened exclusively, and fails with EAGAIN when another program has it.
            return "another program has it" if number == errno.EAGAIN else os.strerror(number)
    return ""
