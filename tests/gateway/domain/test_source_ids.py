from __future__ import annotations

import pytest

from gateway.domain.writes import site_id_in, source_id

LAST_BOX, LAST_ID = 2**20 - 1, 2**32 - 1


@pytest.mark.parametrize("box", [0, 1, 77, LAST_BOX])
@pytest.mark.parametrize("site_id", [1, 2_000_000_000, LAST_ID])
def test_the_site_s_id_is_found_in_a_source_id_that_every_json_reader_takes(box, site_id):
    made = source_id(box, site_id)
    assert site_id_in(made) == site_id
    assert made < 2**53


def test_two_boxes_never_make_the_same():
    assert len({source_id(box, number) for box in range(1, 60) for number in range(1, 60)}) == 59 * 59


def test_what_was_made_before_boxes_had_numbers_keeps_the_site_s_id():
    assert source_id(0, 2_000_000_007) == 2_000_000_007
