"""A loss is told once; why it lasts, whenever that changes."""

import pytest

from drivers.contract import DeviceFault, DeviceLost, LinkError, LossExplained, ProtocolViolation, TooLate
from drivers.losses import Loss, is_answering


def test_the_newest_reason_is_told_and_what_is_there_apart_from_what_is_not():
    loss = Loss(device_id=7)
    assert not loss.is_reported
    assert loss.lost("hung up: [Errno 5]", at=1.0) == (DeviceLost(7, "hung up: [Errno 5]", 1.0),)
    assert loss.is_reported
    assert loss.lost("hung up: [Errno 5]", at=9.0) == ()
    key = "answers, but has another key"
    assert loss.lost(key, at=10.0, answers=True) == (LossExplained(7, key, 10.0, answers=True),)
    loss.over()
    assert loss.lost(key, at=20.0, answers=True) == (DeviceLost(7, key, 20.0, answers=True),)


def test_numbers_alone_and_quick_changes_are_no_news():
    loss = Loss(device_id=7)
    loss.lost("did not answer within 300 ms", at=1.0)
    assert loss.lost("did not answer within 51 ms", at=5.0) == ()
    assert loss.lost("the line is down", at=5.0)
    assert loss.lost("did not answer within 300 ms", at=5.5) == ()
    assert loss.lost("did not answer within 300 ms", at=6.5)


def test_who_says_each_reason_but_once_has_none_dropped():
    loss = Loss(device_id=7, apart=0.0)
    loss.lost("hung up", at=1.0)
    assert loss.lost("refused", at=1.1) == (LossExplained(7, "refused", 1.1),)


@pytest.mark.parametrize(
    ("error", "answers"), [(LinkError, False), (TooLate, True), (DeviceFault, True), (ProtocolViolation, True)]
)
def test_who_refuses_is_there(error, answers):
    assert is_answering(error("x")) is answers
