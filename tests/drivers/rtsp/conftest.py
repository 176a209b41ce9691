from __future__ import annotations

from fractions import Fraction

import pytest

from drivers.rtsp.server import testcard


@pytest.fixture
def encoded():
    """Frames of a test picture, made as fast as they can be."""

    def make(seconds: float, *, width: int = 320, height: int = 180, rate: int = 10) -> list:
        card = testcard.TestCard(
            name="T", time_code=lambda: "0", width=width, height=height, rate=Fraction(rate), monotonic=lambda: 0.0
        )
        return [frame for _ in range(int(seconds * rate)) for frame in card.encode()]

    return make
