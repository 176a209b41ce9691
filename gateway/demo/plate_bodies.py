"""What plate cameras of each make send, as bytes."""

from __future__ import annotations

import json

PICTURE = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 16 + b"\r\n--not the boundary\r\n" + b"\xff\xd9"


def hikvision_alert(plate: str, *, uuid: str = "", confidence: int = 95, kind: str = "ANPR") -> bytes:
    """An EventNotificationAlert."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<EventNotificationAlert version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema">\n'
        "<ipAddress>192.0.2.64</ipAddress>\n<channelID>1</channelID>\n"
        "<dateTime>2026-05-07T17:48:03.847+02:00</dateTime>\n"
        f"<eventType>{kind}</eventType>\n<eventState>active</eventState>\n"
        f"<ANPR>\n<licensePlate>{plate}</licensePlate>\n<line>1</line>\n<direction>forward</direction>\n"
        f"<confidenceLevel>{confidence}</confidenceLevel>\n</ANPR>\n<UUID>{uuid}</UUID>\n"
        "</EventNotificationAlert>\n"
    ).encode()


def hikvision_heartbeat() -> bytes:
    """What its alert stream says when nothing happens."""
    return (
        b'<EventNotificationAlert version="2.0"><eventType>videoloss</eventType>'
        b"<eventState>inactive</eventState></EventNotificationAlert>\r\n"
    )


def dahua_event(plate: str, *, group: int = 0, confidence: int = 240) -> bytes:
    """The text of a TrafficJunction."""
    lines = (
        "Events[0].EventBaseInfo.Code=TrafficJunction",
        "Events[0].EventBaseInfo.Action=Pulse",
        f"Events[0].GroupID={group}",
        f"Events[0].EventID={group}",
        "Events[0].UTC=1778168883",
        f"Events[0].Object.Text={plate}",
        f"Events[0].Object.Confidence={confidence}",
        f"Events[0].TrafficCar.PlateNumber={plate}",
        "Events[0].VehicleDirection=Head",
    )
    return "\r\n".join(lines).encode() + b"\r\n"


def axis_message(plate: str, *, car: int, state: str = "new", packet: int = 0, direction: str = "unknown") -> bytes:
    """One message of the License Plate Verifier."""
    said = {
        "packetCounter": str(packet),
        "carID": str(car),
        "carState": state,
        "carMoveDirection": direction,
        "plateUTF8": plate,
        "plateConfidence": "0.868800",
        "imageType": "plate",
        "imageArray": "/9j/" * 8,
    }
    return json.dumps(said).encode()


def recognizer_message(plate: str, *, camera: str = "entry", stamp: str = "2026-05-07T17:48:03Z") -> bytes:
    """Plate Recognizer's webhook."""
    result = {
        "plate": plate.lower(),
        "score": 0.91,
        "dscore": 0.84,
        "candidates": [{"plate": plate.lower(), "score": 0.91}, {"plate": "zz99zz", "score": 0.4}],
        "region": {"code": "gb", "score": 0.41},
        "vehicle": {"type": "Sedan", "score": 0.8},
        "direction": 210,
    }
    hook = {"target": "http://gateway", "id": camera, "event": "recognition"}
    return json.dumps({"hook": hook, "data": {"camera_id": camera, "timestamp": stamp, "results": [result]}}).encode()


def part(content_type: str, body: bytes, *, boundary: str = "boundary", length: int | None = -1) -> bytes:
    """One part of a body. `length` is what it says of its length: -1 the truth, None nothing."""
    said = "" if length is None else f"Content-Length: {len(body) if length < 0 else length}\r\n"
    return f"--{boundary}\r\nContent-Type: {content_type}\r\n{said}\r\n".encode() + body + b"\r\n"
