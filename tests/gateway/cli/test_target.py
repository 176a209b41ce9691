"""`--url`: which gateway a command asks."""

from __future__ import annotations

import pytest

from gateway.cli import main


@pytest.mark.parametrize(
    "url",
    ["nonsense", "ftp://ana@host", "http://host:8480", "https://ana@[::1", "https://ana@host:99999", "https://@host"],
)
def test_an_address_that_is_none_is_wrong_use_and_the_example_can_be_read(url, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["edge-gateway", "status", "--url", url])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "such as technician@192.168.1.20:8443" in said
    assert "***" not in said
