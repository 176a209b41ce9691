"""A token opens one view, for a while, and only if it is ours."""

from __future__ import annotations

import base64

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.web.auth.callers import Caller, SessionCarrier
from gateway.web.auth.view_tokens import LIFE_SECONDS, TokenView, ViewTokens
from gateway.web.operation import ViewKind

NOW = [1000.0]
TOKENS = ViewTokens(monotonic=lambda: NOW[0])
LIVE = TokenView(ViewKind.LIVE, 201)
GUARD = Caller(username="guard", token="the-session", carrier=SessionCarrier.SESSION_ID)


def test_a_token_is_of_one_camera_and_one_life():
    tokens = ViewTokens(monotonic=lambda: now)
    now = 50.0
    token = tokens.issue(LIVE, GUARD).text
    assert tokens.issued_to(token, LIVE) == GUARD
    assert tokens.issued_to(token, TokenView(ViewKind.LIVE, 202)) is None
    assert tokens.issued_to(token, TokenView(ViewKind.WATCH, 201)) is None
    assert ViewTokens(monotonic=lambda: now).issued_to(token, LIVE) is None
    now += LIFE_SECONDS[ViewKind.LIVE]
    assert tokens.issued_to(token, LIVE) is None


def test_a_token_does_not_hold_the_session():
    token = TOKENS.issue(LIVE, GUARD).text
    assert GUARD.token not in token
    assert GUARD.token.encode() not in base64.urlsafe_b64decode(token + "==")


@given(st.text(max_size=120))
def test_rubbish_admits_nobody(text):
    assert TOKENS.issued_to(text, LIVE) is None


@given(st.integers(0, 54), st.integers(1, 255))
@example(48, 112)  # "_" became "/", which the usual alphabet has in its place
def test_a_changed_token_admits_nobody(place, change):
    token = TOKENS.issue(LIVE, GUARD).text
    spoilt = bytearray(token.encode())
    spoilt[place % len(spoilt)] ^= change
    changed = spoilt.decode("latin-1")
    assert changed == token or TOKENS.issued_to(changed, LIVE) is None
