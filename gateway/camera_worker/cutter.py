"""The process `python -m gateway.camera_worker.cutter`: it takes orders on stdin and answers on stdout.

For each order it writes that it has begun, and then the outcome. It imports little at first, as
`gateway.camera_worker.__main__` does, and for the same reason.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from gateway.runtime.process_settings import do_without_rich, lower_priority, tie_to_parent

_NICENESS = 10
_OUT_OF_MEMORY = 600
"""The kernel ends a cutter before a worker, because a clip can be cut again but unrecorded footage is lost."""


def main() -> None:
    """Serve until stdin ends."""
    tie_to_parent()
    lower_priority(niceness=_NICENESS, out_of_memory=_OUT_OF_MEMORY)
    do_without_rich()
    from gateway.camera_worker.clip import cut_clip  # noqa: PLC0415  # slow; see above
    from gateway.camera_worker.cut_orders import BEGUN, BadRequest, CutOrder, CutOutcome, MediaMissing  # noqa: PLC0415
    from gateway.camera_worker.thumbnail import take_thumbnail  # noqa: PLC0415
    from gateway.domain.footage import CutClip  # noqa: PLC0415

    def outcome(order: CutOrder) -> CutOutcome:
        media = Path(order.media)
        try:
            if isinstance(order.job, CutClip):
                return CutOutcome(made=cut_clip(media, order.job))
            return CutOutcome(made=take_thumbnail(media, order.job))
        except BadRequest as error:
            return CutOutcome(bad_request=str(error))
        except MediaMissing as error:
            return CutOutcome(missing=str(error))
        except OSError as error:
            return CutOutcome(disk=(error.errno or errno.EIO, error.strerror or type(error).__name__))

    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(BEGUN)
        sys.stdout.buffer.flush()
        answer = outcome(CutOrder.model_validate_json(line)).model_dump_json().encode()
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
