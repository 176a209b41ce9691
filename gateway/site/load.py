"""Reading a site file from disk, with the secrets and profiles that it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from gateway.domain.errors import ConfigError
from gateway.site.faults import Fault, SiteFaults, check, faults_of
from gateway.site.models import ModbusGateDevice, Site
from gateway.site.secrets import Secrets


def load(path: Path) -> Site:
    """Read and check a site file, secrets included. Raises SiteFaults with every fault found."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SiteFaults(path, (Fault("", f"cannot be read: {error.strerror}"),)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SiteFaults(path, (Fault("", f"is not TOML: {error}"),)) from error
    try:
        site = Site.model_validate(raw)
    except ValidationError as error:
        raise SiteFaults(path, tuple(faults_of(error))) from error
    faults = (*check(site), *_secret_faults(site, secrets_beside(path)), *_profile_faults(site, path))
    if faults:
        raise SiteFaults(path, faults)
    return site


def secrets_beside(path: Path) -> Secrets:
    """The secrets of the site file at `path`."""
    return Secrets(folder=path.parent / "secrets")


def profile_folders(site: Site, path: Path) -> tuple[Path, ...]:
    """Where device profiles are looked for, the site's own folder first."""
    here = Path(__file__).resolve().parents[2] / "config" / "profiles"
    shared = Path("/usr/share/edge-gateway/profiles")
    own = (path.parent / site.site.profiles,) if site.site.profiles else ()
    return (*own, path.parent / "profiles", here, shared)


def find_profile(name: str, folders: Iterable[Path]) -> Path | None:
    """The first `<name>.toml` in the folders, or None."""
    return next((found for folder in folders if (found := folder / f"{name}.toml").is_file()), None)


def _secret_faults(site: Site, secrets: Secrets) -> Iterator[Fault]:
    named: list[tuple[str, str]] = [
        (f"api.accounts[{index}].password", account.password) for index, account in enumerate(site.api.accounts)
    ]
    if site.central:
        named.append(("central.password", site.central.password))
    named += [
        (f"cameras[{index}].password", camera.password)
        for index, camera in enumerate(site.cameras)
        if camera.password is not None
    ]
    for place, name in named:
        try:
            secrets.get(name)
        except ConfigError as error:
            yield Fault(place, str(error))


def _profile_faults(site: Site, path: Path) -> Iterator[Fault]:
    folders = profile_folders(site, path)
    for index, device in enumerate(site.devices):
        if isinstance(device, ModbusGateDevice) and find_profile(device.profile, folders) is None:
            yield Fault(f"devices[{index}].profile", f"no profile {device.profile!r}")
