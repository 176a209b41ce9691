"""A secret in the making survives what may come between its making and its use."""

import pytest

from gateway.domain.errors import ConfigError
from gateway.site import NewSecret, Secrets


def refuse_to_make():
    pytest.fail("a second secret was made")


def test_it_is_found_once_it_is_kept_and_only_its_owner_reads_it(tmp_path):
    folder = tmp_path / "secrets"
    secret = NewSecret(folder=folder, name="reader-key")
    assert secret.begin(lambda: "first") == "first"
    with pytest.raises(ConfigError):
        Secrets(folder=folder, environ={}).get("reader-key")
    secret.keep()
    assert Secrets(folder=folder, environ={}).get("reader-key") == "first"
    assert [path.name for path in folder.iterdir()] == ["reader-key"]
    assert secret.place.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_was_begun_is_taken_up_again(tmp_path):
    NewSecret(folder=tmp_path, name="reader-key").begin(lambda: "first")
    secret = NewSecret(folder=tmp_path, name="reader-key")
    assert secret.begin(refuse_to_make) == "first"


def test_what_was_cut_off_is_made_anew(tmp_path):
    (tmp_path / ".reader-key.pending").write_text("fir")
    assert NewSecret(folder=tmp_path, name="reader-key").begin(lambda: "second") == "second"


def test_one_that_is_there_is_never_written_over(tmp_path):
    secret = NewSecret(folder=tmp_path, name="reader-key")
    secret.begin(lambda: "second")
    secret.place.write_text("first")
    with pytest.raises(ConfigError, match="cannot be made"):
        secret.keep()
    with pytest.raises(ConfigError, match="exists already"):
        NewSecret(folder=tmp_path, name="reader-key").begin(refuse_to_make)
    assert secret.place.read_text() == "first"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "secrets").write_text("no folder")
    with pytest.raises(ConfigError, match="reader-key"):
        NewSecret(folder=tmp_path / "secrets", name="reader-key").begin(lambda: "x")
