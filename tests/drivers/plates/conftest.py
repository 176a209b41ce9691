import logging

import pytest
import structlog

PASSWORD = "correct-horse-battery"


@pytest.fixture
def said_aloud(caplog, capsys):
    """Everything that was logged or printed, as one text."""
    caplog.set_level(logging.DEBUG)

    def text():
        out = capsys.readouterr()
        return caplog.text + out.out + out.err

    yield text
    structlog.reset_defaults()
