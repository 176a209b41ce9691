"""`edge-gateway demo`: a simulated site with the real gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulation.demo import launcher


def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the demo's data here. Without it, the data is deleted at the end.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page. 0 picks a free one.")] = 8480,
    central_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the simulated central service.")] = 8490,
    no_traffic: Annotated[
        bool, typer.Option("--no-traffic", help="Send no vehicles except those you send from the page.")
    ] = False,
) -> None:
    """Run a simulated site with barriers, card readers, cameras, a central service and vehicles.

    Example: edge-gateway demo --port 8480 --no-traffic
    """
    raise typer.Exit(launcher.launch(data=data, port=port, central_port=central_port, traffic=not no_traffic))
