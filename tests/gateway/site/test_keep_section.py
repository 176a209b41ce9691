"""The time for which events are kept, by the site file."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.site.models import KeepSection


def test_what_is_unread_is_kept_for_longer_than_the_rest_not_for_less():
    assert KeepSection().most_days >= KeepSection().days
    assert KeepSection(days=10, most_days=10).days == 10
    with pytest.raises(ValidationError, match="'most_days' is 800, less than the 900 of 'days'"):
        KeepSection(days=900)


@pytest.mark.parametrize("wrong", [{"days": 0}, {"most_events": 9_999}, {"consumer_days": 0}, {"weeks": 3}])
def test_limits_of_nothing_and_unknown_keys_are_refused(wrong):
    with pytest.raises(ValidationError):
        KeepSection.model_validate(wrong)
