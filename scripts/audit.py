"""Ask an advisory service for known faults of the locked libraries: `python scripts/audit.py LOCK`.

Ends with 0 if all were looked up and none has any, 1 if one has, 3 if not all could be looked up. Runs pip-audit of the
environment that it is started in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FAULTY, NOT_ASKED = 1, 3
_SECONDS = 900
_ELSEWHERE = "Run this where pypi.org answers, or name another service: make audit SERVICE=osv."


def told(report: str) -> tuple[int, list[str]]:
    """Return the exit status and the lines for pip-audit's report in JSON, "" if it made none."""
    if not report:
        return NOT_ASKED, [f"The advisory service could not be reached: nothing is known of any library. {_ELSEWHERE}"]
    found: list[dict[str, Any]] = json.loads(report)["dependencies"]
    looked_up = [one for one in found if "vulns" in one]
    lines = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no release'}"
        for one in looked_up
        for fault in one["vulns"]
    ]
    if missing := len(found) - len(looked_up):
        count = f"{missing} of {len(found)} libraries"
        return NOT_ASKED, [
            *lines,
            f"The advisory service knew nothing of {count}, so they were not audited. {_ELSEWHERE}",
        ]
    return (FAULTY, lines) if lines else (0, [f"No known fault in {len(found)} libraries."])


def audit(lock: Path, *, service: str) -> int:
    """Audit a lock and print what came of it. Return the exit status."""
    words = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-r", str(lock), "-s", service]
    words += ["--format", "json", "--progress-spinner", "off", "--timeout", "15"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_SECONDS)
        report = done.stdout
    except subprocess.TimeoutExpired:
        report = ""
    status, lines = told(report.strip())
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(audit(Path(sys.argv[1]), service=(sys.argv[2:] or ["pypi"])[0]))
