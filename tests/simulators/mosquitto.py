"""A real Mosquitto broker on a free port, which can be killed, hung and started again, and listeners at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certificates import Pair
from free_ports import free_port
from lacks import lacks

_SECONDS = 20
_ANYBODY = "allow_anonymous true"


class Mosquitto:
    """The broker. `config` are further lines of its configuration; with `tls` it takes no other line."""

    def __init__(self, folder: Path, config: str = _ANYBODY, *, tls: Pair | None = None, asks: bool = False) -> None:
        """`asks`: whether clients must have a certificate, of the same authority."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.folder = folder
        self._tls = "" if tls is None else f"certfile {tls.certificate}\nkeyfile {tls.key}\ncafile {tls.certificate}\n"
        self._tls += f"require_certificate {str(asks).lower()}\n" if tls else ""
        self._config = folder / "mosquitto.conf"
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(config)

    def configure(self, config: str) -> None:
        """Write the configuration, which holds from the next start or `reload` on."""
        user = "user root\n" if os.geteuid() == 0 else ""
        self._config.write_text(f"{user}listener {self.port} 127.0.0.1\n{self._tls}{config}\n")

    def passwords(self, **of: str) -> str:
        """Write a file of users with their passwords; the line of the configuration that names it."""
        file = self.folder / "passwords"
        file.write_text("".join(f"{user}:{password}\n" for user, password in of.items()))
        file.chmod(0o600)
        subprocess.run([_program("mosquitto_passwd"), "-U", str(file)], check=True, timeout=_SECONDS)
        return f"allow_anonymous false\npassword_file {file}"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("mosquitto"), "-c", str(self._config)], stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + _SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "mosquitto.log").read_text()
            assert time.monotonic() < end, "mosquitto does not answer"

    def kill(self) -> None:
        """Kill it. It keeps nothing on disk."""
        self._end(signal.SIGKILL)

    def reload(self) -> None:
        """Have it read its users and their rights again."""
        self._signal(signal.SIGHUP)

    def hang(self) -> None:
        """Let it keep its connections and say nothing, until `wake`."""
        self._signal(signal.SIGSTOP)
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def wake(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            self._process.wait(timeout=_SECONDS)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False


class Listener:
    """Somebody who listens at a broker, with its own program. `messages` are those that came, in their order."""

    def __init__(self, output: Path) -> None:
        self._output = output

    @property
    def is_there(self) -> bool:
        """True once the broker has confirmed the subscription."""
        return "Subscribed (mid" in self._output.read_text()

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """Each message with its topic, payload (text), retain and properties."""
        lines = self._output.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def payloads(self, topic: str) -> list[str]:
        """The payloads of a topic."""
        return [str(one["payload"] or "") for one in self.messages if one["topic"] == topic]

    def events(self) -> list[int]:
        """The ids of the events that came."""
        return [json.loads(one["payload"])["id"] for one in self.messages if one["topic"].endswith("/event")]


@contextmanager
def mosquitto(
    folder: Path, config: str = _ANYBODY, *, tls: Pair | None = None, asks: bool = False
) -> Iterator[Mosquitto]:
    """A broker that runs while the context lasts."""
    broker = Mosquitto(folder, config, tls=tls, asks=asks)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@contextmanager
def listener(broker: Mosquitto, *words: str) -> Iterator[Listener]:
    """One who listens to everything. `words`: further options of `mosquitto_sub`, such as a user."""
    output = broker.folder / f"listener-{time.monotonic_ns()}"
    program = ["stdbuf", "-oL", _program("mosquitto_sub"), "-V", "mqttv5", "-h", "127.0.0.1", "-p", str(broker.port)]
    with output.open("wb") as file:
        process = subprocess.Popen([*program, "-q", "1", "-t", "#", "-F", "%j", "-d", *words], stdout=file, stderr=file)
    try:
        yield Listener(output)
    finally:
        process.kill()
        process.wait(timeout=_SECONDS)


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return found or lacks(f"{name} is missing: `make debian` installs mosquitto and mosquitto-clients")
