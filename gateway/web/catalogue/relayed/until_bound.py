"""Operations that this gateway answers itself as soon as a handler is bound to them; until then central does."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, Rule, needs
from gateway.web.catalogue.relayed.row import kept, posts, relayed

_VIEW_CARDS = needs("can_view_access_cards", "can_view_guests")


def _cards(verb: str) -> Rule:
    return needs(f"can_{verb}_access_cards", f"can_{verb}_guests")


OPERATIONS: tuple[Operation, ...] = (
    relayed("PUT", "/v1/device", needs("can_add_devices"), "device", "Create a device"),
    relayed("PATCH", "/v1/device/config", needs("can_edit_devices"), "device", "Set up a device"),
    *posts(
        "/v1/access",
        _VIEW_CARDS,
        "access_card",
        (
            ("", "One access card by its id"),
            ("/username", "One access card by its username"),
            ("/excel", "Access cards as Excel"),
            ("/list", "List access cards"),
        ),
    ),
    relayed("PUT", "/v1/access", _cards("add"), "access_card", "Create an access card"),
    relayed("PATCH", "/v1/access", _cards("edit"), "access_card", "Update an access card"),
    relayed("DELETE", "/v1/access", _cards("delete"), "access_card", "Delete an access card"),
    relayed(
        "PATCH",
        "/v1/access/lifecycle",
        needs("can_edit_access_cards"),
        "access_card",
        "Update the lifecycle of an access card",
    ),
    relayed(
        "POST",
        "/v1/access/device",
        _VIEW_CARDS & needs("can_control_devices"),
        "access_card",
        "Send an access card to a device",
    ),
    *kept("/v1/camera", "camera", "cameras", "a camera"),
    *kept("/v1/camera/event", "event", "camera_events", "a camera event"),
    relayed("POST", "/v1/camera/event/evidence", needs("can_add_camera_events"), "evidence", "Upload evidence"),
    relayed(
        "POST",
        "/v1/camera/event/evidence/{id}/access",
        needs("can_view_camera_events"),
        "access",
        "Create an evidence access link",
    ),
    *posts(
        "/v1/entry/",
        needs("can_view_entries"),
        "entries",
        (
            ("excel", "Entries as Excel"),
            ("list", "List parking entries"),
            ("report", "Entries for the report view"),
            ("reportExcel", "Entry report as Excel"),
        ),
    ),
    *kept("/v1/entry", "entry", "entries", "a parking entry", methods=("PATCH", "PUT")),
)
