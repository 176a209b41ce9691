"""Loading of a site file from disk, with a check of the secrets and profiles that it names."""

from __future__ import annotations

import contextlib
import re
import ssl
import tomllib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from drivers.profile_file import SHIPPED_PROFILES
from gateway.domain.errors import ConfigError
from gateway.site.certificates import serving_context
from gateway.site.doubts import doubts
from gateway.site.draft import Draft, read_draft
from gateway.site.fault import Fault, names_in, with_names
from gateway.site.faults import SiteFaults, check_draft, faults_of
from gateway.site.fleet_section import is_jwt_file, is_seed
from gateway.site.formats import format_fault, outdated, understood
from gateway.site.http_devices import (
    AxisPlatesDevice,
    DahuaPlatesDevice,
    HikvisionBarrierDevice,
    PlateRecognizerDevice,
)
from gateway.site.models import (
    Device,
    ModbusDevice,
    ModbusGateDevice,
    OsdpReaderDevice,
    SerialReaderDevice,
    Site,
    SiteSection,
)
from gateway.site.osdp_keys import osdp_key_faults
from gateway.site.profile_faults import profile_faults
from gateway.site.secrets import Secrets
from gateway.site.serial_devices import SerialDevice, SerialGateDevice

_MAY_BE_EMPTY = re.compile(r"(?:cameras|devices)\[\d+\]\.password")
"""Secrets that may be empty: some cameras and devices have accounts without a password."""


def load(path: Path, *, secrets: Secrets | None = None, reader_keys: bool = True, text: bytes | None = None) -> Site:
    """Read and check a site file, secrets and profiles included. Raises SiteFaults with all faults.

    Args:
        path: the site file.
        secrets: the secrets; None for those beside the file.
        reader_keys: whether the keys of OSDP readers must exist.
        text: a text to load instead of the file's own.
    """
    try:
        # some editors write a byte order mark
        raw = tomllib.loads((path.read_bytes() if text is None else text).decode("utf-8-sig"))
    except OSError as error:
        raise SiteFaults(path, (Fault("", f"cannot be read: {error.strerror}"),)) from error
    except UnicodeDecodeError as error:
        raise SiteFaults(path, (Fault("", "is not UTF-8 text; save it as that"),)) from error
    except tomllib.TOMLDecodeError as error:
        raise SiteFaults(path, (Fault("", f"is not TOML: {error}"),)) from error
    except (ValueError, RecursionError) as error:
        why = "is not TOML: a number is too long, or brackets are nested too deeply"
        raise SiteFaults(path, (Fault("", why),)) from error
    if (fault := format_fault(raw)) is not None:
        raise SiteFaults(path, (fault,))
    raw = understood(raw)
    secrets = secrets or secrets_beside(path)
    site, draft, refused = read_draft(raw)
    site = site and _with_whole_paths(site, path.parent)
    folders = _profile_folders(draft.site, path)
    faults = tuple(dict.fromkeys(fault for error in refused for fault in faults_of(error)))
    faults += (
        *check_draft(draft),
        *_secret_faults(draft, secrets),
        *(osdp_key_faults(draft, secrets) if reader_keys else ()),
        *profile_faults(draft, folders, partial(find_profile, folders=folders)),
        *_authority_faults(site),
    )
    if faults or site is None:
        raise SiteFaults(path, faults, names=names_in(raw))
    return site


def _with_whole_paths(site: Site, folder: Path) -> Site:
    """Make the paths of `[api.tls]` absolute: relative ones begin at the site file's folder, for every command."""
    if site.api.tls is None:
        return site
    api = site.api.model_copy(update={"tls": site.api.tls.beside(folder.absolute())})
    return site.model_copy(update={"api": api})


def secrets_beside(path: Path) -> Secrets:
    """Return the secrets of the site file at `path`."""
    return Secrets(folder=secrets_folder(path))


def secrets_folder(path: Path) -> Path:
    """Return the folder of secret files for the site file at `path`."""
    return path.parent / "secrets"


def profile_folders(site: Site, path: Path) -> tuple[Path, ...]:
    """Return the folders to search for device profiles, in order: the site's own first."""
    return _profile_folders(site.site, path)


def _profile_folders(site: SiteSection | None, path: Path) -> tuple[Path, ...]:
    own = (path.parent / site.profiles,) if site and site.profiles else ()
    return (*own, path.parent / "profiles", SHIPPED_PROFILES)


