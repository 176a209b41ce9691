"""`[backup]`: addresses, and what reaching them needs."""

from __future__ import annotations

import errno
import socket
from pathlib import Path, PurePosixPath

import pytest
from pydantic import ValidationError

from gateway.backup.destinations import SUFFIX, far_place, split
from gateway.domain.errors import ConfigError
from gateway.site.backup_section import BackupSection, S3Address, SftpAddress, backup_address

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUjdE7JB5m4N8JSWPXOxn0OEUnGwX9JYIRrgXkpRjQM"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/mnt/backups", Path("/mnt/backups")),
        ("sftp://ana@host/a/b", SftpAddress("ana", "host", 22, PurePosixPath("/a/b"))),
        ("sftp://ana%40site@[::1]:2222/a%20b/", SftpAddress("ana@site", "::1", 2222, PurePosixPath("/a b"))),
        ("s3://yard-backups", S3Address("yard-backups", "")),
        ("s3://yard-backups/north/yard/", S3Address("yard-backups", "north/yard")),
    ],
)
def test_an_address_is_understood(text, address):
    assert backup_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "ftp://host/a", "sftp://host/a", "sftp://ana@host", "sftp://ana@host/", "sftp://ana@host:x/a",
        "sftp://ana@host:0/a", "sftp://ana@host/a?b", "s3://", "s3://Yard", "s3://a", "s3://yard-backups/../x",
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused(text):
    with pytest.raises(ValueError, match="must be"):
        backup_address(text)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(ValueError, match="must not hold a password") as refused:
        backup_address("sftp://ana:hunter2@host/a")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("section", "lacks"),
    [
        ({"target": "sftp://ana@host/a", "password": "p"}, "'host_key' is missing"),
        ({"target": "sftp://ana@host/a", "host_key": HOST_KEY}, "needs either 'password' or 'key'"),
        ({"target": "sftp://ana@host/a", "host_key": HOST_KEY, "password": "p", "key": "k"}, "needs either"),
        ({"target": "s3://yard-backups", "access_key": "a"}, "needs 'access_key' and 'secret_key'"),
        ({"target": "backups"}, "must be a folder with its whole path"),
        ({"host_key": "host ssh-ed25519 AAAA"}, "must be a public key like"),
        ({"endpoint": "s3.example.com"}, "endpoint"),
        ({"keep": 0}, "keep"),
    ],
)
def test_what_lacks_or_is_wrong_is_named(section, lacks):
    with pytest.raises(ValidationError, match=lacks):
        BackupSection.model_validate(section)


def test_a_section_that_is_whole_is_taken():
    section = BackupSection(target="sftp://ana@host/a", host_key=f"{HOST_KEY} root@host\n", key="backup-key")
    assert section.address == SftpAddress("ana", "host", 22, PurePosixPath("/a"))
    assert section.secrets() == {"key": "backup-key"}
    assert BackupSection().address == Path("/var/backups/edge-gateway")


@pytest.mark.parametrize("folder", ["sftp://ana@host:22/a/b", "s3://yard-backups/a/b"])
def test_a_backup_is_told_from_the_folder_that_it_is_in(folder):
    whole = backup_address(f"{folder}/1{SUFFIX}")
    assert split(whole) == (backup_address(folder), f"1{SUFFIX}")
    assert split(backup_address(folder)) == (backup_address(folder), "")


def test_a_unit_without_a_network_is_told_what_opens_it(monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    section = BackupSection(target="s3://yard-backups", access_key="a", secret_key="b")
    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(ConfigError, match=r"may not use the network: put edge-gateway-backup-elsewhere\.conf"):
        far_place(section.address, section, str)
