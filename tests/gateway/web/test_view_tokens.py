"""A token admits to its camera, for a while, and only if it is ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.web.view_tokens import LIFE_SECONDS, ViewTokens

NOW = [1000.0]
TOKENS = ViewTokens(monotonic=lambda: NOW[0])


def test_a_token_is_of_one_camera_and_one_life():
    tokens = ViewTokens(monotonic=lambda: now)
    now = 50.0
    token = tokens.issue(201)
    assert tokens.admits(token, 201)
    assert not tokens.admits(token, 202)
    assert not ViewTokens(monotonic=lambda: now).admits(token, 201)
    now += LIFE_SECONDS
    assert not tokens.admits(token, 201)


@given(st.text(max_size=120))
def test_rubbish_admits_nobody(text):
    assert not TOKENS.admits(text, 201)


@given(st.integers(0, 60), st.integers(1, 255))
def test_a_changed_token_admits_nobody(place, change):
    token = TOKENS.issue(201)
    spoilt = bytearray(token.encode())
    spoilt[place % len(spoilt)] ^= change
    changed = spoilt.decode("latin-1")
    assert changed == token or not TOKENS.admits(changed, 201)
