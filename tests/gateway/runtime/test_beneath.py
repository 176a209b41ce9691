"""Files beneath a folder of another user: what is no plain file there is not opened, whatever it is."""

from __future__ import annotations

import io
import os
import socket

import pytest

from gateway.runtime.beneath import Beneath, NoPlainFile

SECRET = b"root alone reads this"


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "shadow").write_bytes(SECRET)
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "plain").write_bytes(b"plain")
    return tmp_path / "folder"


def linked(folder, outside):
    (folder / "bad").symlink_to(outside / "shadow")


def hard_linked(folder, outside):
    (folder / "bad").hardlink_to(outside / "shadow")


def fifo(folder, outside):
    os.mkfifo(folder / "bad")


def bound_socket(folder, outside):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(folder / "bad"))


def a_folder(folder, outside):
    (folder / "bad").mkdir()


def dangling(folder, outside):
    (folder / "bad").symlink_to(outside / "nothing")


def in_a_loop(folder, outside):
    (folder / "bad").symlink_to("bad")


@pytest.mark.parametrize("make", [linked, hard_linked, fifo, bound_socket, a_folder, dangling, in_a_loop])
def test_what_is_no_file_with_one_name_is_not_opened_and_keeps_nobody_waiting(make, folder, outside):
    make(folder, outside)
    with pytest.raises(NoPlainFile):
        Beneath(folder).open("bad")
    assert dict(Beneath(folder).files()) == {"inner/plain": True} | ({"bad": False} if make is not a_folder else {})


@pytest.mark.parametrize("name", ["../outside/shadow", "inner/../../outside/shadow", "/etc/passwd", ".."])
def test_no_name_leads_out(name, folder, outside):
    with pytest.raises(NoPlainFile):
        Beneath(folder).open(name)
    with pytest.raises(NoPlainFile):
        Beneath(folder).put(name, io.BytesIO(b"x"), mode=0o600, owner=None)
    assert (outside / "shadow").read_bytes() == SECRET


def test_a_folder_that_is_a_link_is_neither_read_nor_written_through(folder, outside):
    (folder / "away").symlink_to(outside)
    beneath = Beneath(folder)
    for tried in (
        lambda: beneath.open("away/shadow"),
        lambda: beneath.put("away/shadow", io.BytesIO(b"x"), mode=0o600, owner=None),
        lambda: beneath.put("away/new", io.BytesIO(b"x"), mode=0o600, owner=None),
        lambda: beneath.set_aside("away/shadow", "old"),
        lambda: beneath.is_there("away/shadow"),
    ):
        with pytest.raises(NoPlainFile):
            tried()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"shadow": SECRET}
    assert list(beneath.files("away")) == []


def test_what_is_written_takes_the_place_of_a_link(folder, outside):
    for name in ("inner/plain", "inner/.plain.new"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(outside / "shadow")
    Beneath(folder).put("inner/plain", io.BytesIO(b"new"), mode=0o640, owner=None)
    assert (folder / "inner/plain").read_bytes() == b"new"
    assert not (folder / "inner/plain").is_symlink()
    assert (outside / "shadow").read_bytes() == SECRET


def test_what_is_there_keeps_its_content_under_another_name(folder):
    beneath = Beneath(folder)
    beneath.set_aside("inner/plain", "before")
    beneath.put("inner/plain", io.BytesIO(b"second"), mode=0o640, owner=None)
    beneath.set_aside("inner/plain", "before")
    assert sorted(path.name for path in (folder / "inner").iterdir()) == ["plain.before-1", "plain.before-2"]
    assert not beneath.is_there("inner/plain")
    assert not beneath.is_there("nowhere/at/all")
