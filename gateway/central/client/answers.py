"""Judgement of central's answers by status and body together, as the interface requires.

The parser of their bodies is bounded, and lenient towards single values that cannot be kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from reprlib import Repr

from pydantic import JsonValue
from pydantic_core import from_json

from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import JsonObject
from gateway.runtime.redaction import HIDDEN

__all__ = [
    "AnswerTooLarge",
    "CentralBusy",
    "CentralDenied",
    "CentralFailed",
    "CentralSlow",
    "JsonObject",
    "NeedsSignIn",
    "Verdict",
    "judge",
    "secrets_sent",
]

_NEEDS_SESSION = "authentication required"
_DENIAL_WORDS = ("permission", "forbidden", "access denied", "not authorized", "unauthorized")
_SHOWN_ERROR = 300
_READ_ERROR = 10 * _SHOWN_ERROR
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _SHOWN_ERROR
_TOO_MANY_REQUESTS = 429
_TOO_EARLY_OR_LATE = frozenset({408, 425})
_BETWEEN = frozenset({502, 503, 504})
_PROBE = "GET /"
_BARE_RECORDS = frozenset({"POST /v1/access", "POST /v1/event"})
"""Operations whose answer is the record itself, according to the interface. All other answers have `success`."""

DEEPEST = 100
"""Deepest nesting of lists and objects that is accepted."""

_MOST_MARKS = 40_000
"""Most commas and brackets of a body, so that a body of the largest size is parsed in some milliseconds."""
_MOST_BACKSLASHES = 200_000
_MOST_MENDED_BYTES = 512 * 1024
_MOST_MENDED_MARKS = 20_000
_LONGEST_NUMBER = 1000
_SHOWN_NUMBER = 40
_INFINITE = float("inf")
_NO_OBJECT = "something that is not a JSON object"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_MENDABLE = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity")


class CentralFailed(CentralUnavailable):
    """Error for an answer in which central says that it failed. Other requests may still succeed."""


class CentralBusy(CentralFailed):
    """Error when central asks for fewer requests of an operation."""


class AnswerTooLarge(CentralFailed):
    """Error for an answer that is larger, or has more in it, than is ever read."""


class CentralSlow(CentralUnavailable):
    """Error for an open connection over which no answer came in time."""


class CentralDenied(CentralRefused):
    """Error for a refused account: wrong credentials, no session, or a missing permission.

    It says nothing about the record that was sent, which is sent again once the account works.
    """


class SignInRefused(CentralDenied):
    """Error for an account that may not sign in."""


@dataclass(frozen=True, slots=True)
class NeedsSignIn:
    """Verdict that the session is missing or has ended. `status`: the answer's HTTP status."""

    status: int


Verdict = JsonObject | NeedsSignIn | CentralRefused | CentralUnavailable


def secrets_sent(body: JsonObject | None, token: str | None) -> tuple[str, ...]:
    """Return the secrets of a request, which central's errors may repeat: session, password and code."""
    sent = (token, *((body or {}).get(name) for name in ("password", "token")))
    return tuple(secret for secret in sent if isinstance(secret, str) and secret)


class Unreadable(ValueError):
    """Error for a body that is not a JSON object; the text says why."""


class Unkept(Unreadable):
    """Error for JSON that is too large or too deep to keep."""


def read_object(raw: bytes) -> JsonObject:
    """Parse a JSON object. Raises Unreadable."""
    if not raw.lstrip(b" \t\r\n").startswith(b"{"):
        raise Unreadable(_NO_OBJECT)
    marks = sum(map(raw.count, (b",", b"[", b"{")))
    if marks > _MOST_MARKS or raw.count(b"\\") > _MOST_BACKSLASHES:
        raise Unkept("more values than are ever read")
    found: JsonValue = None
    with suppress(ValueError):
        found = from_json(raw, allow_inf_nan=False)
    if isinstance(found, dict) and _is_finite(found):
        return found
    if marks > _MOST_MENDED_MARKS or len(raw) > _MOST_MENDED_BYTES:
        if found is None and not _MENDABLE.search(raw):
            raise Unreadable(_NO_OBJECT)
        raise Unkept("a value that cannot be kept, among more values than are read then")
    return _mended(raw)


