"""`edge-gateway backup` and `edge-gateway restore`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.target import USUAL_DATA, Data
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock, iso_utc

if TYPE_CHECKING:
    from gateway.backup.archive import Manifest

_USUAL_SITE = Path("/etc/edge-gateway/site.toml")
_PASSPHRASE = "EDGE_GATEWAY_BACKUP_PASSPHRASE"  # noqa: S105 (the name of a variable)
_SUFFIX = ".backup.tar.gz"

_Site = Annotated[Path, typer.Option("--site", metavar="SITE.toml", help="The site file.", show_default=True)]
_PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help=f"The passphrase of the secrets; else it is read from {_PASSPHRASE}, or asked for.",
    ),
]
_WithoutSecrets = Annotated[bool, typer.Option("--without-secrets", help="Leave the secrets out.")]


def backup(
    target: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="The file to write, or a folder in which it gets a name.")
    ],
    *,
    keep: Annotated[
        int, typer.Option("--keep", metavar="COUNT", min=0, help="Delete older backups in DIR but so many; 0: none.")
    ] = 0,
    site: _Site = _USUAL_SITE,
    data: Data = USUAL_DATA,
    passphrase_file: _PassphraseFile = None,
    without_secrets: _WithoutSecrets = False,
) -> None:
    """Write a backup: databases, site file, profiles, sealed secrets. The gateway may run meanwhile.

    Footage is not in it. Events name people and plates, so keep it where only those may read it who may know them.

    Example: edge-gateway backup /media/usb/north-yard.backup.tar.gz
    """
    import importlib.metadata  # noqa: PLC0415  # help answers faster

    from gateway.backup.making import Place, make_backup  # noqa: PLC0415
    from gateway.site import Secrets, load, secrets_folder  # noqa: PLC0415

    name = load(site, secrets=Secrets(folder=secrets_folder(site))).site.name if site.is_file() else ""
    passphrase = "" if without_secrets else _passphrase(passphrase_file, new=True)
    now = iso_utc(SystemClock().wall().micros)
    file = target / f"{now[:23].replace(':', '')}{_SUFFIX}" if target.is_dir() else target
    if not file.parent.is_dir():
        raise ConfigError(f"there is no folder {file.parent}")
    make_backup(
        Place(site_file=site, data=data),
        file,
        passphrase=passphrase,
        site=name,
        version=importlib.metadata.version("edge-gateway"),
        made_at=now,
    )
    typer.echo(f"{file} is written, {file.stat().st_size // 1024 + 1} kB{', without secrets' * (not passphrase)}")
    if keep and target.is_dir():
        for older in sorted(target.glob(f"*{_SUFFIX}"))[:-keep]:
            older.unlink()
            typer.echo(f"{older} is deleted: {keep} are kept")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")],
    *,
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

    Nothing is changed unless the whole backup is good. Afterwards numbers of events go on far above the old ones,
    people sign in anew, and each record that waits for central is looked for there before it is sent.

    Example: edge-gateway restore /media/usb/north-yard.backup.tar.gz
    """
    from gateway.backup.making import Place  # noqa: PLC0415  # help answers faster
    from gateway.backup.restoring import has_secrets, verify  # noqa: PLC0415
    from gateway.backup.restoring import restore as put_back  # noqa: PLC0415

    passphrase = "" if without_secrets or not has_secrets(file) else _passphrase(passphrase_file, new=False)
    if check:
        typer.echo(f"{file} is good: {_told(verify(file, passphrase=passphrase))}")
        return
    manifest = put_back(file, Place(site_file=site, data=data), passphrase=passphrase, replace=replace)
    typer.echo(f"restored {_told(manifest)}")
    if manifest.has_secrets and not passphrase:
        typer.echo(f"Secrets are not restored: put them in {site.parent / 'secrets'} and {site.parent / 'tls'}.")
    typer.echo(f"Next: edge-gateway check {site}, then systemctl start edge-gateway")


def _told(manifest: Manifest) -> str:
    secrets = "with secrets" if manifest.has_secrets else "without secrets"
    return f"{manifest.site or 'a site'} as of {manifest.made_at[:19]} UTC, release {manifest.version}, {secrets}"


def _passphrase(file: Path | None, *, new: bool) -> str:
    if file is not None:
        try:
            found = file.read_text().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the passphrase cannot be read from {file}") from error
    else:
        found = os.environ.get(_PASSPHRASE) or typer.prompt(
            "Passphrase of the backup", hide_input=True, err=True, confirmation_prompt=new
        )
    if not found:
        raise ConfigError("the passphrase is empty")
    return found
