"""The note of the last backup in the data folder: the command writes it, and the gateway tells what is wrong."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gateway.backup.faults import kind_of
from gateway.domain.errors import GatewayError
from gateway.domain.problems import ProblemKind
from gateway.problems.found import LastBackup
from gateway.runtime.beneath import Beneath, acting_as_owner
from gateway.runtime.durable_files import sync_folder

_NAME = "last-backup.json"
_LARGEST = 10_000
_BROKE_OFF = "the program broke off: see journalctl -u edge-gateway-backup"
_FORM = TypeAdapter(LastBackup)


def last_backup(data: Path) -> LastBackup | None:
    """Read the note from a data folder, None if there is none. Blocks on the disk."""
    try:
        with Beneath(data).open(_NAME) as file:
            return _FORM.validate_json(file.read(_LARGEST))
    except (OSError, ValidationError):
        return None  # the next backup writes it anew


@contextmanager
def noted(data: Path, *, now: Callable[[], int]) -> Iterator[None]:
    """Note in the data folder how the backup in this context ends."""
    try:
        yield
    except GatewayError as error:
        _note_failure(data, now(), kind_of(error), str(error).partition("\n")[0])
        raise
    except Exception:  # a defect of the program is a failed backup too; the error goes on
        _note_failure(data, now(), ProblemKind.BACKUP_FAILED, _BROKE_OFF)
        raise
    _write(data, LastBackup(good_at=now()))


def _note_failure(data: Path, now: int, kind: ProblemKind, why: str) -> None:
    before = last_backup(data) or LastBackup()
    _write(data, LastBackup(before.good_at, before.failing_since or now, kind, why))


def _write(data: Path, note: LastBackup) -> None:
    """Write the note for the folder's owner. Without room for it, the previous note stays and becomes overdue."""
    with suppress(OSError), acting_as_owner(data):
        descriptor, draft = tempfile.mkstemp(prefix=f".{_NAME}.", dir=data)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_FORM.dump_json(note))
                file.flush()
                os.fsync(descriptor)
            Path(draft).replace(data / _NAME)
            sync_folder(data)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
