"""TLS towards cameras. They sign their certificates themselves, and older ones know none of today's key exchanges."""

from __future__ import annotations

import ssl

_OLDER_CIPHERS = "ALL:!aNULL:!eNULL:@SECLEVEL=0"
_LEGACY_SERVER_CONNECT = 0x4
"""OpenSSL's option for servers without secure renegotiation (RFC 5746); Python names it from 3.12 on."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


def camera_context(*, older: bool) -> ssl.SSLContext:
    """Return a context that trusts every certificate.

    `older`: for a camera that refuses today's TLS; TLS 1.2 alone, also with RSA key exchange, CBC suites, short keys.
    """
    if older:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_OLDER_CIPHERS)
        context.options |= _LEGACY_SERVER_CONNECT
    else:
        context = ssl.create_default_context()
        context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_NONE
    return context


def may_be_older(error: OSError) -> bool:
    """Return whether a handshake that failed so may succeed with the context for older cameras."""
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", None) not in _NO_TLS
    return isinstance(error, ConnectionError)
