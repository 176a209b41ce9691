"""The note of the last backup: written by the command, read by the gateway."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from gateway.backup.faults import FolderRefuses, PlaceFailed, PlaceRefuses, PlaceUnreachable, fault_here, folder_fault
from gateway.backup.last_backup import last_backup, noted
from gateway.domain.errors import ConfigError, StoreError
from gateway.domain.problems import ProblemKind as K
from gateway.problems.found import LastBackup
from gateway.store.engine.faults import DiskFull


def ended(data, at, error=None):
    """Note a backup that ends at this time, with this error."""
    with noted(data, now=lambda: at):
        if error is not None:
            raise error


def test_no_backup_was_tried_at_first(tmp_path):
    assert last_backup(tmp_path) is None


def test_failures_count_from_the_first_until_a_good_one(tmp_path):
    ended(tmp_path, 10)
    assert last_backup(tmp_path) == LastBackup(good_at=10)
    for at, error in ((20, PlaceUnreachable("no line")), (30, PlaceRefuses("another key"))):
        with pytest.raises(type(error)):
            ended(tmp_path, at, error)
    assert last_backup(tmp_path) == LastBackup(10, 20, K.BACKUP_REFUSED, "another key")
    ended(tmp_path, 40)
    assert last_backup(tmp_path) == LastBackup(good_at=40)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FolderRefuses("it is read-only"), K.BACKUP_FOLDER_REFUSES),
        (DiskFull("full"), K.BACKUP_NO_ROOM),
        (PlaceRefuses("key"), K.BACKUP_REFUSED),
        (PlaceUnreachable("host"), K.BACKUP_UNREACHABLE),
        (PlaceFailed("busy"), K.BACKUP_FAILED),
        (StoreError("damaged"), K.BACKUP_FAILED),
        (ConfigError("lane 1: no gate\nlane 2: no gate"), K.BACKUP_FAILED),
    ],
)
def test_each_failure_is_the_kind_of_problem_that_has_its_steps(tmp_path, error, kind):
    with pytest.raises(type(error)):
        ended(tmp_path, 20, error)
    assert last_backup(tmp_path) == LastBackup(0, 20, kind, str(error).partition("\n")[0])


def test_a_defect_of_the_program_is_told_without_its_inside(tmp_path):
    with pytest.raises(ZeroDivisionError):
        ended(tmp_path, 20, ZeroDivisionError("secret"))
    last = last_backup(tmp_path)
    assert (last.kind, "secret" in last.why) == (K.BACKUP_FAILED, False)


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EROFS, FolderRefuses, "is read-only"),
        (errno.EACCES, FolderRefuses, "may not be written to"),
        (errno.ENOENT, FolderRefuses, "there is no folder"),
        (errno.ENOSPC, DiskFull, "there is no room"),
        (errno.EDQUOT, DiskFull, "there is no room"),
        (errno.EIO, StoreError, "cannot be written"),
    ],
)
def test_the_folders_fault_is_named(tmp_path, number, kind, words):
    fault = folder_fault(tmp_path / "away", OSError(number, os.strerror(number)))
    assert type(fault) is kind
    assert words in str(fault)
    assert str(tmp_path / "away") in str(fault)


def test_a_folder_that_is_there_and_takes_no_files_is_not_told_as_missing(tmp_path):
    assert str(folder_fault(tmp_path, OSError(errno.ENOENT, "no such file"))) == f"{tmp_path} takes no files"


def test_a_full_disk_of_this_machine_is_no_fault_of_the_far_place():
    assert type(fault_here(OSError(errno.ENOSPC, "no space"))) is DiskFull


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_note_is_its_owners_alone_and_no_link_is_followed(reachable_path):
    data, elsewhere = reachable_path / "data", reachable_path / "elsewhere"
    data.mkdir()
    os.chown(data, 65534, 65534)
    elsewhere.write_text("kept")
    (data / "last-backup.json").symlink_to(elsewhere)
    ended(data, 10)
    found = (data / "last-backup.json").lstat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65534, 0o600)
    assert stat.S_ISREG(found.st_mode)
    assert elsewhere.read_text() == "kept"
    assert [path.name for path in data.iterdir()] == ["last-backup.json"]


@pytest.mark.parametrize("text", ["", "no JSON", '{"good_at": "x"}', '{"kind": "of another release"}'])
def test_a_note_that_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / "last-backup.json").write_text(text)
    assert last_backup(tmp_path) is None
    ended(tmp_path, 10)
    assert last_backup(tmp_path) == LastBackup(good_at=10)


def test_a_folder_without_room_for_the_note_does_not_break_the_backup(tmp_path):
    ended(tmp_path / "not-there", 10)
    assert last_backup(tmp_path / "not-there") is None
