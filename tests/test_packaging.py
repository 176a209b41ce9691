"""Parts of the Debian package that can be tried without building it; `make install-trial` tries the whole."""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import botocore
import pytest
from lacks import lacks
from running_gateway import PROGRAM
from s3_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Store

from gateway.cli.commands import NAMED

pytestmark = pytest.mark.long("real builds and installs")

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
_OWN, _OF_DEB = ("environment", "sums", "wheel"), ("build", "build-inside", "clean-root")
BASH = [*(PACKAGING / name for name in _OWN), *(PACKAGING / "deb" / name for name in _OF_DEB)]
SH = [PACKAGING / "deb" / name for name in ("preinst", "postinst", "prerm", "postrm")]


def module(name):
    spec = importlib.util.spec_from_file_location(name, PACKAGING / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run(*words, check=True):
    return subprocess.run(words, capture_output=True, text=True, timeout=50, check=check)


@pytest.mark.parametrize("script", [*BASH, *SH], ids=lambda script: script.name)
def test_the_shell_takes_each_script(script):
    shell = "bash" if script in BASH else "sh"
    assert script.read_text().startswith(f"#!/{'usr/bin/env ' if shell == 'bash' else 'bin/'}{shell}\n")
    assert script.stat().st_mode & 0o111
    result = run(shell, "-n", script, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_no_mirror_and_no_index_is_named():
    files = [path for path in [*PACKAGING.rglob("*"), *(ROOT / "tests/installation").iterdir()] if path.is_file()]
    texts = {path: path.read_text("utf-8") for path in files if path.suffix != ".pyc"}
    named = [path for path, text in texts.items() if re.search(r"https?://[^ ]*(debian|pypi|python)\.", text)]
    assert named == []


@pytest.mark.parametrize(
    ("action", "there", "status"),
    [("upgrade", "1.0~deb12", 0), ("upgrade", "1.1~deb12", 0), ("upgrade", "1.2~deb12", 1), ("install", "1.2~deb12", 1),
     ("install", "", 0), ("upgrade", "1.1~deb13", 1)],
    ids=["older", "same", "newer", "newer removed before", "fresh", "newer release"],
)  # fmt: skip
def test_an_older_package_is_refused_over_a_newer_one(tmp_path, action, there, status):
    if shutil.which("dpkg") is None:
        lacks("dpkg is missing (it is Debian's)")
    script = tmp_path / "preinst"
    script.write_text((PACKAGING / "deb" / "preinst").read_text().replace("@VERSION@", "1.1~deb12"))
    result = run("sh", script, action, *([there] if there else []), check=False)
    assert result.returncode == status
    assert ("Nothing was changed" in result.stderr) is bool(status)


def test_the_simulation_is_left_out(tmp_path, monkeypatch):
    packages = tmp_path / "lib/python3.11/site-packages"
    for name in ("gateway", "simulation/far_ends"):
        (packages / name).mkdir(parents=True)
    trim = module("trim")
    monkeypatch.setattr(trim.subprocess, "run", lambda words, **_: words)  # nothing here is compiled
    trim.trim(tmp_path)
    assert [path.name for path in packages.iterdir()] == ["gateway"]


SENDER = """
import sys
from pathlib import Path
import botocore
from gateway.backup.s3 import S3Place
from gateway.site.backup_section import S3Address

trimmed, file, endpoint, bucket, region, access_key, secret_key = sys.argv[1:]
assert Path(botocore.__file__).is_relative_to(trimmed), botocore.__file__
keys = {"access_key": access_key, "secret_key": secret_key}
place = S3Place(S3Address(bucket, "yard"), endpoint=endpoint, region=region, ca_file=None, **keys)
place.put(Path(file), "1.backup.tar.gz")
print(place.names())
place.delete("1.backup.tar.gz")
"""


def test_trimmed_botocore_still_signs_sends_and_lists(tmp_path):
    package = tmp_path / "trimmed" / "botocore"
    shutil.copytree(Path(botocore.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    module("trim").keep_s3(package / "data")
    assert sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) < 3_000_000
    file = tmp_path / "made"
    file.write_bytes(b"a backup")
    with S3Store().served() as store:
        sender = [tmp_path, file, store.endpoint, BUCKET, REGION, ACCESS_KEY, SECRET_KEY]
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent)}
        sent = subprocess.run(
            [sys.executable, "-c", SENDER, *sender],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            env=environ,
        )
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, "['1.backup.tar.gz']\n", "")
    assert store.objects == {}


