"""`edge-gateway demo`: a simulated site with the real gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the demo's data here; otherwise it is thrown away.", show_default=False),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 8480,
    central_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the simulated central service.")] = 8490,
    no_traffic: Annotated[bool, typer.Option("--no-traffic", help="No vehicles come unless you send one.")] = False,
) -> None:
    """Run a simulated site: barriers, card readers, cameras and a central service, with vehicles coming by.

    Example: edge-gateway demo --port 8480 --no-traffic
    """
    from gateway.demo import launcher  # noqa: PLC0415  # the whole simulated field; other commands do without it

    raise typer.Exit(launcher.launch(data=data, port=port, central_port=central_port, traffic=not no_traffic))