def _is_finite(found: JsonObject) -> bool:
    """Return whether all numbers are finite. Raises Unkept where lists and objects are too deep."""
    depth, is_finite = 0, True
    level: list[JsonObject | list[JsonValue]] = [found]
    while level:
        if (depth := depth + 1) > DEEPEST:
            raise Unkept(f"more than {DEEPEST} lists and objects within each other")
        inner: list[JsonValue] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item
        kinds = set(map(type, inner))
        if float in kinds:
            is_finite = is_finite and _INFINITE not in inner and -_INFINITE not in inner
        level = [item for item in inner if isinstance(item, dict | list)] if kinds & {dict, list} else []
    return is_finite


def _mended(raw: bytes) -> JsonObject:
    """Parse a body with values that cannot be kept: NaN and infinite numbers become texts, halves of letters U+FFFD.

    So one such value does not cost the rest of a list. Raises Unreadable.
    """
    try:
        text = raw.decode()
        found: JsonValue = json.loads(text, parse_constant=_as_text, parse_float=_number)
        if _HALF.search(text):  # pairs are whole letters by now: UTF-8 cannot hold what is left
            halves = json.dumps(found, ensure_ascii=False).encode("utf-16", "surrogatepass")
            found = from_json(halves.decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(_NO_OBJECT) from error
    if not isinstance(found, dict):
        raise Unreadable(_NO_OBJECT)
    _is_finite(found)
    return found


def _as_text(text: str) -> str:
    return text[:_SHOWN_NUMBER]


def _number(text: str) -> JsonValue:
    value = float(text) if len(text) <= _LONGEST_NUMBER else _INFINITE
    return _as_text(text) if value in (_INFINITE, -_INFINITE) else value


def judge(operation: str, status: int, body: bytes, *, hide: Iterable[str] = ()) -> Verdict:
    """Judge an answer to `operation` ("POST /v1/device/list"): return its object, or the error to raise.

    `hide`: secrets that are masked in an error.
    """
    try:
        answer = read_object(body)
    except Unkept as why:  # central does answer; only this answer is too large or too deep
        return AnswerTooLarge(f"answered {status} with {why}", operation=operation)
    except Unreadable as why:
        return CentralUnavailable(f"answered {status} with {why}", operation=operation)
    error = _error_text(answer, hide)
    if status == 401 or (_NEEDS_SESSION in error.casefold() and not _succeeded(operation, status, answer)):
        return NeedsSignIn(status)
    if _succeeded(operation, status, answer):
        return answer
    if 200 <= status < 300 and not error and answer.get("success") is not False:
        return _unsaid(operation, status)
    return _failure(operation, status, error)


def _unsaid(operation: str, status: int) -> CentralUnavailable:
    """Return the error of an answer that does not say whether the operation was carried out."""
    kind = CentralUnavailable if operation == _PROBE else CentralFailed
    why = f"answered {status} without saying whether it succeeded ('success' is missing or no boolean)"
    return kind(why, operation=operation)


def _failure(operation: str, status: int, error: str) -> CentralRefused | CentralUnavailable:
    why = error or f"answered {status} without a reason"
    if status in _BETWEEN or 300 <= status < 400:
        return CentralUnavailable(f"answered {status}", operation=operation)
    if status == 403 or (status >= 500 and any(word in error.casefold() for word in _DENIAL_WORDS)):
        return CentralDenied(f"{operation}: {why}", status=status, said=error, operation=operation)
    if status == _TOO_MANY_REQUESTS:
        return CentralBusy(why, operation=operation)
    if status >= 500 or status in _TOO_EARLY_OR_LATE:
        return CentralFailed(why, operation=operation)
    return CentralRefused(f"{operation}: {why}", status=status, said=error, operation=operation)


def _succeeded(operation: str, status: int, answer: JsonObject) -> bool:
    """Return whether the status is 2xx and the body says success, or is the record that was asked for."""
    if not 200 <= status < 300 or answer.get("error"):
        return False
    if "success" not in answer:
        return operation in _BARE_RECORDS and "id" in answer
    return answer["success"] is True


def _error_text(answer: JsonObject, hide: Iterable[str]) -> str:
    """Return the body's error as one line of bounded length, without these secrets."""
    error = answer.get("error")
    text = error if isinstance(error, str) else "" if error is None else _SHORT.repr(error)
    for secret in hide:  # before the text is cut, which could leave a part of one
        text = text.replace(secret, HIDDEN)
    return " ".join(text[:_READ_ERROR].split())[:_SHOWN_ERROR]
