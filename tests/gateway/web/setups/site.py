"""The site that the tests of the web share."""

from __future__ import annotations

from gateway.site.central_sections import CentralSection
from gateway.site.models import Site

START = 1_760_000_000_000_000
SITE = Site.model_validate(
    {
        "site": {"name": "North Yard", "timezone": "America/Toronto"},
        "api": {
            "accounts": [
                {"username": "chief", "password": "chief"},
                {"username": "guard", "password": "guard", "permissions": ["can_view_devices", "can_view_events"]},
                {"username": "nobody", "password": "nobody", "permissions": []},
            ]
        },
        "links": [{"id": "plc", "url": "tcp://127.0.0.1:502"}, {"id": "desk", "url": "serial:/dev/ttyS0"}],
        "devices": [
            {"id": 101, "name": "Entry barrier", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
            {"id": 102, "name": "Entry reader", "driver": "serial-reader", "link": "desk"},
        ],
        "areas": [{"id": "garage", "name": "Garage", "limit": 2, "anti_passback": "hard"}],
        "lanes": [
            {
                "id": "entry",
                "name": "Main entry",
                "gate": 101,
                "readers": [102],
                "inside": "garage",
                "cameras": [201],
                "arming": {"device": 101, "point": "arming"},
                "closing": {"device": 101, "point": "closing"},
            }
        ],
        "cameras": [{"id": 201, "name": "Entry overview", "url": "rtsp://127.0.0.1/one"}],
    }
)

CENTRAL = CentralSection(url="http://127.0.0.1:1", username="gateway", password="gateway")
