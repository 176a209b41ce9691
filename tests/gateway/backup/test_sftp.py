"""Backups on OpenSSH's own server."""

from __future__ import annotations

import getpass
import select
import shutil
import socket
import subprocess
import threading
from pathlib import Path, PurePosixPath
from typing import Self

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from free_ports import free_port
from lacks import lacks
from waiting import wait_until

from gateway.backup.faults import PlaceFailed
from gateway.backup.sftp import SftpPlace
from gateway.domain.errors import ConfigError, StoreError
from gateway.site.backup_section import SftpAddress

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
NAME = "2026-01-01T120000.000.backup.tar.gz"

KINDS = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
}


def private(key, form: PrivateFormat = PrivateFormat.OpenSSH) -> str:
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


def public(key) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def listens(port: int) -> bool:
    with socket.socket() as line:
        line.settimeout(1)
        return line.connect_ex(("127.0.0.1", port)) == 0


class CutLine:
    """A port that leads to another, and hangs up once so many bytes went there."""

    def __init__(self, port: int, *, after: int) -> None:
        self._there, self._left = port, after
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(30)
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._pass_on)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _pass_on(self) -> None:
        with (
            self._listening,
            self._listening.accept()[0] as near,
            socket.create_connection(("127.0.0.1", self._there)) as far,
        ):
            while self._left > 0:
                for end in select.select([near, far], [], [], 30)[0]:
                    piece = end.recv(65536)
                    if not piece:
                        return
                    if end is near:
                        self._left -= len(piece)
                    (far if end is near else near).sendall(piece)


class Server:
    """An sshd of this test's own, with a folder and the keys of one user."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.backups = folder / "backups"
        self.backups.mkdir()
        host, self.key = KINDS[kind](), KINDS[kind]()
        (folder / "host").touch(0o600)
        (folder / "host").write_text(private(host))
        (folder / "authorized").write_text(public(self.key))
        self.host_key = public(host)
        self.port = free_port()
        options = {
            "ListenAddress": "127.0.0.1",
            "Port": self.port,
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "authorized",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "Subsystem": "sftp internal-sftp",
        }
        (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        Path("/run/sshd").mkdir(exist_ok=True)
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or listens(self.port))
        assert self.process.poll() is None

    def place(self, *, host_key: str = "", key: str = "") -> SftpPlace:
        address = SftpAddress(getpass.getuser(), "127.0.0.1", self.port, PurePosixPath(self.backups))
        return SftpPlace(address, host_key=host_key or self.host_key, password=None, key=key or private(self.key))


@pytest.fixture
def kind() -> str:
    return "ed25519"


@pytest.fixture
def server(tmp_path, kind):
    if SSHD is None:
        lacks("sshd is missing (Debian: openssh-server)")
    server = Server(tmp_path, kind)
    yield server
    server.process.terminate()
    server.process.wait(30)


@pytest.fixture
def file(tmp_path) -> Path:
    file = tmp_path / "made"
    file.write_bytes(bytes(range(256)) * 12_000)
    return file


@pytest.mark.long("a real SSH server")
@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_goes_there_and_comes_back(server, file, tmp_path):
    left = server.backups / f".{NAME}.new"
    left.write_bytes(b"broken off")
    place = server.place()
    place.put(file, NAME)
    assert place.names() == [NAME]
    assert list(server.backups.iterdir()) == [server.backups / NAME]
    place.get(NAME, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    with pytest.raises(ConfigError, match="is there already"):
        place.put(file, NAME)
    place.delete(NAME)
    assert place.names() == []


@pytest.mark.long("a real SSH server")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["ed25519", "rsa"])
def test_another_host_key_is_refused_before_anything_is_sent(server, file, other):
    with pytest.raises(ConfigError, match="shows another host key"):
        server.place(host_key=public(KINDS[other]())).put(file, NAME)
    assert list(server.backups.iterdir()) == []


@pytest.mark.long("a real SSH server")
def test_another_users_key_is_refused(server):
    with pytest.raises(ConfigError, match="check the password or key"):
        server.place(key=private(KINDS["ed25519"]())).names()


@pytest.mark.long("a real SSH server")
def test_a_key_in_the_older_form_is_taken(server):
    assert server.place(key=private(KINDS["rsa"](), PrivateFormat.TraditionalOpenSSL))


@pytest.mark.parametrize("text", ["", "no key", private(KINDS["ed25519"]())[:80]])
def test_what_is_no_key_is_told(text):
    with pytest.raises(ConfigError, match="the private key for the SFTP server is none"):
        SftpPlace(SftpAddress("a", "127.0.0.1", 22, PurePosixPath("/a")), host_key="a b", password=None, key=text)


@pytest.mark.long("a real SSH server")
def test_a_folder_that_is_not_there_is_told(server, file):
    server.backups.rmdir()
    with pytest.raises(ConfigError, match=f"has no such folder or file: {server.backups}"):
        server.place().put(file, NAME)


@pytest.mark.long("a real SSH server")
def test_a_file_here_that_cannot_be_written_is_told(server, file, tmp_path):
    server.place().put(file, NAME)
    with pytest.raises(StoreError, match="this machine cannot read or write the backup"):
        server.place().get(NAME, tmp_path)  # a folder


@pytest.mark.long("a real SSH server")
def test_a_line_that_breaks_in_an_upload_is_told_and_leaves_no_backup(server, file):
    with CutLine(server.port, after=file.stat().st_size // 2) as line:
        server.port = line.port
        with pytest.raises(PlaceFailed, match=r"the line to the SFTP server 127\.0\.0\.1 broke"):
            server.place().put(file, NAME)
    assert not (server.backups / NAME).exists()


@pytest.mark.long("a real SSH server")
def test_a_server_that_is_gone_is_told(server):
    server.process.terminate()
    server.process.wait(30)
    wait_until(lambda: not listens(server.port))  # a child of its own may still hold the port
    with pytest.raises(PlaceFailed, match="cannot be reached"):
        server.place().names()
