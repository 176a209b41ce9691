"""Settings of the whole run: the cost of gathering the tests, and the order in which their files begin.

Whole gateways are spread over the run, the longest early. A worker takes a file at a time. Files that start gateways,
cameras and browsers would slow each other down side by side, and one that begins last would be waited for alone.

A test marked `alone` has the machine to itself: the runner's other processes wait before their next test. It has dozens
of far ends that answer within real time-outs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock

import pytest
import structlog
from aiohttp import web_app
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# An example that takes long says that the machine is busy: how long things may take is said by the tests that measure.
_BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _BUSY, derandomize=True, database=None)
settings.register_profile("fresh", _BUSY, print_blob=True)
settings.load_profile("fixed")  # the long suite names the other, and so explores anew in each run
# A traceback with the values of all variables takes a second of processor time; the product never writes one.
structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback


@pytest.hookimpl(trylast=True)  # once `--hypothesis-profile` is heeded
def pytest_configure() -> None:
    """Let the fast suite draw no constants of the code: they differ with each change and with the modules loaded.

    In a new checkout, the first property of each of the runner's processes would also parse all modules for them.
    """
    if settings.get_current_profile_name() == "fixed":
        assert providers.is_local_module_file
        providers.is_local_module_file = lambda _path: False


@pytest.fixture(scope="module", params=["python", "compiled"])
def each_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a module's tests with the functions of packets in Python, and with the compiled ones."""
    from both_codes import use  # loads the camera worker, which few tests need

    with pytest.MonkeyPatch.context() as patch:
        use(request.param, patch)
        yield


_BEGIN_BY = {
    "tests/system/": 0.5,
    "tests/simulation/virtual_site/": 0.5,
    "tests/gateway/recording/": 0.8,
    "tests/gateway/camera_worker/": 0.8,
}
"""The folders of long files, and by which part of the run the last of each has begun."""


_WAITS = ("time.", "socket.", "ssl.", "sqlite3.", "threading.")
"""Calls that wait for others. A small file is read on the loop at a start or a reload, and so takes no part here."""

_MAY_WAIT = {
    "drivers/delivery.py": {"_interface_to"},  # asks the kernel, which answers at once
    "store/cards/cards.py": {"_build", "_follow", "at_once", "near_at_once"},  # the index of cards, in memory
    "store/engine/copies.py": {"copy_databases", "check_copy", "prepare_restored"},  # in the process of a backup
    "store/engine/migrations/__init__.py": {"refuse_newer", "migrate"},  # likewise
    "rtsp/client/connection.py": {"send_bytes", "read"},  # in threads of the worker; tests use them on the loop
    "runtime/loop_watch.py": {"run"},  # waits until its thread has started
}
"""Functions of the product that may do on a loop what else fails there."""


@pytest.fixture(scope="module", autouse=True)
def _blocking_calls_fail(request: pytest.FixtureRequest) -> Iterator[None]:
    """Raise BlockingError where the product waits on its loop: for a socket, a database, a lock or a time.

    On virtual time there are no threads, and everything happens on the loop.
    """
    if "virtual_site" in request.path.parts:
        yield
        return
    apart = ["gateway.backup", "simulation"]
    watch = BlockBuster(["gateway", "drivers"], excluded_modules=apart)
    watch.functions = {name: call for name, call in watch.functions.items() if name.startswith(_WAITS)}
    for call in watch.functions.values():
        for file, functions in _MAY_WAIT.items():
            call.can_block_in(file, functions)
    watch.activate()
    yield
    watch.deactivate()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep gathered objects out of the garbage collector until the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let programs be imported beside the first tests: the first to fork one would wait for it within its time-out."""
    forked = sys.modules.get("forked")
    if forked is not None and any(item.get_closest_marker("benchmark") is None for item in session.items):
        forked.import_beforehand()


@contextmanager
def _turn(config: pytest.Config, *, alone: bool) -> Iterator[None]:
    """Wait until this test may run beside those of the runner's other processes.

    Two files of the project serve as locks. Whoever waits to be alone holds the first, so that no other test begins.
    """
    with (config.rootpath / "pyproject.toml").open() as begin, (config.rootpath / "Makefile").open() as run:
        flock(begin, LOCK_EX)
        flock(run, LOCK_EX if alone else LOCK_SH)
        if not alone:
            flock(begin, LOCK_UN)
        try:
            yield
        finally:
            flock(run, LOCK_UN)  # also for processes that the test left and that share the descriptor
            flock(begin, LOCK_UN)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run each test in its turn, where the runner has several processes. The wait is outside of the test's time-out."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with _turn(item.config, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Let go of the applications of a test: aiohttp keeps the handlers of its last 1,024 with all that they lead to."""
    try:
        return (yield)
    finally:
        web_app._cached_build_middleware.cache_clear()  # noqa: SLF001  (aiohttp has no public way)


def _in_turn(files: Iterable[str]) -> list[str]:
    """Each folder's files spread evenly over its part of the run, in the order in which they came."""
    groups: dict[str, list[str]] = {}
    for file in files:
        groups.setdefault(next((folder for folder in _BEGIN_BY if file.startswith(folder)), ""), []).append(file)
    due = {
        file: place / len(group) * _BEGIN_BY.get(folder, 1.0)
        for folder, group in groups.items()
        for place, file in enumerate(group)
    }
    return sorted(due, key=lambda file: due[file])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Within a folder the order stays as it is: by chance."""
    files = dict.fromkeys(item.nodeid.partition("::")[0] for item in items)
    turn = {file: place for place, file in enumerate(_in_turn(files))}
    items.sort(key=lambda item: turn[item.nodeid.partition("::")[0]])