def test_the_image_runs_as_a_user_without_rights_on_files_that_are_there():
    text = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    built = [words for word, words in steps if word == "COPY" and not words.startswith("--from")]
    assert [name for words in built for name in words.split()[:-1] if not (ROOT / name).exists()] == []
    last = steps[max(place for place, (word, _) in enumerate(steps) if word == "FROM") :]
    words = [word for word, _ in last]
    assert dict(last)["USER"] == "10001:10001"
    assert "RUN" not in words[words.index("USER") :]
    assert "ADD" not in [word for word, _ in steps]
    assert "--read-only" in (ROOT / "docs/install.md").read_text()
    assert dict(last)["VOLUME"] == '["/etc/edge-gateway", "/var/lib/edge-gateway"]'


def test_checksums_are_written_and_signed(tmp_path):
    if shutil.which("gpg") is None:
        lacks("gpg is missing (Debian: gpg)")
    home, packages = tmp_path / "keys", tmp_path / "packages"
    home.mkdir(mode=0o700)
    packages.mkdir()
    (packages / "edge-gateway_1_amd64.deb").write_bytes(b"one")
    (packages / "sbom.cdx.json").write_text("{}")
    environ = {**os.environ, "GNUPGHOME": str(home)}

    def asked(*words, **more):
        return subprocess.run(words, capture_output=True, text=True, timeout=50, check=False, env={**environ, **more})

    made = asked("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "packager@example.com", "ed25519", "sign")
    assert made.returncode == 0, made.stderr
    unsigned = asked(PACKAGING / "sums", packages)
    assert (unsigned.returncode, unsigned.stderr) == (0, "not signed: SIGN_KEY names no key\n")
    assert not (packages / "SHA256SUMS.asc").exists()
    signed = asked(PACKAGING / "sums", packages, SIGN_KEY="packager@example.com")
    assert signed.returncode == 0, signed.stderr
    assert len((packages / "SHA256SUMS").read_text().splitlines()) == 2
    check = (
        "sh",
        "-c",
        f"cd '{packages}' && gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum -c --strict SHA256SUMS",
    )
    assert asked(*check).returncode == 0
    (packages / "edge-gateway_1_amd64.deb").write_bytes(b"another")
    assert asked(*check).returncode != 0
    (packages / "SHA256SUMS").write_text((packages / "SHA256SUMS").read_text().replace("sbom", "boms"))
    assert "BAD signature" in asked(*check).stderr
    asked("gpgconf", "--kill", "all")


def test_every_command_has_a_page_that_man_can_show(tmp_path):
    module("pages").write_pages(tmp_path)
    pages = {path.name: gzip.decompress(path.read_bytes()).decode() for path in (tmp_path / "man/man1").iterdir()}
    assert set(pages) == {"edge-gateway.1.gz", *(f"edge-gateway-{named.name}.1.gz" for named in NAMED)}
    for name, text in pages.items():
        assert text.startswith(".TH EDGE\\-GATEWAY"), name
        assert not re.findall(r"^\.(?!TH|SH|SS|PP|TP|BR|B\b)", text, re.MULTILINE), name
    assert ".B \\-\\-zone ZONE" in pages["edge-gateway-init.1.gz"]
    assert '"edge\\-gateway init"' not in pages["edge-gateway-init.1.gz"]


def test_every_shell_gets_its_completion(tmp_path):
    module("pages").write_completion(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "_edge-gateway", "edge-gateway", "edge-gateway.fish",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("edge-gateway ini", ["init"]),
        ("edge-gateway users rol", ["role", "roles"]),
        ("edge-gateway init --z", ["--zone"]),
    ],
    ids=["command", "subcommand", "option"],
)
def test_bash_completes_a_line(tmp_path, line, offered):
    module("pages").write_completion(tmp_path)
    (script,) = tmp_path.glob("bash-completion/completions/*")
    words = line.split()
    asked = f"""
        source {shlex.quote(str(script))}
        COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
        _edge_gateway_completion {shlex.quote(str(PROGRAM))}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert run("bash", "-c", asked).stdout.split() == offered
