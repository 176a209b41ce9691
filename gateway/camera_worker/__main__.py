"""The command `python -m gateway.camera_worker --socket PATH --media DIR [--parent PID]`.

It imports little at first: the process is tied to its parent before slow imports, so that a parent which dies at once
leaves no orphan.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gateway.runtime.process_settings import do_without_rich, tie_to_parent


def main() -> None:
    """Tie this process to its parent, then run the worker."""
    parent = os.getppid()
    tie_to_parent()
    do_without_rich()
    parser = argparse.ArgumentParser(prog="gateway.camera_worker", description="Records cameras for a gateway.")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to serve at")
    parser.add_argument("--media", type=Path, required=True, help="folder of footage, the only one to write in")
    parser.add_argument("--parent", type=int, default=parent, help="end when this is not the parent process")
    asked = parser.parse_args()
    from gateway.camera_worker.process import run  # noqa: PLC0415  # slow; see above

    run(asked.socket, media=asked.media, parent=asked.parent)


if __name__ == "__main__":
    main()
