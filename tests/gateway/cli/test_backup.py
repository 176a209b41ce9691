"""`edge-gateway backup` beside a gateway that runs, and `edge-gateway restore` on another box."""

from __future__ import annotations

import asyncio
import os

import pytest
from aiohttp import ClientSession
from running_gateway import PASSWORD, SITE, give_account, typed
from running_house import at_work

PHRASE = {"EDGE_GATEWAY_BACKUP_PASSPHRASE": "yard works in the north"}


async def sign_in(port: int) -> int:
    account = {"username": "chief", "password": PASSWORD}
    url = f"http://127.0.0.1:{port}/v1/auth/login"
    async with ClientSession() as client, client.post(url, json=account) as answer:
        return answer.status


@pytest.fixture(autouse=True)
def _cheap_passphrase(monkeypatch):
    """Derive keys at little cost: a third of a second for each backup is meant for those who guess."""
    monkeypatch.setattr("gateway.backup.archive.SCRYPT_COST", 2**6)


@pytest.fixture
def box(tmp_path):
    """A box whose secrets are files, as a real one's are."""
    folder = tmp_path / "box"
    (folder / "secrets").mkdir(parents=True)
    (folder / "site.toml").write_text(SITE)
    (folder / "secrets" / "camera").touch(0o600)
    (folder / "secrets" / "camera").write_text("hush-hush")
    return folder


def named(folder) -> tuple:
    return "--site", folder / "site.toml", "--data", folder / "data"


async def test_a_box_is_backed_up_while_it_runs_and_goes_on_elsewhere(box, tmp_path):
    other, backups = tmp_path / "other", tmp_path / "backups"
    backups.mkdir()
    give_account(box / "data")
    async with at_work(box, box / "data", {}):
        for _ in range(2):
            done = await asyncio.to_thread(typed, "backup", backups, "--keep", "1", *named(box), **PHRASE)
            assert done.returncode == 0, done.stderr
            (file,) = backups.iterdir()
            assert f"{file} is written" in done.stdout
        refused = await asyncio.to_thread(typed, "restore", file, "--replace", *named(box), **PHRASE)
        assert (refused.returncode, "in use by another edge-gateway" in refused.stderr) == (2, True)
    checked = await asyncio.to_thread(typed, "restore", "--check", file, **PHRASE)
    assert "is good: Small as of " in checked.stdout
    wrong = await asyncio.to_thread(typed, "restore", file, *named(other), EDGE_GATEWAY_BACKUP_PASSPHRASE="south")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("edge-gateway: the passphrase is wrong for this backup, or somebody changed it")
    done = await asyncio.to_thread(typed, "restore", file, *named(other), **PHRASE)
    assert done.returncode == 0, done.stderr
    async with at_work(other, other / "data", {}) as gateway:
        assert await sign_in(await gateway.serves()) == 200
        await gateway.tells("store_behind_its_ids")


def test_what_cannot_be_backed_up_is_told_in_a_sentence(box, tmp_path):
    done = typed("backup", tmp_path / "b", *named(box), **PHRASE)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "is not the data folder of a gateway that has run" in done.stderr
    done = typed("backup", tmp_path / "b", "--site", tmp_path / "no.toml", "--data", tmp_path, **PHRASE)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert list(tmp_path.iterdir()) == [box]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")
@pytest.mark.parametrize("of", ["the file", "its folder", "a link"])
def test_root_takes_its_settings_only_from_its_own_files(box, tmp_path, of):
    (box / "data").mkdir()
    settings, phrase = tmp_path / "own" / "backup.toml", tmp_path / "own" / "passphrase"
    settings.parent.mkdir(mode=0o700)
    settings.write_text(f'[backup]\ntarget = "{tmp_path / "elsewhere"}"\n')
    phrase.write_text("north")
    match of:
        case "the file":
            os.chown(settings, 12345, 12345)
        case "its folder":
            settings.parent.chmod(0o770)
        case _:
            settings.rename(box / "backup.toml")
            settings.symlink_to(box / "backup.toml")
    options = ("--settings", settings, *named(box))
    done = typed("backup", *options, **PHRASE)
    assert (done.returncode, "may be changed by others than root" in done.stderr) == (2, True)
    if of == "its folder":
        done = typed("backup", tmp_path / "b", "--passphrase-file", phrase, *named(box))
        assert (done.returncode, "may be changed by others than root" in done.stderr) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")
def test_a_site_file_of_the_gateways_user_says_nothing_to_root(box, tmp_path):
    (box / "site.toml").write_text(SITE + f'[backup]\ntarget = "{tmp_path / "elsewhere"}"\n')
    os.chown(box / "site.toml", 12345, 12345)
    done = typed("backup", *named(box), **PHRASE)
    assert (done.returncode, "put [backup] into /etc/edge-gateway-backup/backup.toml" in done.stderr) == (2, True)
