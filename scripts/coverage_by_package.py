"""Print the branch coverage of the last `make coverage` by package, the lowest first."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path


def main() -> None:
    """Print a line for each package."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", file], check=True)
        files = json.loads(file.read_text("utf-8"))["files"]
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, one in files.items():
        path = Path(name)
        package = ".".join(path.parent.parts[-4:] if path.is_absolute() else path.parent.parts)
        told = one["summary"]
        keys = ("covered_lines", "num_statements", "covered_branches", "num_branches")
        for key in (package, "all"):
            sums[key] = [total + told[part] for total, part in zip(sums[key], keys, strict=True)]
    print(f"{'package':46} {'statements':>10} {'branches':>10}")
    for name, (lines, all_lines, branches, all_branches) in sorted(sums.items(), key=lambda row: _share(row[1])):
        print(f"{name:46} {lines / max(1, all_lines):>10.1%} {branches / max(1, all_branches):>10.1%}")


def _share(counts: list[int]) -> float:
    lines, all_lines, branches, all_branches = counts
    return (lines + branches) / max(1, all_lines + all_branches)


if __name__ == "__main__":
    main()
