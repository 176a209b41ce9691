"""The places of secrets, and one clear sentence when they are not there."""

import os

import pytest

from gateway.domain.errors import ConfigError
from gateway.site import Secrets


def put(folder, name, data, mode=0o600):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_bytes(data)
    file.chmod(mode)
    return file


def test_credentials_come_before_the_environment_and_that_before_the_file(tmp_path):
    put(tmp_path / "secrets", "central-password", b"from file\n")
    put(tmp_path / "credentials", "central-password", b"from systemd\n")
    environ = {"EDGE_GATEWAY_SECRET_CENTRAL_PASSWORD": "from environment"}
    folder = tmp_path / "secrets"
    found = [Secrets(folder=folder, environ={}), Secrets(folder=folder, environ=dict(environ))]
    environ["CREDENTIALS_DIRECTORY"] = str(tmp_path / "credentials")
    found.append(Secrets(folder=folder, environ=environ))
    assert [one.get("central-password") for one in found] == ["from file", "from environment", "from systemd"]
    assert [str(one.how_changed("central-password")) for one in found] == [
        f"the file {folder / 'central-password'}: change that, then run edge-gateway reload",
        "the environment variable EDGE_GATEWAY_SECRET_CENTRAL_PASSWORD: change that, then restart the gateway",
        "the credential central-password of systemd: change that, then restart the gateway",
    ]


def test_only_a_secret_that_may_be_empty_is_taken_without_a_text(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_CAM": ""})
    assert secrets.get("cam", may_be_empty=True) == ""
    with pytest.raises(ConfigError, match="is empty"):
        secrets.get("cam")


@pytest.mark.parametrize(
    ("data", "secret"), [(b"a b", "a b"), (b"ab\r\n", "ab"), (b"ab\n\n", "ab\n"), ("é".encode(), "é")]
)
def test_only_the_line_ending_is_cut(data, secret, tmp_path):
    put(tmp_path, "x", data)
    assert Secrets(folder=tmp_path, environ={}).get("x") == secret


def test_whoever_hides_secrets_hears_of_them(tmp_path):
    put(tmp_path, "x", b"hunter2\n")
    heard = []
    Secrets(folder=tmp_path, environ={}, report=heard.append).get("x")
    assert heard == ["hunter2"]


@pytest.mark.parametrize(
    ("data", "mode", "sentence"),
    [
        (b"hunter2", 0o640, "may be read by others; make it mode 0600"),
        (b"hunter2", 0o604, "may be read by others"),
        (b"\n", 0o600, "is empty"),
        (b"hunter2\xff", 0o600, "is not UTF-8 text"),
        (b"x" * 65_536, 0o600, "is larger than"),
    ],
)
def test_a_bad_file_is_one_sentence_without_its_text(data, mode, sentence, tmp_path):
    put(tmp_path, "x", data, mode)
    with pytest.raises(ConfigError, match=sentence) as caught:
        Secrets(folder=tmp_path, environ={}).get("x")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("data", "sentence"), [(b"hunter2\xff", "is not UTF-8 text"), ("é".encode() * 32_768, "is larger than")]
)
def test_a_bad_variable_is_one_sentence_without_its_text(data, sentence, tmp_path):
    environ = {"EDGE_GATEWAY_SECRET_X": os.fsdecode(data)}
    with pytest.raises(ConfigError, match=f"EDGE_GATEWAY_SECRET_X {sentence}") as caught:
        Secrets(folder=tmp_path, environ=environ).get("x")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_secret_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(ConfigError, match=r"no secret 'x.y': .* EDGE_GATEWAY_SECRET_X_Y, no file .*/x\.y$"):
        Secrets(folder=tmp_path, environ={}).get("x.y")


def test_a_folder_in_its_place_is_named(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        Secrets(folder=tmp_path, environ={}).get("x")


def test_a_closed_folder_is_one_sentence(tmp_path):
    folder = tmp_path / "secrets"
    put(folder, "x", b"hunter2")
    folder.chmod(0o000)
    try:
        if os.access(folder, os.X_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            Secrets(folder=folder, environ={}).get("x")
    finally:
        folder.chmod(0o700)
