"""Unix sockets are reached in folders of any depth and name."""

import os
import socket
import stat
from contextlib import ExitStack, suppress

import pytest

from gateway.runtime.unix_sockets import connect, is_own_process, listen, peer_user, short_path

FOLDERS = ["run", "x" * 200, "deep/" * 60 + "run", "with spaces and 100% #?&'\" quotes", "Zufahrt Süd/Größe/出口"]


def exchange(path):
    """Send a byte through the socket at `path` and return what the other end took."""
    with listen(path) as server, connect(path, within=1) as client:
        server.settimeout(1)
        taken, _ = server.accept()
        with taken:
            client.sendall(b"x")
            return taken.recv(1)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_socket_is_reached_however_long_or_odd_its_folder(tmp_path, folder):
    assert exchange(tmp_path / folder / "gateway.sock") == b"x"


def test_a_socket_is_reached_by_a_relative_path_and_through_a_link(tmp_path, monkeypatch):
    (tmp_path / ("y" * 150)).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ("y" * 150))
    monkeypatch.chdir(tmp_path)
    assert exchange((tmp_path / "link" / "gateway.sock").relative_to(tmp_path)) == b"x"


def test_only_this_user_may_connect_and_a_dead_listener_is_replaced(tmp_path):
    path = tmp_path / "run" / "gateway.sock"
    listen(path).close()
    with listen(path) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.family is socket.AF_UNIX
        assert [file.name for file in path.parent.iterdir()] == ["gateway.sock"]


def test_an_address_is_short_and_a_missing_folder_is_an_error(tmp_path):
    folder = tmp_path / ("z" * 200)
    with pytest.raises(FileNotFoundError), short_path(folder / "gateway.sock"):
        pass
    folder.mkdir()
    with short_path(folder / "gateway.sock") as address:
        assert len(address) < 60


NOBODY_SIGNS_IN, SOMEBODY = (lambda _: True), (lambda _: False)


def test_a_process_of_the_gateways_own_user_is_told_from_a_person():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert is_own_process(here, nobody_signs_in=NOBODY_SIGNS_IN)
        assert not is_own_process(here, nobody_signs_in=SOMEBODY), "a checkout, which runs as whoever works on it"
        assert peer_user(here) == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on another user")
@pytest.mark.parametrize(("user", "own"), [(65534, True), (0, False), (12345, False)])
def test_root_and_other_users_are_let_in_and_processes_of_the_gateways_user_are_not(reachable_path, user, own):
    """A gateway by nobody, who has no shell, and a program by each user that connects to it."""
    path = reachable_path / "run" / "gateway.sock"
    with listen(path, mode=0o666) as server, ExitStack() as stack:
        server.setblocking(True)
        path.parent.chmod(0o755)
        client = os.fork()
        if not client:
            with suppress(BaseException):
                os.setuid(user)
                with connect(path, within=5) as end:
                    end.setblocking(True)
                    end.recv(1)
            os._exit(0)
        stack.callback(os.waitpid, client, 0)
        server.settimeout(10)
        end, _ = server.accept()
        with end:
            os.seteuid(65534)
            stack.callback(os.seteuid, 0)
            assert is_own_process(end) is own
