"""Reading a site file from disk, with the secrets and profiles that it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from drivers.modbus.profile import ProfileError, load_profile
from gateway.domain.errors import ConfigError
from gateway.site.draft import Draft, read_draft
from gateway.site.faults import Fault, SiteFaults, check_draft, faults_of
from gateway.site.models import ModbusGateDevice, Site, SiteSection
from gateway.site.osdp_keys import osdp_key_faults
from gateway.site.secrets import Secrets


def load(path: Path, *, secrets: Secrets | None = None, reader_keys: bool = True) -> Site:
    """Read and check a site file, secrets included. Raises SiteFaults with every fault found.

    `secrets` are those beside the file unless given. Without `reader_keys`, keys of readers need not be there yet.
    """
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SiteFaults(path, (Fault("", f"cannot be read: {error.strerror}"),)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SiteFaults(path, (Fault("", f"is not TOML: {error}"),)) from error
    secrets = secrets or secrets_beside(path)
    site, draft, refused = read_draft(raw)
    faults = tuple(dict.fromkeys(fault for error in refused for fault in faults_of(error)))
    faults += (
        *check_draft(draft),
        *_secret_faults(draft, secrets),
        *(Fault(place, message) for place, message in (osdp_key_faults(draft, secrets) if reader_keys else ())),
        *_profile_faults(draft, path),
    )
    if faults or site is None:
        raise SiteFaults(path, faults)
    return site


def secrets_beside(path: Path) -> Secrets:
    """The secrets of the site file at `path`."""
    return Secrets(folder=secrets_folder(path))


def secrets_folder(path: Path) -> Path:
    """Where the 0600 files of the site file at `path` are."""
    return path.parent / "secrets"


def profile_folders(site: Site, path: Path) -> tuple[Path, ...]:
    """Where device profiles are looked for, the site's own folder first."""
    return _profile_folders(site.site, path)


def _profile_folders(site: SiteSection | None, path: Path) -> tuple[Path, ...]:
    here = Path(__file__).resolve().parents[2] / "config" / "profiles"
    shared = Path("/usr/share/edge-gateway/profiles")
    own = (path.parent / site.profiles,) if site and site.profiles else ()
    return (*own, path.parent / "profiles", here, shared)


def find_profile(name: str, folders: Iterable[Path]) -> Path | None:
    """The first `<name>.toml` in the folders, or None."""
    return next((found for folder in folders if (found := folder / f"{name}.toml").is_file()), None)


def _secret_faults(draft: Draft, secrets: Secrets) -> Iterator[Fault]:
    named: list[tuple[str, str]] = [
        (f"api.accounts[{index}].password", account.password) for index, account in draft.accounts.sound.items()
    ]
    if draft.central:
        named.append(("central.password", draft.central.password))
    named += [
        (f"cameras[{index}].password", camera.password)
        for index, camera in draft.cameras.sound.items()
        if camera.password is not None
    ]
    for place, name in named:
        try:
            secrets.get(name)
        except ConfigError as error:
            yield Fault(place, str(error))


def _profile_faults(draft: Draft, path: Path) -> Iterator[Fault]:
    folders = _profile_folders(draft.site, path)
    points: dict[int, frozenset[str]] = {}
    for index, device in draft.devices.sound.items():
        if not isinstance(device, ModbusGateDevice):
            continue
        found = find_profile(device.profile, folders)
        if found is None:
            yield Fault(f"devices[{index}].profile", f"no profile {device.profile!r}")
            continue
        try:
            points[device.id] = frozenset(load_profile(found).points)
        except ProfileError as error:
            yield from (Fault(f"devices[{index}].profile", line) for line in str(error).splitlines())
    for index, lane in draft.lanes.sound.items():
        safety = ((f"safety[{number}]", ref) for number, ref in enumerate(lane.safety))
        for field, ref in (("arming", lane.arming), ("closing", lane.closing), *safety):
            known = points.get(ref.device)
            if known is not None and ref.point not in known:
                names = ", ".join(sorted(known)) or "none"
                yield Fault(
                    f"lanes[{index}].{field}.point", f"device {ref.device} has no point {ref.point!r} (it has {names})"
                )
