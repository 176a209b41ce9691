"""Gateway of the demo: the real one, with a button on its page that presents a card.

Run it as `python -m gateway.demo.gateway SITE.toml --data DIR --control URL`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gateway.app.gateway import run
from gateway.demo.operations import demo_cards, present_route
from gateway.demo.scene import MISCONFIGURED
from gateway.domain.errors import ConfigError, GatewayError


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
