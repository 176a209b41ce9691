"""`edge-gateway backup` and `edge-gateway restore`."""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.printing import prompt_for_secret
from gateway.cli.target import USUAL_DATA, Data
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock, iso_utc

if TYPE_CHECKING:
    from gateway.backup.archive import BackupManifest
    from gateway.backup.making import FilePlaces
    from gateway.site.backup_section import BackupSection, S3Address, SftpAddress

_USUAL_SITE = Path("/etc/edge-gateway/site.toml")
_USUAL_SETTINGS = Path("/etc/edge-gateway-backup/backup.toml")
"""The `[backup]` of root's backups. The gateway may write its site file, and must not say where root writes."""
_PASSPHRASE = "EDGE_GATEWAY_BACKUP_PASSPHRASE"  # noqa: S105 (the name of a variable)

_Site = Annotated[Path, typer.Option("--site", metavar="SITE.toml", help="The site file.", show_default=True)]
_PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help=f"Holds the passphrase of the backup; else it is read from {_PASSPHRASE}, or asked for.",
    ),
]
_WithoutSecrets = Annotated[bool, typer.Option("--without-secrets", help="Leave the secrets out.")]


def backup(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|DIR|ADDRESS]",
            help="The file to write, or a folder, sftp://… or s3://… in which it gets a name; else \\[backup] target.",
            show_default=False,
        ),
    ] = "",
    *,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="COUNT",
            min=0,
            help="Delete older backups there but so many; 0: none. \\[backup] keep for its target, else 0.",
            show_default=False,
        ),
    ] = None,
    footage: Annotated[
        bool | None,
        typer.Option(
            "--footage/--without-footage",
            help="With the footage that camera events hold, and their evidence. \\[backup] footage for its target.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help=f"Where \\[backup] is, secrets beside it: {_USUAL_SETTINGS} if it is there, else the site file.",
            show_default=False,
        ),
    ] = None,
    site: _Site = _USUAL_SITE,
    data: Data = USUAL_DATA,
    passphrase_file: _PassphraseFile = None,
    without_secrets: _WithoutSecrets = False,
) -> None:
    """Write a backup: databases, site file, profiles, sealed secrets. The gateway may run meanwhile.

    Footage is only in it with `--footage`. Events name people and plates, so keep it where only people who may see
    those can read it. The section `backup` says how a far place is reached, and where a backup goes without an address.
    Run as root, it is read only from a file that nobody else may write. A backup in a far place is read back and
    compared before it counts as good.

    Example: edge-gateway backup /media/usb/north-yard.backup.tar.gz

    Example: edge-gateway backup --footage /media/usb

    Example: edge-gateway backup sftp://gate@backup.example.com/srv/north-yard

    Example: edge-gateway backup s3://yard-backups/north-yard
    """
    from gateway.backup.last_backup import noted  # noqa: PLC0415  # help answers faster
    from gateway.backup.making import FilePlaces  # noqa: PLC0415

    clock = SystemClock()
    with nullcontext() if target else noted(data, now=lambda: clock.wall().micros):
        _back_up(
            target,
            keep=keep,
            footage=footage,
            place=FilePlaces(site_file=site, data=data),
            settings=settings or (_USUAL_SETTINGS if _USUAL_SETTINGS.exists() else site),
            passphrase=_passphrase(passphrase_file, new=True),
            with_secrets=not without_secrets,
        )


