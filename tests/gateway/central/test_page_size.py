"""The number of records in one request: fewer on failure, more again later."""

from __future__ import annotations

from gateway.central.client.lists import MODEST, PageSize


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


def test_what_central_caps_is_tried_again_later_and_later():
    size = PageSize()
    rests = []
    for _ in range(6):
        size.came(300, 5000)
        assert size.limit == 300
        rests.append(walks_until_more(size))
        assert size.limit == 500
    assert rests == [4, 8, 16, 32, 64, 64]
    size.refused()
    assert size.limit == 250, "what fails is not central's own limit"
    walks_until_more(size)
    assert size.limit == 500


def test_one_page_cut_short_does_not_narrow_all_lists_to_come():
    size = PageSize()
    size.came(27, 300)
    walks_until_more(size)
    size.came(300, 300)
    assert walks_until_more(size) == 1000, "the largest size is kept"
    assert size.limit == 500


def test_a_size_that_central_cut_short_once_is_not_the_last_one_tried():
    size = PageSize()
    size.refused()
    size.came(100, 5000)
    walks_until_more(size)
    assert size.limit == 250
    walks_until_more(size)
    assert size.limit == 500
