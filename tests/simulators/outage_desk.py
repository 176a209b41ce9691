"""The technician of `outage_rounds`."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from outage_scene import Scene

from simulation.virtual_site.outage import Promised


class Technician:
    """Deals with what central refused, as a person at the page does, and says what looking could not tell."""

    def __init__(self, scene: Scene, promised: Promised, dice: random.Random, counts: Counter[str]) -> None:
        self._scene = scene
        self._promised = promised
        self._dice = dice
        self._counts = counts
        self._number = 0

    def all_is_up(self) -> bool:
        """Return whether nothing waits and every refused write is dealt with. Raises Gone."""
        books = self._scene.books()
        if books["parked"]:
            for row in self._scene.call("POST", "/status/outbox/list", {})["waiting"]:
                self._deal_with(row)
        return not (books["waiting"] or books["parked"])

    def _deal_with(self, row: dict[str, Any]) -> None:
        promised, about = self._promised, {"id": row["id"]}
        if row["unknown"]:
            self._counts["unknown, said by a technician"] += 1
            self._scene.call("POST", "/status/outbox/settle", {**about, "central_id": self._at_central(row)})
        elif row["kind"] == "access_card" and row["action"] == "create" and self._dice.random() < 0.7:
            self._counts["refused, edited"] += 1
            self._number += 1
            number = f"T{self._number:06d}"
            self._scene.call("POST", "/status/outbox/edit", {**about, "fields": {"number": number, "note": number}})
            promised.notes[number] = number
        else:
            self._counts["refused, let go of"] += 1
            self._scene.call("POST", "/status/outbox/drop", about)
            promised.let_go.add((row["kind"], row["record_id"]))

    def _at_central(self, row: dict[str, Any]) -> int | None:
        lists = {
            "access_card": ("/v1/access/list", "access_cards", "number"),
            "camera_event": ("/v1/camera/event/list", "events", "source_id"),
            "entry": ("/v1/entry/list", "entries", "source_id"),
        }
        path, resource, name = lists[row["kind"]]
        there = self._scene.at_central("POST", path, {"page_limit": 500})[resource]
        return next((item["id"] for item in there if item.get(name) == row["fields"].get(name)), None)
