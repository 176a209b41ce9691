"""A simulated plate camera at a lane: whoever comes with a card comes with its vehicle's plate."""

from __future__ import annotations

from itertools import count

from drivers.http_session import Account
from gateway.demo.central.seed import plate_of
from gateway.demo.plate_stream import PlateStreamFarEnd

_HEARTBEAT_SECONDS = 0.5


class PlateReaderFarEnd:
    """Presents plates for cards: the card numbered so in the seeded list belongs to the vehicle with that plate.

    Args:
        account: who may ask for the camera's stream.
        cards: what a reader would send for each seeded card, in the list's order.
    """

    def __init__(self, *, account: Account, cards: tuple[str, ...]) -> None:
        self.camera = PlateStreamFarEnd(make="hikvision", account=account, heartbeat_seconds=_HEARTBEAT_SECONDS)
        self._index = {card: index for index, card in enumerate(cards)}
        self._vehicles = count(1)

    def present(self, card: str) -> None:
        """The vehicle whose driver has this card comes into view; the camera reads it twice."""
        index = self._index.get(card)
        plate = "NOBODY1" if index is None else plate_of(index)
        self.camera.see(plate, vehicle=f"vehicle-{next(self._vehicles)}", times=2)