def _back_up(
    target: str,
    *,
    keep: int | None,
    footage: bool | None,
    place: FilePlaces,
    settings: Path,
    passphrase: str,
    with_secrets: bool,
) -> None:
    """Write a backup to `target`, or where the settings say."""
    import importlib.metadata  # noqa: PLC0415  # help answers faster

    from gateway.backup.archive import usual_name  # noqa: PLC0415
    from gateway.backup.destinations import delete_older, far_place, split  # noqa: PLC0415
    from gateway.backup.making import make_backup  # noqa: PLC0415
    from gateway.site import Secrets, load, secrets_beside, secrets_folder  # noqa: PLC0415
    from gateway.site.backup_section import BackupSection  # noqa: PLC0415

    site = place.site_file
    loaded = load(site, secrets=Secrets(folder=secrets_folder(site))) if site.is_file() else None
    section = BackupSection() if settings == site and loaded is None else _section(settings)
    if section.model_fields_set - {"overdue_hours"}:
        _expect_roots_own(settings)
    address = _address(target or section.target)
    kept = keep if keep is not None else 0 if target else section.keep
    now = iso_utc(SystemClock().wall().micros)

    def write(file: Path) -> None:
        make_backup(
            place,
            file,
            passphrase=passphrase,
            site="" if loaded is None else loaded.site.name,
            version=importlib.metadata.version("edge-gateway"),
            made_at=now,
            with_secrets=with_secrets,
            with_footage=footage if footage is not None else section.footage and not target,
            left_out=lambda name: typer.echo(f"{name} is left out: it is a link, or has several names", err=True),
        )

    if isinstance(address, Path):
        file = address if target and not address.is_dir() else address / usual_name(now)
        write(file)
        _tell_written(str(file), file, with_secrets=with_secrets)
        if kept and address.is_dir():
            for older in delete_older(address, keep=kept):
                typer.echo(f"{older} is deleted: {kept} are kept")
        return
    folder, name = split(address)
    far = far_place(folder, section, secrets_beside(settings).get)
    far.names()  # what cannot be reached is told before all the work
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=_near(place.data)) as near:
        draft = Path(near) / "draft"
        write(draft)
        far.put(draft, name or usual_name(now))
        _tell_written(f"{folder}/{name or usual_name(now)}", draft, with_secrets=with_secrets)
    if kept and not name:
        for old in far.names()[:-kept]:
            far.delete(old)
            typer.echo(f"{folder}/{old} is deleted: {kept} are kept")


def restore(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ADDRESS", help="The backup; with an sftp://… or s3://… folder, the newest that is there."
        ),
    ],
    *,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help="Where \\[backup] says how ADDRESS is reached, else the site file; secrets are beside it.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the backup; change nothing.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Keep what is there under another name, and take its place.")
    ] = False,
    site: _Site = _USUAL_SITE,
    data: Data = USUAL_DATA,
    passphrase_file: _PassphraseFile = None,
    without_secrets: _WithoutSecrets = False,
) -> None:
    """Put a backup in its places on this box, or with `--check` see whether it is good. Stop the gateway first.

    Nothing is changed unless the whole backup is good and was made with the passphrase. Afterwards numbers of events
    go on far above the old ones, people sign in anew, and each record that waits for central is looked for there before
    it is sent.

    Example: edge-gateway restore /media/usb/north-yard.backup.tar.gz

    Example: edge-gateway restore sftp://gate@backup.example.com/srv/north-yard --settings /root/site.toml

    Example: edge-gateway restore s3://yard-backups/north-yard/2026-01-01T032000.000.backup.tar.gz --check
    """
    from gateway.backup.making import FilePlaces  # noqa: PLC0415  # help answers faster
    from gateway.backup.restoring import restore as put_back  # noqa: PLC0415
    from gateway.backup.restoring import verify  # noqa: PLC0415

    with _fetched(source, settings or site) as (file, called):
        passphrase = _passphrase(passphrase_file, new=False)
        if check:
            typer.echo(f"{called} is good: {_told(verify(file, passphrase=passphrase))}")
            return
        manifest = put_back(
            file,
            FilePlaces(site_file=site, data=data),
            passphrase=passphrase,
            with_secrets=not without_secrets,
            replace=replace,
        )
    typer.echo(f"restored {_told(manifest)}")
    if manifest.has_secrets and without_secrets:
        typer.echo(f"Secrets are not restored: put them in {site.parent / 'secrets'} and {site.parent / 'tls'}.")
    typer.echo(f"Next: edge-gateway check {quote(str(site))}, then systemctl start edge-gateway")


