"""Loading of a site file from disk, with a check of the secrets and profiles that it names."""

from __future__ import annotations

import hashlib
import re
import ssl
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from drivers.device import Device, GateDevice
from drivers.osdp.section import OsdpReaderDevice, key_of
from drivers.profile_file import SHIPPED_PROFILES
from drivers.settings import NamesSecret
from gateway.domain.errors import ConfigError
from gateway.site.central_sections import is_jwt_file, is_seed
from gateway.site.certificates import serving_context
from gateway.site.doubts import doubts
from gateway.site.fault import SiteFault, moved, names_in, with_names
from gateway.site.faults import SiteFaults, check, faults_of
from gateway.site.fields import NamesAuthorities, marked
from gateway.site.file_accounts import FileAccount, account_faults, accounts_of
from gateway.site.formats import format_fault, former_places, outdated, understood
from gateway.site.models import Site
from gateway.site.profile_faults import profile_faults
from gateway.site.secrets import Secrets


def load(path: Path, *, secrets: Secrets | None = None, reader_keys: bool = True, text: bytes | None = None) -> Site:
    """Read and check a site file, secrets and profiles included. Raises SiteFaults.

    The faults are all that the models find; only without any, all that the checks between the parts find.

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
        raise SiteFaults(path, (SiteFault("", f"cannot be read: {error.strerror}"),)) from error
    except UnicodeDecodeError as error:
        raise SiteFaults(path, (SiteFault("", "is not UTF-8 text; save it as that"),)) from error
    except tomllib.TOMLDecodeError as error:
        raise SiteFaults(path, (SiteFault("", f"is not TOML: {error}", line=_line_of(error)),)) from error
    except (ValueError, RecursionError) as error:
        why = "is not TOML: a number is too long, or brackets are nested too deeply"
        raise SiteFaults(path, (SiteFault("", why),)) from error
    if (fault := format_fault(raw)) is not None:
        raise SiteFaults(path, (fault,))
    of_accounts = tuple(account_faults(raw))
    raw, former = understood(raw), former_places(raw)
    secrets = secrets or secrets_beside(path)
    try:
        site = _with_whole_paths(Site.model_validate(raw), path.parent)
    except ValidationError as error:
        found = (moved(fault, former) for fault in faults_of(error))
        raise SiteFaults(path, (*found, *of_accounts), names=names_in(raw)) from None  # it has values
    folders = profile_folders(site, path)
    faults = (
        *check(site),
        *of_accounts,
        *_secret_faults(site, secrets),
        *(_reader_key_faults(site, secrets) if reader_keys else ()),
        *profile_faults(site, folders, partial(find_profile, folders=folders)),
        *(SiteFault(place, words) for place, words, mark in _unusable_authorities(site) if not mark.loss),
    )
    if faults:
        raise SiteFaults(path, tuple(moved(fault, former) for fault in faults), names=names_in(raw))
    return site


def _line_of(error: tomllib.TOMLDecodeError) -> int:
    """Return the number of the line that is no TOML, 0 if unknown. Before Python 3.14 the text alone tells it."""
    found = re.search(r"\(at line (\d+)", str(error))
    return int(found.group(1)) if found else 0


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
    own = (path.parent / site.site.profiles,) if site.site.profiles else ()
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
    gates = {device.profile_name for device in site.devices if isinstance(device, GateDevice)}
    for name in dict.fromkeys(device.profile_name for device in site.devices if device.profile_name):
        found = find_profile(name, folders)
        raw = tomllib.loads(found.read_text("utf-8")) if found is not None else {}
        if raw.get("unproven"):
            yield f"profile {name}: {raw['unproven']}"
        close = raw.get("commands", {}).get("close", {})
        if name in gates and (close.get("pulse_by") == "host" or "release" in close):
            yield f"profile {name}: {_CLOSE_PULSE_BY_GATEWAY}"


def doubtful(site: Site, path: Path) -> Iterator[str]:
    """Yield a sentence for each likely mistake in a valid site file, and for each key that was renamed or removed."""
    folders, raw = profile_folders(site, path), _raw(path)
    former = former_places(raw)
    names = names_in(site.model_dump(mode="json"))
    for doubt in doubts(site, partial(find_profile, folders=folders)):
        yield str(with_names(moved(doubt, former), names))
    for sentence in outdated(raw):
        yield f"{sentence}; `edge-gateway check --rewrite` changes it in the file"
    for place, words, mark in _unusable_authorities(site):
        if mark.loss:
            yield f"{place}: {words}; until this is fixed {mark.loss}"
    yield from _certificate_doubts(site)


def _secret_faults(site: Site, secrets: Secrets) -> Iterator[SiteFault]:
    for place, name, mark in marked(site, NamesSecret):
        if mark.is_reader_key:
            continue
        try:
            secret = secrets.get(name, may_be_empty=mark.may_be_empty)
        except ConfigError as error:
            yield SiteFault(place, str(error))
            continue
        if place == "fleet.credentials" and not (is_seed(secret) or is_jwt_file(secret)):
            yield SiteFault(
                place, f"secret {name!r} is neither an NKey seed, SU…, nor the text of a JWT credentials file"
            )


def _reader_key_faults(site: Site, secrets: Secrets) -> Iterator[SiteFault]:
    """Yield faults for keys that are missing or malformed."""
    for index, device in enumerate(site.devices):
        if not isinstance(device, OsdpReaderDevice):
            continue
        try:
            text = secrets.get(device.key)
        except ConfigError as error:
            yield SiteFault(f"devices[{index}].key", f"{error}; `edge-gateway osdp provision` makes it")
            continue
        try:
            key_of(text)
        except ValueError as error:
            yield SiteFault(f"devices[{index}].key", f"secret {device.key!r} {error}")


def _raw(path: Path) -> Mapping[str, Any]:
    """Return what a site file has, nothing if it cannot be read: loading the file reports that."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _unusable_authorities(site: Site) -> Iterator[tuple[str, str, NamesAuthorities]]:
    """Yield each ca_file that cannot be used: its place, the file and what is wrong with it, and its mark."""
    for place, file, mark in marked(site, NamesAuthorities):
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            words = "is not a certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
            yield place, f"{file}: {words}", mark


