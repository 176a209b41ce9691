"""The mark of a synchronised clock comes, is renewed and goes with the kernel's word."""

import os

import pytest

from gateway.app.clock_watch import look
from gateway.runtime import clock
from gateway.runtime.clock import MachineClock, SystemClock


class Kernel(MachineClock):
    """A machine whose kernel says what the test wants."""

    synchronised = True

    def is_synchronised(self):
        return self.synchronised


def test_the_mark_follows_the_kernel(tmp_path):
    kernel, mark = Kernel(), tmp_path / "synchronized"
    look(kernel, mark)
    os.utime(mark, (1, 1))
    look(kernel, mark)
    assert mark.stat().st_mtime > 1, "it is renewed, so that it counts again after the clock was set"
    kernel.synchronised = False
    look(kernel, mark)
    look(kernel, mark)
    assert not mark.exists()


@pytest.mark.parametrize("marked", [True, False])
def test_a_gateway_that_may_not_ask_the_kernel_goes_by_the_mark(tmp_path, monkeypatch, marked):
    monkeypatch.setattr(clock, "MARKS", (tmp_path / "never", tmp_path / "synchronized"))
    if marked:
        look(Kernel(), tmp_path / "synchronized")
    refused = Kernel()
    refused.synchronised = False
    assert SystemClock(refused).wall().trusted is marked
