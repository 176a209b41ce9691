"""The whole product against its simulated field: real processes, real sockets, a real serial line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting
from chromium import FLAGS, chromium
from free_ports import free_port
from lacks import lacks
from playwright.sync_api import expect, sync_playwright
from running_site import Api, RunningSite


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., Any]:
    return waiting.wait_until


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def api_of() -> type[Api]:
    return Api


@contextlib.contextmanager
def _sites() -> Iterator[Callable[..., RunningSite]]:
    sites: list[RunningSite] = []
    folders: list[Path] = []

    def make(*, traffic: bool = False, cards: int = 60, start: bool = True, demo_page: bool = False) -> RunningSite:
        folders.append(Path(tempfile.mkdtemp(prefix="eg-")))  # short: Unix sockets have short names
        site = RunningSite(folders[-1], traffic=traffic, cards=cards, demo_page=demo_page)
        sites.append(site)
        if start:
            site.start_gateway()
        return site

    yield make
    for site in sites:
        site.close()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make_site() -> Iterator[Callable[..., RunningSite]]:
    """Builds running sites; all of them are ended with the test."""
    with _sites() as make:
        yield make


@pytest.fixture(scope="module")
def make_lasting_site() -> Iterator[Callable[..., RunningSite]]:
    """Builds running sites that a module's tests share."""
    with _sites() as make:
        yield make


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MB of its own; only root can have one."""
    with _small_disk(tmp_path / "disk") as place:
        yield place


@pytest.fixture(scope="module")
def lasting_small_disk(tmp_path_factory):
    """A disk of 24 MB that a module's tests share."""
    with _small_disk(tmp_path_factory.mktemp("small") / "disk") as place:
        yield place


@contextlib.contextmanager
def _small_disk(place: Path) -> Iterator[Path]:
    place.mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True, check=False
        ).returncode
        == 0
    )
    if not mounted:
        lacks("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="session")
def ffprobe() -> Callable[[Path], dict[str, Any]]:
    """Return ffprobe's facts about a file; a missing ffprobe fails under CI and skips elsewhere."""
    program = shutil.which("ffprobe")
    if program is None:
        lacks("ffprobe is missing; install Debian's ffmpeg")

    def probe(path: Path) -> dict[str, Any]:
        words = [program, "-v", "error", "-show_format", "-show_streams", "-count_packets", "-of", "json", str(path)]
        answer = subprocess.run(words, capture_output=True, timeout=30, check=True)
        assert answer.stderr == b"", answer.stderr
        return json.loads(answer.stdout)

    return probe


@pytest.fixture(scope="module")
def browser():
    """Chromium, for a module's tests; each has its own context."""
    expect.set_options(timeout=1000 * waiting.GENEROUS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()
