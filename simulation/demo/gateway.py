"""The gateway of the demo: the real one, with a button on its page that presents a card.

Run it as `python -m simulation.demo.gateway SITE.toml --data DIR --control URL`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import aiohttp
from aiohttp import web
from pydantic import ValidationError

from gateway.app.gateway import run
from gateway.domain.errors import ConfigError, GatewayError
from gateway.web.auth.callers import Caller
from gateway.web.families import Route
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import Operation, needs
from gateway.web.status.snapshot import DemoCard
from simulation.demo.control import Presented
from simulation.demo.scene import BAD_CARDS, GOOD_CARDS, MISCONFIGURED

DEMO_PRESENT = Operation("POST", "/status/demo/present", needs("can_control_devices"), "lane")
"""Only in the demo: `{lane_id, card}` presents a card."""
_SECONDS = 3.0


def demo_cards() -> tuple[DemoCard, ...]:
    """List the cards that the page offers to present."""
    return tuple(DemoCard(card=card.sent, label=card.label) for card in (*GOOD_CARDS[:2], *BAD_CARDS))


def present_route(control: str) -> Route:
    """Make the route `POST /status/demo/present`, which the simulated field at `control` answers."""

    async def present(request: web.Request, _: Caller) -> web.StreamResponse:
        try:
            wish = Presented.model_validate_json(await request.read())
        except ValidationError as error:
            raise RequestRefused(400, "lane_id and card are wanted") from error
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as client,
                client.post(f"{control}/present", json=wish.model_dump()) as answer,
            ):
                return web.json_response(await answer.json(), status=answer.status)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestRefused(503, "the simulated field does not answer") from error

    return Route(DEMO_PRESENT, present)


def main() -> None:
    """Run the gateway until it is stopped, and exit as `edge-gateway run` does."""
    parser = argparse.ArgumentParser(description="The gateway of the demo.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--control", required=True, help="URL at which the simulated field presents cards")
    wanted = parser.parse_args()
    try:
        run(
            site_path=wanted.site,
            data=wanted.data,
            extra_routes=(present_route(wanted.control),),
            demo_cards=demo_cards(),
        )
    except ConfigError as error:
        sys.stderr.write("\n".join((*error.lines(), f"edge-gateway: {error}", "")))
        sys.exit(MISCONFIGURED)
    except GatewayError as error:
        sys.exit(f"edge-gateway: {error}")


if __name__ == "__main__":
    main()
