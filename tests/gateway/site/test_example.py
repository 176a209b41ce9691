"""The site file that is shipped as an example is a good one, and names every section."""

import shutil
import tomllib
from pathlib import Path

from gateway.site import Site, load
from gateway.site.formats import FORMAT

CONFIG = Path(__file__).resolve().parents[3] / "config"


def test_the_example_is_good_once_its_secrets_exist(tmp_path):
    path = Path(shutil.copy(CONFIG / "site.example.toml", tmp_path / "site.toml"))
    (tmp_path / "secrets").mkdir()
    for name in ("central-password", "camera-password", "rtsp-password", "fleet-credentials"):
        (tmp_path / "secrets" / name).write_text(f"SU{'A' * 56}\n" if name == "fleet-credentials" else "x\n")
        (tmp_path / "secrets" / name).chmod(0o600)
    site = load(path)
    assert site.lanes[0].gate == 101
    assert site.central is not None


def test_the_example_shows_every_section():
    text = (CONFIG / "site.example.toml").read_text()
    raw = tomllib.loads(text)
    assert raw.pop("format") == FORMAT
    off = {"mqtt"}  # as comments: a copy of the example must not look for a broker
    assert all(f"# [{name}]" in text for name in off)
    assert set(raw) | off == set(Site.model_fields)
