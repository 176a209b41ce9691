"""The running demo, asked everything that its own description allows and much that it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("who", "seconds"), [("gateway", 30), ("central", 15)])
def test_nothing_breaks_and_every_answer_is_as_described(make_site: Callable, tmp_path: Path, who: str, seconds: int):
    site = make_site(traffic=False)
    words = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{site.api.base}/openapi.json",
        "--header", f"SessionID:{site.api.session}", "--checks", ",".join(CHECKS),
        "--exclude-by", f"/x-answered-by != {who}", "--max-examples", "25", "--max-time", str(seconds),
        "--phases", "examples,coverage,fuzzing", "--workers", "1", "--request-timeout", "20",
        "--suppress-health-check", "all", "--continue-on-failure", "--seed", "7", "--no-color",
        *(word for path in NEVER for word in ("--exclude-path", path)),
    ]  # fmt: skip
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS), "FUZZ_SESSION": site.api.session}
    run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert run.returncode == 0, run.stdout[-12_000:] + run.stderr[-2000:]
    assert "request_failed" not in site.tail()
    assert site.api.is_ready()