def find_profile(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the first `<name>.toml` in the folders, or None."""
    return next((found for folder in folders if (found := folder / f"{name}.toml").is_file()), None)


_CLOSE_PULSE_BY_GATEWAY = (
    "the gateway itself ends the pulse of the close output; if it stops during the pulse, the output stays on until the"
    " gateway is back. Prefer a device that makes the pulse"
)


def unproven(site: Site, path: Path) -> Iterator[str]:
    """Yield a sentence for each profile in use that is unproven, or whose close pulse depends on the gateway."""
    folders = profile_folders(site, path)
    named = [device for device in site.devices if isinstance(device, ModbusDevice | SerialDevice)]
    gates = {device.profile for device in named if isinstance(device, ModbusGateDevice | SerialGateDevice)}
    for name in dict.fromkeys(device.profile for device in named):
        found = find_profile(name, folders)
        raw = tomllib.loads(found.read_text("utf-8")) if found is not None else {}
        if raw.get("unproven"):
            yield f"profile {name}: {raw['unproven']}"
        close = raw.get("commands", {}).get("close", {})
        if name in gates and (close.get("pulse_by") == "host" or "release" in close):
            yield f"profile {name}: {_CLOSE_PULSE_BY_GATEWAY}"


def doubtful(site: Site, path: Path) -> Iterator[str]:
    """Yield a sentence for each likely mistake in a valid site file."""
    folders = profile_folders(site, path)
    names = names_in(site.model_dump(mode="json"))
    for doubt in doubts(site, partial(find_profile, folders=folders)):
        yield str(with_names(doubt, names))
    yield from _format_doubts(path)
    yield from _authority_doubts(site)
    yield from _certificate_doubts(site)


def _secret_faults(draft: Draft, secrets: Secrets) -> Iterator[Fault]:
    named: list[tuple[str, str]] = [
        (f"api.accounts[{index}].password", account.password) for index, account in draft.accounts.sound.items()
    ]
    if draft.central:
        named.append(("central.password", draft.central.password))
        named += [("central.totp", draft.central.totp)] if draft.central.totp else []
    if draft.fleet and draft.fleet.credentials:
        named.append(("fleet.credentials", draft.fleet.credentials))
    if draft.mqtt and draft.mqtt.password:
        named.append(("mqtt.password", draft.mqtt.password))
    if draft.backup:
        named += [(f"backup.{key}", name) for key, name in draft.backup.secrets()]
    if draft.rtsp:
        named.append(("rtsp.password", draft.rtsp.password))
    for index, camera in draft.cameras.sound.items():
        keys = (("password", camera.password), ("token", camera.token))
        named += [(f"cameras[{index}].{key}", name) for key, name in keys if name is not None]
    for index, device in draft.devices.sound.items():
        named += [(f"devices[{index}].{key}", name) for key, name in device_secrets(device)]
    for place, name in named:
        try:
            secret = secrets.get(name, may_be_empty=_MAY_BE_EMPTY.fullmatch(place) is not None)
        except ConfigError as error:
            yield Fault(place, str(error))
            continue
        if place == "fleet.credentials" and not (is_seed(secret) or is_jwt_file(secret)):
            yield Fault(place, f"secret {name!r} is neither an NKey seed, SU…, nor the text of a JWT credentials file")


def device_secrets(device: Device) -> Iterator[tuple[str, str]]:
    """Yield each key of a device that names a secret, with that name; `osdp_keys` checks OSDP keys."""
    if isinstance(device, ModbusDevice | SerialDevice | SerialReaderDevice | OsdpReaderDevice):
        return
    if not isinstance(device, AxisPlatesDevice | PlateRecognizerDevice) and device.password is not None:
        yield "password", device.password
    if not isinstance(device, HikvisionBarrierDevice | DahuaPlatesDevice) and device.token is not None:
        yield "token", device.token


def _format_doubts(path: Path) -> Iterator[str]:
    """Yield a warning for each key of the file that has been renamed or removed; the file is still understood."""
    with contextlib.suppress(OSError, ValueError):  # loading the file reports these
        for sentence in outdated(tomllib.loads(path.read_text("utf-8-sig"))):
            yield f"{sentence}; `edge-gateway check --rewrite` changes it in the file"


def _authority_faults(site: Site | None) -> Iterator[Fault]:
    """Yield the fault of `[webhooks]` ca_file, if it has one."""
    ca_file = site.webhooks.ca_file if site else None
    if ca_file is not None and (words := _unusable(ca_file)):
        yield Fault("webhooks.ca_file", f"{ca_file}: {words}")


def _authority_doubts(site: Site) -> Iterator[str]:
    """Yield warnings for ca_file of sections without which lanes work; they are no faults."""
    ca_file = site.central.ca_file if site.central else None
    if ca_file is not None and (words := _unusable(ca_file)):
        yield f"central.ca_file: {ca_file}: {words}; until this is fixed there is no line to central"
    ca_file = site.fleet.ca_file if site.fleet else None
    if ca_file is not None and (words := _unusable(ca_file)):
        yield f"fleet.ca_file: {ca_file}: {words}; until this is fixed there is no line to the fleet"
    ca_file = site.mqtt.ca_file if site.mqtt else None
    if ca_file is not None and (words := _unusable(ca_file)):
        yield f"mqtt.ca_file: {ca_file}: {words}; until this is fixed there is no line to the MQTT broker"
    ca_file = site.backup.ca_file
    if ca_file is not None and (words := _unusable(ca_file)):
        yield f"backup.ca_file: {ca_file}: {words}; until this is fixed no backup is sent to the S3 store"


def _certificate_doubts(site: Site) -> Iterator[str]:
    """Yield a warning if the interface cannot be served over TLS; it is not a fault, because lanes work without it."""
    if site.api.tls is None:
        return
    try:
        serving_context(site.api.tls)
    except ConfigError as error:
        yield f"{error}; until this is fixed the interface is not served"


def _unusable(ca_file: str) -> str:
    """Return why a file has no usable certificate authorities, "" if it has."""
    try:
        ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        return "is not a certificate in PEM form" if isinstance(error, ssl.SSLError) else str(error.strerror)
    return ""