def _certificate_doubts(site: Site) -> Iterator[str]:
    """Yield a warning if the interface cannot be served over TLS; it is not a fault, because lanes work without it."""
    if site.api.tls is None:
        return
    try:
        serving_context(site.api.tls)
    except ConfigError as error:
        yield f"{error}; until this is fixed the interface is not served"


@dataclass(frozen=True, slots=True)
class LoadedSite:
    """A valid site file.

    Attributes:
        site: the content of the file.
        text: the bytes of the file.
        profiles: a digest of each profile in use, by its name.
        secrets: a digest of each secret in use, by its name; never written to disk.
        accounts: the accounts that a file of an older format holds, for the register.
    """

    site: Site
    text: bytes = field(default=b"", repr=False)
    profiles: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    accounts: tuple[FileAccount, ...] = ()


def load_whole(path: Path, *, secrets: Secrets, text: bytes | None = None) -> LoadedSite:
    """Load a site file, or `text` instead of the file's own, with digests. Blocks on the disk. Raises SiteFaults."""
    if text is None:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise SiteFaults(path, (SiteFault("", f"cannot be read: {error.strerror}"),)) from error
    site = load(path, secrets=secrets, text=text)
    return LoadedSite(
        site=site,
        text=text,
        profiles=dict(_profiles(site, path)),
        secrets=dict(_digests(site, secrets)),
        accounts=accounts_of(text),
    )


def secrets_of(device: Device) -> tuple[str, ...]:
    """Return the names of a device's secrets."""
    return tuple(name for _, name, _ in marked(device, NamesSecret))


def _profiles(site: Site, path: Path) -> Iterator[tuple[str, str]]:
    folders = profile_folders(site, path)
    for name in sorted({device.profile_name for device in site.devices} - {""}):
        found = find_profile(name, folders)
        if found is not None:
            yield name, hashlib.sha256(found.read_bytes()).hexdigest()


def _digests(site: Site, secrets: Secrets) -> Iterator[tuple[str, str]]:
    for name in sorted({name for _, name, _ in marked(site, NamesSecret)}):
        try:
            yield name, hashlib.sha256(secrets.get(name, may_be_empty=True).encode()).hexdigest()
        except ConfigError:
            continue  # it was there when the file was checked; the part that needs it reports the error
