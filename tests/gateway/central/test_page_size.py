"""How many records are asked for at once: fewer on failure, more again later."""

from __future__ import annotations

from gateway.central.client.page_size import MODEST, PageSize


def walks_until_more(size):
    limit, walks = size.limit, 0
    while size.limit == limit and walks < 1000:
        size.walked()
        walks += 1
    return walks


def test_sizes_go_down_to_the_least_and_up_again():
    size = PageSize(MODEST)
    assert size.refused()
    assert size.refused()
    assert size.limit == 25
    assert not size.refused()
    walks_until_more(size)
    assert size.limit == 50
    walks_until_more(size)
    assert size.limit == 100
    assert walks_until_more(size) == 1000, "there is no larger one"


def test_what_fails_on_trial_has_its_next_trial_later():
    size = PageSize(MODEST)
    size.refused()
    rests = []
    for _ in range(8):
        rests.append(walks_until_more(size))
        size.refused()
    assert rests == [4, 8, 16, 32, 64, 64, 64, 64]


def test_what_central_caps_is_not_tried():
    size = PageSize()
    size.came(300, 5000)
    assert size.limit == 300
    assert walks_until_more(size) == 1000
    size.refused()
    assert size.limit == 250
    walks_until_more(size)
    assert size.limit == 300
