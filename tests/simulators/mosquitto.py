"""A real Mosquitto broker on a free port, which can be killed, hung and started again, and listeners at it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certificates import Pair
from own_server import SECONDS, OwnServer, program

_ANYBODY = "allow_anonymous true"


class Mosquitto(OwnServer):
    """The broker. `config` are further lines of its configuration; with `tls` it takes no other line."""

    def __init__(self, folder: Path, config: str = _ANYBODY, *, tls: Pair | None = None, asks: bool = False) -> None:
        """`asks`: whether clients must have a certificate, of the same authority."""
        super().__init__(folder, "mosquitto")
        self._tls = "" if tls is None else f"certfile {tls.certificate}\nkeyfile {tls.key}\ncafile {tls.certificate}\n"
        self._tls += f"require_certificate {str(asks).lower()}\n" if tls else ""
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
        subprocess.run([program("mosquitto_passwd"), "-U", str(file)], check=True, timeout=SECONDS)
        return f"allow_anonymous false\npassword_file {file}"


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
def listener(broker: Mosquitto, *more: str) -> Iterator[Listener]:
    """One who listens to everything. `more`: further options of `mosquitto_sub`, such as a user."""
    output = broker.folder / f"listener-{time.monotonic_ns()}"
    words = ["stdbuf", "-oL", program("mosquitto_sub"), "-V", "mqttv5", "-h", "127.0.0.1", "-p", str(broker.port)]
    with output.open("wb") as file:
        process = subprocess.Popen([*words, "-q", "1", "-t", "#", "-F", "%j", "-d", *more], stdout=file, stderr=file)
    try:
        yield Listener(output)
    finally:
        process.kill()
        process.wait(timeout=SECONDS)
