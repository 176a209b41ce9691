"""`edge-gateway evidence`: fetches an event's proof package from the running gateway, and verifies one anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gateway.cli.client import RunningGatewayClient, save
from gateway.cli.target import USUAL_DATA, Data, Url, connected
from gateway.proof_package import (
    MOST_BETWEEN,
    ClipEntry,
    Manifest,
    ProofBroken,
    Verified,
    chain_ends,
    check_chain,
    verify,
)
from gateway.web.answers import LeavesAnswer


class _EventFirst(TyperGroup):
    """A group whose command `fetch` may be left out: `evidence 4711 …` means `evidence fetch 4711 …`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, ["fetch", *args] if args and args[0].isdecimal() else args)


app = typer.Typer(
    cls=_EventFirst,
    no_args_is_help=True,
    help="Fetch the proof of an event as one signed file, or verify such a file on any machine.\n\n"
    "Example: edge-gateway evidence 4711\n\n"
    "Example: edge-gateway evidence verify event-4711.zip",
)


@app.command("fetch")
def fetch(
    event: Annotated[int, typer.Argument(min=1, help="The event's id, as the page and the interface show it.")],
    data: Data = USUAL_DATA,
    url: Url = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write. Default: event-EVENT.zip in this folder.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fetch an event's clips, segments' hashes and decision from the running gateway, signed with the site's key.

    The file also holds all events of the same visit of a vehicle, whichever of them you name. A camera without footage
    is listed with the reason.

    Example: edge-gateway evidence 4711
    """
    path = output or Path(f"event-{event}.zip")
    with connected(data, url) as gateway:
        typer.echo(f"Fetching event {event} …")
        save(gateway, f"/status/proof/{event}", path)
    typer.echo(f"{path}: {_summary(verify(path))}")


@app.command("verify")
def judge(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The package.")],
    key: Annotated[str, typer.Option(metavar="FINGERPRINT", help="The site's fingerprint, from its operator.")] = "",
) -> None:
    """Verify a package and say what it proves. The exit status is 1, with every fault, when it was changed.

    Without --key this proves only that nothing was changed since the signing. Compare the fingerprint with the site's
    own.

    Example: edge-gateway evidence verify event-4711.zip --key "12ab 34cd …"
    """
    try:
        found = verify(file, fingerprint=key)
    except ProofBroken as error:
        for fault in error.faults:
            typer.echo(f"{file}: {fault}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{file}: {_summary(found)}")
    if not key:
        typer.echo("note: compare the fingerprint with the one that the site's operator has; --key compares them")


@app.command("chain")
def chain(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The earlier package.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The later package, with a camera that is in both.")],
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Prove that no footage between two packages was changed or left out.

    The gateway supplies the links between them, even where that footage is deleted by now. Exit status 1 when they do
    not fit.

    Example: edge-gateway evidence chain event-4711.zip event-4890.zip
    """
    try:
        before, after = verify(old), verify(new)
        _must_share(before, after)
        with connected(data, url) as gateway:
            proofs = [
                _prove_chain(known, clip, gateway)
                for camera_id in sorted({clip.camera_id for clip in after.manifest.clips})
                if (known := _of_camera(before, camera_id)) and (clip := _of_camera(after, camera_id))
            ]
    except ProofBroken as error:
        for fault in error.faults:
            typer.echo(fault, err=True)
        raise typer.Exit(1) from error
    typer.echo("\n".join(proofs))


def _must_share(before: Verified, after: Verified) -> None:
    """Raise ProofBroken unless both packages are of the same site and have a camera in common."""
    if before.fingerprint != after.fingerprint:
        raise ProofBroken(("the packages are of two sites: other keys signed them",))
    old, new = ({clip.camera_id for clip in found.manifest.clips} for found in (before, after))
    if not old & new:
        raise ProofBroken(("no camera is in both packages",))


def _prove_chain(old: ClipEntry, new: ClipEntry, gateway: RunningGatewayClient) -> str:
    first, last = chain_ends(old, new)
    begin, end = first.number or 0, last.number or 0
    leaves: list[str] = []
    for low in range(begin, end - 1, MOST_BETWEEN):
        high = min(low + MOST_BETWEEN + 1, end)
        asking = f"/status/chain/{new.camera_id}?after={low}&before={high}"
        leaves += gateway.answer_of(LeavesAnswer, asking, None).leaves
    check_chain(first, last, leaves)
    return f"{new.camera}: proven from {first.path} to {last.path}, over {len(leaves)} segments between them"


def _summary(found: Verified) -> str:
    event, clips = found.manifest.event, found.manifest.clips
    doubt = "" if event.clock_trusted else " (the gateway's clock was not synchronised then)"
    lines = [
        f"as it was signed by {found.manifest.site}",
        f"  event {event.id}, {event.name}: {event.description}",
        f"  at {event.date_at}{doubt}, lane {event.lane_id or '-'}",
        *(f"  decision: {rule}" for rule in event.trace),
        *_rest_of_visit(found.manifest),
        *(f"  {clip.file}: {clip.camera}, made from {len(clip.segments)} segments" for clip in clips),
        *(f"  note: {note}" for note in found.notes),
        f"  made {found.manifest.made_at} by {found.manifest.made_by}",
        f"  key {found.fingerprint}",
    ]
    return "\n".join(lines)


def _rest_of_visit(manifest: Manifest) -> Iterator[str]:
    """Yield lines on the other events of the visit, each decision with its trace."""
    for event in manifest.visit:
        if event.id != manifest.event.id:
            yield f"  of the same visit, event {event.id} at {event.date_at}, {event.name}: {event.description}"
            yield from (f"    decision: {rule}" for rule in event.trace)


def _of_camera(found: Verified, camera_id: int) -> ClipEntry | None:
    """Return all of a camera's footage in a package as one clip, each segment once; None without footage of it."""
    clips = [clip for clip in found.manifest.clips if clip.camera_id == camera_id]
    segments = {segment.path: segment for clip in clips for segment in clip.segments}
    return clips[0].model_copy(update={"segments": tuple(segments.values())}) if clips else None
