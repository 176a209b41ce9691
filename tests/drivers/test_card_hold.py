"""Cards and tags that stay at their reader: reported once, and again as held."""

from __future__ import annotations

from held_memory import held_bytes

from drivers.card_hold import CardHold
from drivers.contract import CardPresented


def card(text="A", *, at=0.0):
    return CardPresented(201, 0, 0, text, at)


def reported(hold, readings):
    return [(report.at, report.held) for at in readings if (report := hold.of(card(at=at))) is not None]


def test_a_card_that_stays_is_presented_once_and_then_reported_as_held():
    assert reported(CardHold(seconds=3), [n / 10 for n in range(100)]) == [
        (0.0, False),
        (3.0, True),
        (6.0, True),
        (9.0, True),
    ]


def test_a_card_that_was_away_is_presented_anew():
    assert reported(CardHold(seconds=3), [0.0, 2.0, 5.0, 9.0]) == [(0.0, False), (5.0, False), (9.0, False)]


def test_a_card_shown_again_and_again_is_one_card():
    assert reported(CardHold(seconds=3), [0.0, 2.0, 4.0, 6.0]) == [(0.0, False), (4.0, True)]


def test_cards_do_not_hold_back_each_other():
    hold = CardHold(seconds=3)
    assert [hold.of(card(text)) is not None for text in "ABAB"] == [True, True, False, False]


def test_a_flood_of_tags_takes_no_memory():
    hold = CardHold(seconds=3600)
    held = []
    for number in range(5_000):
        assert hold.of(card(str(number))) is not None
        if number % 500 == 499:
            held.append(held_bytes(hold))
    assert max(held[2:]) < 1.2 * held[1]