def _near(data: Path) -> Path | None:
    """Return the folder for a draft: the data folder, but for root one that nobody else may change."""
    if os.geteuid() == 0:
        return Path("/var/tmp")  # noqa: S108  # a new folder in it, which only root may enter
    return data if data.is_dir() else None


def _expect_roots_own(file: Path) -> None:
    """Refuse what says where root reads and writes if somebody else may change it. Raises ConfigError."""
    if os.geteuid() != 0 or not file.exists():
        return
    for part in (file, file.parent):
        found = part.lstat()
        if found.st_uid != 0 or found.st_mode & 0o022 or stat.S_ISLNK(found.st_mode):
            raise ConfigError(
                f"{part} may be changed by others than root, and says where root's backups go: put [backup] into"
                f" {_USUAL_SETTINGS} and the passphrase and secrets beside it, as the page on backups says"
            )


def _tell_written(called: str, file: Path, *, with_secrets: bool) -> None:
    typer.echo(f"{called} is written, {file.stat().st_size // 1024 + 1} kB{', without secrets' * (not with_secrets)}")


def _address(text: str) -> Path | SftpAddress | S3Address:
    from gateway.site.backup_section import backup_address  # noqa: PLC0415  # help answers faster

    try:
        return backup_address(text)
    except ValueError as error:
        raise ConfigError(f"the address {error}") from error


@contextmanager
def _fetched(source: str, settings: Path) -> Iterator[tuple[Path, str]]:
    """Yield a backup's file, and its name for people. One that is elsewhere is fetched meanwhile."""
    from gateway.backup.destinations import far_place, split  # noqa: PLC0415  # help answers faster
    from gateway.site import secrets_beside  # noqa: PLC0415

    address = _address(source)
    if isinstance(address, Path):
        yield address, source
        return
    folder, name = split(address)
    far = far_place(folder, _section(settings), secrets_beside(settings).get)
    if not name:
        names = far.names()
        if not names:
            raise ConfigError(f"there is no backup in {folder}")
        name = names[-1]
    with tempfile.TemporaryDirectory(prefix="edge-gateway-restore-") as near:
        file = Path(near) / name
        far.get(name, file)
        yield file, f"{folder}/{name}"


def _section(settings: Path) -> BackupSection:
    """Read `[backup]` alone of a file: on a new box nothing else of it need be right yet."""
    from pydantic import ValidationError  # noqa: PLC0415  # help answers faster

    from gateway.site.backup_section import BackupSection  # noqa: PLC0415

    try:
        return BackupSection.model_validate(tomllib.loads(settings.read_text("utf-8-sig")).get("backup", {}))
    except OSError as error:
        raise ConfigError(
            f"{settings} cannot be read: its [backup] says how the address is reached; name another with --settings"
        ) from error
    except ValidationError as error:
        raise ConfigError(f"[backup] in {settings}: {error.errors(include_input=False)[0]['msg']}") from error
    except ValueError as error:
        raise ConfigError(f"{settings} is not TOML in UTF-8") from error


def _told(manifest: BackupManifest) -> str:
    secrets = "with secrets" if manifest.has_secrets else "without secrets"
    return f"{manifest.site or 'a site'} as of {manifest.made_at[:19]} UTC, release {manifest.version}, {secrets}"


def _passphrase(file: Path | None, *, new: bool) -> str:
    if file is not None:
        _expect_roots_own(file)
        try:
            found = file.read_text().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the passphrase cannot be read from {file}") from error
    else:
        found = os.environ.get(_PASSPHRASE) or prompt_for_secret(
            "Passphrase of the backup",
            otherwise=f"use --passphrase-file or set {_PASSPHRASE}",
            twice=new,
        )
    if not found:
        raise ConfigError("the passphrase is empty")
    return found
