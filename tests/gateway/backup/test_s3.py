"""Backups in an S3-compatible store, well and with every fault of a store that can be made."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from certificates import write_pair
from s3_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Store

from gateway.backup.faults import PlaceFailed
from gateway.backup.s3 import S3Place
from gateway.domain.errors import ConfigError, StoreError
from gateway.site.backup_section import S3Address

NAME = "2026-01-01T120000.000.backup.tar.gz"
KEY = f"north yard/{NAME}"


@pytest.fixture
def store():
    with S3Store().served() as store:
        yield store


@pytest.fixture
def file(tmp_path) -> Path:
    file = tmp_path / "made"
    file.write_bytes(bytes(range(256)) * 12_000)
    return file


def place(store: S3Store, **other) -> S3Place:
    settings = {"bucket": BUCKET, "region": REGION, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY} | other
    return S3Place(
        S3Address(settings.pop("bucket"), "north yard"),
        **({"endpoint": store.endpoint, "ca_file": None, "attempts": 2, "silent_seconds": 30.0} | settings),
    )


def test_a_backup_goes_there_and_comes_back(store, file, tmp_path):
    far = place(store)
    far.put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}
    assert far.names() == [NAME]
    far.get(NAME, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    with pytest.raises(ConfigError, match="is there already"):
        far.put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}
    far.delete(NAME)
    assert far.names() == []
    with pytest.raises(ConfigError, match="has no such backup"):
        far.get(NAME, tmp_path / "none")


def test_a_long_list_is_read_to_its_end_and_other_objects_are_left_out(store):
    names = [f"2026-01-{day:02}T120000.000.backup.tar.gz" for day in range(1, 29)]
    store.objects = {f"north yard/{name}": b"" for name in names}
    store.objects |= {NAME: b"", f"north yard/older/{NAME}": b"", "north yard/notes & <more>.txt": b""}
    store.page = 5
    assert place(store).names() == names


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"access_key": "AKIDSTRANGER"}, r"does not know the access key: check \[backup\] access_key"),
        ({"secret_key": "another"}, r"refused the signature: check \[backup\] secret_key"),
        ({"bucket": "yard-backup"}, r"has no such bucket: check \[backup\] target"),
        ({"region": "us-east-1"}, r"is in another region: check \[backup\] region"),
    ],
)
def test_a_wrong_setting_is_named(store, file, wrong, told):
    far = place(store, **wrong)
    with pytest.raises(ConfigError, match=told):
        far.put(file, NAME)
    with pytest.raises(ConfigError, match=told):
        far.names()
    assert not store.objects


def test_a_region_that_the_store_names_is_taken(store, file):
    store.names_region = True
    place(store, region="us-east-1").put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}


def test_a_key_without_the_right_to_write_is_told(store, file):
    store.denied = {"PUT"}
    with pytest.raises(ConfigError, match="does not permit this: the key needs to list, read, write and delete"):
        place(store).put(file, NAME)


@pytest.mark.parametrize("ahead_seconds", [-3600, 3600])
def test_a_clock_that_is_wrong_is_told(store, file, ahead_seconds):
    store.ahead_seconds = ahead_seconds
    with pytest.raises(ConfigError, match="has another time than this box"):
        place(store).put(file, NAME)
    assert not store.objects


def test_a_store_that_is_busy_for_a_moment_is_asked_again(store, file):
    far = place(store)
    store.busy = 1
    far.put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}


def test_a_store_that_stays_busy_is_told(store, file):
    store.busy = 100
    with pytest.raises(PlaceFailed, match="the S3 store is busy: try again later"):
        place(store).put(file, NAME)


def test_an_upload_that_is_cut_is_made_again(store, file):
    store.cut_uploads = 1
    place(store).put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}


def test_an_upload_that_is_cut_each_time_is_told_and_leaves_nothing(store, file):
    store.cut_uploads = 100
    with pytest.raises(PlaceFailed, match="the line to the S3 store broke"):
        place(store).put(file, NAME)
    assert not store.objects


def test_a_body_that_is_altered_at_rest_is_found_and_does_not_stay(store, file):
    store.alter = lambda body: body[:1000] + bytes([body[1000] ^ 1]) + body[1001:]
    with pytest.raises(PlaceFailed, match="gives other bytes than were sent: check its disks"):
        place(store).put(file, NAME)
    assert not store.objects


def test_a_body_that_is_cut_short_at_rest_is_found_and_does_not_stay(store, file):
    store.alter = lambda body: body[:-1]
    with pytest.raises(PlaceFailed, match="gives other bytes than were sent"):
        place(store).put(file, NAME)
    assert not store.objects


def test_a_download_that_is_cut_is_told(store, file, tmp_path):
    far = place(store)
    far.put(file, NAME)
    store.cut_downloads = 100
    with pytest.raises(PlaceFailed, match="the line to the S3 store broke"):
        far.get(NAME, tmp_path / "back")
    assert store.objects == {KEY: file.read_bytes()}


def test_a_file_here_that_cannot_be_written_is_told(store, file, tmp_path):
    far = place(store)
    far.put(file, NAME)
    with pytest.raises(StoreError, match="this machine cannot read or write the backup"):
        far.get(NAME, tmp_path)  # a folder


def test_a_store_that_is_gone_is_told(file):
    with S3Store().served() as store:
        far = place(store)
    with pytest.raises(PlaceFailed, match="the line to the S3 store broke"):
        far.names()


def test_only_a_certificate_of_a_trusted_authority_is_taken(file, tmp_path):
    pair = write_pair(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with S3Store().served(context) as store:
        place(store, ca_file=str(pair.certificate)).put(file, NAME)
        assert store.objects == {KEY: file.read_bytes()}
        with pytest.raises(ConfigError, match=r"certificate.*\[backup\] ca_file"):
            place(store).names()


def test_settings_of_the_surroundings_play_no_part(store, file, monkeypatch, tmp_path):
    own = tmp_path / "config"
    own.write_text(
        "[default]\nregion = us-west-2\ns3 =\n  addressing_style = virtual\n[profile x]\nregion = us-west-1\n"
    )
    for name, value in {
        "AWS_CONFIG_FILE": str(own),
        "AWS_PROFILE": "nobody",
        "AWS_ACCESS_KEY_ID": "AKIDSTRANGER",
        "AWS_SESSION_TOKEN": "stranger",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_CA_BUNDLE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    place(store).put(file, NAME)
    assert store.objects == {KEY: file.read_bytes()}
