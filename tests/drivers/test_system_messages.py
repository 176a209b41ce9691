"""The system's messages about a failed line, in words without numbers, addresses or class names."""

from __future__ import annotations

import errno
import socket
import ssl
import termios

import pytest
import serial

from drivers.system_messages import system_words


def caused(error, cause):
    error.__context__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ECONNREFUSED, "Connect call failed ('192.0.2.1', 502)"), "Connection refused"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "Connection reset by peer"),
        (serial.SerialException(2, "could not open port /dev/x: [Errno 2] …"), "No such file or directory"),
        (
            caused(serial.SerialException("Could not configure port: (25, 'x')"), termios.error(25, "x")),
            "Inappropriate ioctl for device",
        ),
        (socket.gaierror(-2, "Name or service not known"), "its name is not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1000)"), "it does not speak TLS"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "another program has it"),
        (TimeoutError(), "it took too long"),
        (ValueError("not tcp://host:port"), "not tcp://host:port"),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"), "nothing that can be understood"),
        (OSError(), "nothing that can be understood"),
    ],
)
def test_a_fault_is_told_in_words(error, words):
    assert system_words(error).startswith(words)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("UNSUPPORTED_PROTOCOL", "it speaks only TLS 1.0 or 1.1, which are too old"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "it takes none of the ciphers that are offered"),
        ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
        ("SOMETHING_ELSE", "it does not speak TLS as it should"),
    ],
)
def test_a_failed_handshake_tells_its_cause(reason, words):
    error = ssl.SSLError(1, "x")
    error.reason = reason
    assert system_words(error) == words
