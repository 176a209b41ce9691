"""`edge-gateway backup` and `restore` with an S3-compatible store that the site file names."""

from __future__ import annotations

import pytest
from running_gateway import SITE, typed
from running_house import at_work
from s3_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Store

PHRASE = {"EDGE_GATEWAY_BACKUP_PASSPHRASE": "yard works in the north"}
PLACE = f"s3://{BUCKET}/north-yard"
SECTION = f"""
[backup]
target = "{PLACE}"
keep = 1
region = "{REGION}"
access_key = "store-key"
secret_key = "store-secret"
"""


@pytest.fixture(autouse=True)
def _cheap_passphrase(monkeypatch):
    """Derive keys at little cost: a third of a second for each backup is meant for those who guess."""
    monkeypatch.setattr("gateway.backup.archive.SCRYPT_COST", 2**6)


@pytest.fixture
def store():
    with S3Store().served() as store:
        yield store


@pytest.fixture
async def box(tmp_path, store):
    """A box that has run, with a store for its backups."""
    folder = tmp_path / "box"
    (folder / "secrets").mkdir(parents=True)
    (folder / "site.toml").write_text(f'{SITE}{SECTION}endpoint = "{store.endpoint}"\n')
    for name, text in (("store-key", ACCESS_KEY), ("store-secret", SECRET_KEY)):
        (folder / "secrets" / name).touch(0o600)
        (folder / "secrets" / name).write_text(text)
    async with at_work(folder, folder / "data", {}):
        pass
    return folder


def named(folder) -> tuple:
    return "--site", folder / "site.toml", "--data", folder / "data"


def test_backups_go_where_the_site_file_says_and_the_newest_comes_back(box, store, tmp_path):
    for _ in range(2):
        done = typed("backup", *named(box), **PHRASE)
        assert (done.returncode, done.stderr) == (0, "")
        (key,) = store.objects
        assert f"s3://{BUCKET}/{key} is written" in done.stdout
    assert "are kept" in done.stdout
    assert SECRET_KEY not in done.stdout
    assert not list((box / "data").glob(".backup-*"))
    other = tmp_path / "other"
    done = typed("restore", PLACE, "--settings", box / "site.toml", *named(other), **PHRASE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (other / "site.toml").read_text() == (box / "site.toml").read_text()
    assert (other / "secrets" / "store-secret").read_text() == SECRET_KEY
    done = typed("restore", "--check", f"s3://{BUCKET}/{key}", "--site", box / "site.toml", **PHRASE)
    assert f"s3://{BUCKET}/{key} is good" in done.stdout


def test_a_failed_backup_says_why_in_a_sentence_and_deletes_nothing(box, store):
    assert typed("backup", *named(box), **PHRASE).returncode == 0
    before = dict(store.objects)
    store.alter = lambda body: body[:-1]
    done = typed("backup", *named(box), **PHRASE)
    sentence = "edge-gateway: the S3 store gives other bytes than were sent: check its disks\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    (box / "secrets" / "store-secret").write_text("another")
    done = typed("backup", *named(box), **PHRASE)
    sentence = "edge-gateway: the S3 store refused the signature: check [backup] secret_key\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
    assert store.objects == before


def test_a_place_without_backups_is_told(box, tmp_path):
    words = ("restore", f"s3://{BUCKET}/south-yard", "--settings", box / "site.toml", *named(tmp_path / "other"))
    done = typed(*words, **PHRASE)
    assert (done.returncode, done.stderr) == (2, f"edge-gateway: there is no backup in s3://{BUCKET}/south-yard\n")


def test_a_new_box_is_told_how_the_place_is_reached(tmp_path):
    done = typed("restore", PLACE, *named(tmp_path / "other"), **PHRASE)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "name another with --settings" in done.stderr
