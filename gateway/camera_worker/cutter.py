"""`python -m gateway.camera_worker.cutter`: orders come over stdin, that each is begun and its outcome go to stdout.

Light on purpose: see `gateway.camera_worker.__main__`.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from gateway.camera_worker.parent import do_without_rich, stand_behind, tie_to_parent

_NICENESS = 10
_OUT_OF_MEMORY = 600
"""A clip is cut again when somebody asks; footage of a camera that is not recorded is lost."""


def main() -> None:
    """Serve until stdin ends."""
    tie_to_parent()
    stand_behind(niceness=_NICENESS, out_of_memory=_OUT_OF_MEMORY)
    do_without_rich()
    from gateway.camera_worker.clip import cut_clip  # noqa: PLC0415  # slow; see above
    from gateway.camera_worker.cutting import BEGUN, CutOrder, CutOutcome  # noqa: PLC0415
    from gateway.camera_worker.media_paths import BadRequest, MediaMissing  # noqa: PLC0415
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
