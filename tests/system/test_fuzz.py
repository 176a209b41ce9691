"""The running demo, asked everything that its own description allows and much that it does not."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import done

pytestmark = pytest.mark.long("requests by the thousand at a running demo")

HOOKS = Path(__file__).with_name("fuzz_hooks.py")
CHECKS = (
    "only_the_documents_server_errors",
    "no_secret_is_told",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
NEVER = ("/v1/auth/logout", "/v1/auth/login")  # one ends the session that asks, one is throttled; they have own tests
LEGACY = "^/api/v1/"
TIMES = int(os.environ.get("FUZZ_TIMES", "0"))
"""Multiples of the seconds below, for `make fuzz`: requests of every kind, as far as the time goes.

0 is the suite's, whatever the machine is busy with: every request of the coverage phase (each border of each field) to
a share of the operations, and random requests to the others. The seed is fresh in each run, so that the runs together
cover them all.
"""
SEED = int(os.environ.get("FUZZ_SEED", random.SystemRandom().randrange(2**32)))
SHARE = 1 / 8
METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def site(make_lasting_site: Callable[..., Any]) -> Any:
    return make_lasting_site(traffic=False)


def of_the_gateway(site: Any) -> tuple[str, list[str]]:
    return f"SessionID:{site.api.session}", [
        "--exclude-by", "/x-answered-by != gateway", "--exclude-path-regex", LEGACY
    ]  # fmt: skip


def of_central(site: Any) -> tuple[str, list[str]]:
    status, answer, _ = site.api.raw("POST", "/v1/auth/login", {"username": "gateway", "password": "demo"})
    assert status == 200
    return f"SessionID:{json.loads(answer)['session']}", ["--exclude-by", "/x-answered-by != central"]


def of_programs(site: Any) -> tuple[str, list[str]]:
    made = done("gateway", "users", "key", "add", "fuzz", "--may", "*", "--data", site.data)
    made.check_returncode()
    return f"Authorization:Bearer {made.stdout.split()[-1]}", ["--include-path-regex", LEGACY]


def shared_phases(site: Any) -> str:
    """Write settings of schemathesis that ask each operation in one phase: a random share in the coverage phase."""
    status, document, _ = site.api.raw("GET", "/openapi.json")
    assert status == 200
    paths = json.loads(document)["paths"]
    names = [f"{method.upper()} {path}" for path in sorted(paths) for method in METHODS if method in paths[path]]
    random.Random(SEED).shuffle(names)
    covered = round(len(names) * SHARE)
    unasked = {"fuzzing": names[:covered], "coverage": names[covered:]}
    return "".join(
        f"[[operations]]\ninclude-name = {json.dumps(left)}\nphases.{phase}.enabled = false\n"
        for phase, left in unasked.items()
    )


@pytest.mark.timeout(60 * (TIMES + 3))
@pytest.mark.parametrize(
    ("asking", "examples", "seconds"), [(of_the_gateway, 1, 12), (of_central, 1, 6), (of_programs, 2, 5)]
)
def test_nothing_breaks_and_every_answer_is_as_described(
    site: Any, tmp_path: Path, asking: Any, examples: int, seconds: int
):
    carrier, chosen = asking(site)
    if TIMES:
        depth = ("--max-examples", "25", "--max-time", str(seconds * TIMES))
    else:
        depth = ("--max-examples", str(examples))
        (tmp_path / "schemathesis.toml").write_text(shared_phases(site))
    print(f"FUZZ_SEED={SEED} repeats this run")
    words = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{site.api.base}/openapi.json",
        "--header", carrier, "--checks", ",".join(CHECKS), *chosen,
        *depth, "--phases", "examples,coverage,fuzzing", "--workers", "1", "--request-timeout", "20",
        "--suppress-health-check", "all", "--continue-on-failure", "--seed", str(SEED), "--no-color",
        *(word for path in NEVER for word in ("--exclude-path", path)),
    ]  # fmt: skip
    token = carrier.partition(":")[2].removeprefix("Bearer ")
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS), "FUZZ_SESSION": token}
    run = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=50 * (TIMES + 3), check=False
    )
    assert run.returncode == 0, run.stdout[-12_000:] + run.stderr[-2000:]
    selected, tested = (re.search(rf"^  {what}: (\d+)", run.stdout, re.MULTILINE) for what in ("Selected", "Tested"))
    assert int(tested[1]) > 0
    assert TIMES or tested[1] == selected[1], "each operation was asked"
    assert "request_failed" not in site.log.read_text(errors="replace")
    assert site.api.is_ready()
