"""A real `nats-server` with JetStream, in a temporary store on a free port; it can be killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from own_server import OwnServer


class NatsServer(OwnServer):
    """The server. `config` are further lines of its configuration; `streams`: whether it keeps any."""

    def __init__(self, folder: Path, config: str = "", *, streams: bool = True) -> None:
        # Its greeting comes after JetStream has recovered its streams.
        super().__init__(folder, "nats-server", greeting=b"INFO")
        self.url = f"nats://127.0.0.1:{self.port}"
        self._jetstream = f'jetstream {{ store_dir: "{folder / "jetstream"}" }}\n' if streams else ""
        self.configure(config)

    def configure(self, config: str) -> None:
        """Write the configuration, which holds from the next start or `reload` on."""
        jetstream = "" if "store_dir" in config else self._jetstream
        self._config.write_text(f'listen: "127.0.0.1:{self.port}"\n{jetstream}{config}\n')


@contextmanager
def nats_server(folder: Path, config: str = "", *, streams: bool = True) -> Iterator[NatsServer]:
    """A server that runs while the context lasts."""
    server = NatsServer(folder, config, streams=streams)
    server.start()
    try:
        yield server
    finally:
        server.kill()
