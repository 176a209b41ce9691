"""The site of the installation trial: what `init` wrote, and below it the lines, devices and lanes of the field."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from simulation.demo.scene import FieldReady, write_site

SITE = Path("/etc/edge-gateway")
USER = "edge-gateway"


def connect_field(ready: FieldReady) -> None:
    """Add the simulated field and its central to the site file, and their secrets, as an installer would."""
    with tempfile.TemporaryDirectory() as folder:
        demo = write_site(Path(folder), ready, port=1)
        text = demo.read_text()
        central = text[text.index("[central]") : text.index("[storage]")]
        field = text[text.index("[[links]]") :]
        path = SITE / "site.toml"
        path.write_text(f"{path.read_text()}\n{central}\n{field}")
        for name in ("central-password", "camera-password"):
            place = SITE / "secrets" / name
            shutil.copyfile(demo.parent / "secrets" / name, place)
            shutil.chown(place, USER, USER)
            place.chmod(0o600)
