"""Reading of a device's profile file, validated by its model. Errors name every fault with its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from drivers.contract import DriverError

Profile = TypeVar("Profile", bound=BaseModel)

SHIPPED_PROFILES = Path(__file__).with_name("profiles")
"""The folder of the profiles that come with the gateway. It lies in the package so that a wheel contains it."""


PartName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]


class Part(BaseModel):
    """The base of all parts of a profile: frozen, with unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class ProfileError(DriverError, ValueError):
    """A profile file that cannot be used.

    `faults`: each fault with its place in the file. The text has one line per fault, which names the file too.
    """

    def __init__(self, path: Path, *faults: str) -> None:
        super().__init__("\n".join(f"{path}: {fault}" for fault in faults))
        self.faults = faults


def read_file(path: Path) -> dict[str, object]:
    """Read a TOML file. Raises ProfileError when it cannot be read or parsed."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ProfileError(path, f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(path, f"is not TOML: {error}") from error


def profile_of(path: Path, raw: Mapping[str, object], kind: type[Profile]) -> Profile:
    """Validate the file's content as a profile of this kind. Raises ProfileError with every fault."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        faults = (
            f"{'.'.join(str(part) for part in fault['loc']) or 'profile'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise ProfileError(path, *faults) from error


def numbers_for_keys(values: object) -> object:
    """Convert the keys of a TOML table, which are strings, to numbers: decimal or 0x….

    Anything that is no table is returned as it is, for the model to refuse.
    """
    if not isinstance(values, dict):
        return values
    return {int(key, 0) if isinstance(key, str) else key: value for key, value in values.items()}
