"""The messages of each make, from captures."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.plates.axis import AXIS
from drivers.plates.dahua import DAHUA
from drivers.plates.hikvision import HIKVISION
from drivers.plates.multipart import BodyPart, PartSplitter
from drivers.plates.plate_recognizer import plate_recognizer
from drivers.plates.readings import PlateReading, UnreadPlate
from simulation.far_ends.plate_stream import (
    axis_message,
    dahua_event,
    hikvision_alert,
    hikvision_heartbeat,
    recognizer_message,
)

CAPTURES = Path(__file__).with_name("captures")


def capture(name):
    return (CAPTURES / name).read_bytes()


def xml(body):
    return BodyPart("application/xml", body)


def js(body):
    return BodyPart("application/json", body if isinstance(body, bytes) else json.dumps(body).encode())


def all_of(dialect, name):
    parts = PartSplitter(element=dialect.element).feed(capture(name))
    return [reading for part in parts if not part.is_picture for reading in dialect.read(part)]


def refuses(dialect, part):
    """Return whether nothing in the part can be read, and that is said."""
    try:
        found = dialect.read(part)
    except ProtocolViolation:
        return True
    return found != () and all(isinstance(one, UnreadPlate) for one in found)


@pytest.mark.parametrize("name", ["hikvision-stream.bin", "hikvision-push.bin"])
def test_hikvision_captures(name):
    assert all_of(HIKVISION, name) == [
        PlateReading(
            plate="AB12CDE",
            confidence=0.92,
            vehicle="5f3c9a1e-0001",
            direction="approaching",
            occurrence="5f3c9a1e-0001 2026-05-07T17:48:03.847+02:00",
        )
    ]


def test_message_that_nothing_tells_apart_has_no_occurrence():
    body = (
        b"<EventNotificationAlert><eventType>ANPR</eventType><licensePlate>AB12</licensePlate></EventNotificationAlert>"
    )
    assert HIKVISION.read(xml(body))[0].occurrence == ""
    text = b"Events[0].Code=TrafficJunction\r\nEvents[0].TrafficCar.PlateNumber=AB12\r\n"
    assert DAHUA.read(BodyPart("text/plain", text))[0].occurrence == ""


def test_hikvision_reads_anpr_alone():
    assert HIKVISION.read(xml(hikvision_heartbeat())) == ()
    assert HIKVISION.read(xml(hikvision_alert("AB12", kind="VMD"))) == ()
    assert HIKVISION.read(xml(hikvision_alert("unknown"))) == ()


@pytest.mark.parametrize(
    "mark", ["<isDataRetransmission>true</isDataRetransmission>", "<alarmDataType>1</alarmDataType>"]
)
def test_hikvision_readings_from_an_outage_are_too_old(mark):
    body = hikvision_alert("AB12").replace(b"<ANPR>", mark.encode() + b"<ANPR>")
    assert HIKVISION.read(xml(body)) == ()


@pytest.mark.parametrize(
    ("said", "share"), [(b"95", 0.95), (b"0.95", 0.95), (b"1", 1.0), (b"2", 0.02), (b"100", 1.0), (b"", 1.0)]
)
def test_hikvision_confidence(said, share):
    body = hikvision_alert("AB12").replace(b"<confidenceLevel>95", b"<confidenceLevel>" + said)
    assert HIKVISION.read(xml(body))[0].confidence == pytest.approx(share)


BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<EventNotificationAlert><eventType>ANPR</eventType><licensePlate>&b;</licensePlate></EventNotificationAlert>"""


@pytest.mark.parametrize(
    "body",
    [BOMB, b"<a>" * 40, b"<EventNotificationAlert>", b"plain", b"<UserCheck></UserCheck>", b"<a>" + b"x" * 70_000],
)
def test_hikvision_refuses_what_is_no_alert(body):
    assert refuses(HIKVISION, xml(body))


ALERT = (
    '{declaration}<{h}EventNotificationAlert version="2.0"><eventType>ANPR</eventType><channelName>{name}</channelName>'
    "<ANPR><licensePlate>{plate}</licensePlate><confidenceLevel>97</confidenceLevel></ANPR></{h}EventNotificationAlert>"
)


def alert(plate="AB12", *, name="Gate", declaration="", h=""):
    return ALERT.format(plate=plate, name=name, declaration=declaration, h=h)


@pytest.mark.parametrize(
    "body",
    [
        alert(name="Gate A & B").encode(),
        alert(name="Gate &nbsp; &#1; &#x1F; &amp; &#65;").encode(),
        alert(name="Gate\x01\x0b\x1b").encode(),
        alert(name="Einfahrt S\xfcd").encode("latin-1"),
        alert(name="Einfahrt S\xfcd", declaration='<?xml version="1.0" encoding="ISO-8859-1"?>').encode("latin-1"),
        alert(name="入口", declaration='<?xml version="1.0" encoding="GB2312"?>').encode("gbk"),
        alert(name="入口").encode("gbk"),
        alert(name="入口", declaration='<?xml version="1.0" encoding="x-unheard-of"?>').encode(),
        b"\xef\xbb\xbf" + alert().encode(),
        alert(declaration='<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
        alert().encode("utf-16-le"),
        alert().encode("utf-16-be"),
        alert().encode() + b"\0\0",
        b"\r\n " + alert(h="h:").encode() + b"\r\n\0",
    ],
)
def test_plate_counts_whatever_else_an_alert_holds(body):
    assert [one.plate for one in HIKVISION.read(xml(body))] == ["AB12"]


@pytest.mark.parametrize("plate", ["京A12345", "鲁B88888", "豫C1D2E3", "粤ZF123港", "AB12", "ÖS77", "Ж123ЯД77"])
@pytest.mark.parametrize("dialect", [HIKVISION, DAHUA])
def test_plate_in_any_encoding_is_read_right_or_refused(dialect, plate):
    """Some bytes of GBK are valid UTF-8 too: those of 鲁 are a raised 3."""

    def parts(encoding):
        with contextlib.suppress(UnicodeEncodeError):
            name = {"gbk": "GB2312", "latin-1": "ISO-8859-1", "cp1251": "windows-1251"}.get(encoding, "UTF-8")
            for declared in ("", name, "UTF-8"):
                declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
                text = alert(plate, declaration=declaration) if dialect is HIKVISION else dahua_text(plate)
                yield BodyPart("", text.encode(encoding), charset=declared.lower())

    for encoding in ("utf-8", "gbk", "latin-1", "cp1251", "utf-16"):
        for part in parts(encoding):
            if dialect is DAHUA and encoding == "utf-16":
                continue
            assert refuses(dialect, part) or [one.plate for one in dialect.read(part)] == [plate], (encoding, part)
    for encoding in ("utf-8", "gbk"):
        for part in parts(encoding):
            if "Ö" not in plate and "Ж" not in plate:
                assert [one.plate for one in dialect.read(part)] == [plate], (encoding, part)


def dahua_text(plate):
    return f"Events[0].Code=TrafficJunction\r\nEvents[0].TrafficCar.PlateNumber={plate}\r\n"


@pytest.mark.parametrize("plate", ["AB\ufffd12", "AB?12", "AB*12", "AB_12", "AB\x0112", "A²12345", "AB\U0001f69712"])
def test_plate_with_a_mark_for_what_was_not_read_is_none(plate):
    """The rest of it may be another vehicle's plate."""
    recognized = js({"data": {"results": [{"plate": plate}, {"plate": "CD34"}]}})
    assert refuses(AXIS, js({"carID": 5, "carState": "new", "plateUTF8": plate}))
    assert refuses(DAHUA, BodyPart("", dahua_text(plate).encode()))
    assert refuses(HIKVISION, xml(alert(plate).encode()))
    unread, read = plate_recognizer().read(recognized)
    assert isinstance(unread, UnreadPlate)
    assert read.plate == "CD34", "it costs no other plate"


@pytest.mark.parametrize("control", [*"\0\x0b\x0c\r\x1c\x1d\x1e\x1f\x7f\x85\u2028"])
def test_plate_is_never_cut_at_a_control_character(control):
    """The letters before one may be another vehicle's plate."""
    for plate in (f"AB{control}12", f"AB12{control}X"):
        for dialect, part in (
            (AXIS, js({"carID": 5, "carState": "new", "plateUTF8": plate})),
            (DAHUA, BodyPart("", dahua_text(plate).encode())),
            (HIKVISION, xml(alert(plate).encode())),
            (HIKVISION, js({"eventType": "ANPR", "licensePlate": plate})),
            (plate_recognizer(), js({"data": {"results": [{"plate": plate}]}})),
        ):
            whole = [plate.replace(control, "")] if control == "\u2028" else None  # separates like a blank
            assert refuses(dialect, part) or [one.plate for one in dialect.read(part)] == whole, (dialect.name, plate)


def test_plate_is_never_cut_at_the_greatest_length_of_a_text():
    plate = "AB12" + " " * 200 + "XY"
    assert refuses(AXIS, js({"carID": 5, "carState": "new", "plateUTF8": plate}))
    assert refuses(HIKVISION, js({"eventType": "ANPR", "licensePlate": plate}))


@pytest.mark.parametrize("plate", ["AB<x>9</x>12", "AB12<x>9</x>", "<x>9</x>AB12", "AB12<x/>"])
def test_plate_with_another_element_inside_is_none(plate):
    """Its text without that element may be another vehicle's plate."""
    assert refuses(HIKVISION, xml(alert(plate).encode()))


def test_hikvision_alert_as_json():
    inner = {"eventType": "ANPR", "ANPR": {"licensePlate": "AB12", "confidenceLevel": 97, "direction": "forward"}}
    for body in ({"EventNotificationAlert": {**inner, "UUID": "u"}}, {**inner, "UUID": "u"}):
        assert HIKVISION.read(js(body)) == (
            PlateReading(plate="AB12", confidence=0.97, vehicle="u", direction="approaching", occurrence="u "),
        )
    assert HIKVISION.read(js({"eventType": "ANPR", "isDataRetransmission": True, "licensePlate": "AB12"})) == ()
    assert HIKVISION.read(js({"eventType": "videoloss"})) == ()
    several = [inner, {"eventType": "ANPR", "ANPR": {"licensePlate": "CD34"}}]
    assert [one.plate for one in HIKVISION.read(js(several))] == ["AB12", "CD34"]
    assert refuses(HIKVISION, js({"other": 1}))


def test_several_objects_of_one_body_are_each_read():
    first, second = axis_message("AB12", car=5, packet=1), axis_message("CD34", car=6, packet=2)
    for body in (first + second, first + b"\r\n" + second + b"\0", b"[" + first + b"," + second + b"]"):
        assert [one.plate for one in AXIS.read(js(body))] == ["AB12", "CD34"]


def test_axis_calls_an_update_by_two_words():
    (reading,) = AXIS.read(js({"carID": 5, "carState": "updated", "plateUTF8": "AB12", "carMoveDirection": "in"}))
    assert (reading.plate, reading.direction) == ("AB12", "approaching")


def test_field_of_a_form_that_is_no_message_is_passed_over():
    for dialect in (AXIS, HIKVISION, plate_recognizer()):
        assert dialect.read(BodyPart("", b"entry", field="camera")) == ()
        assert refuses(dialect, BodyPart("", b"entry"))


def test_dahua_capture():
    assert all_of(DAHUA, "dahua-stream.bin") == [
        PlateReading(
            plate="AC00003",
            confidence=0.8,
            vehicle="123",
            direction="approaching",
            occurrence="123 5864 1670842479 123",
        )
    ]


def test_dahua_reads_each_event_of_its_kind():
    second = dahua_event("CD34", group=8).replace(b"Events[0]", b"Events[1]")
    other = dahua_event("EF56").replace(b"Events[0]", b"Events[2]").replace(b"TrafficJunction", b"VideoMotion")
    readings = DAHUA.read(BodyPart("text/plain", dahua_event("AB12", group=7) + second + other))
    assert [(reading.plate, reading.vehicle) for reading in readings] == [("AB12", "7"), ("CD34", "8")]


@pytest.mark.parametrize("place", ["TrafficCar.PlateNumber", "Object.Text", "Plate.Text", "PlateNumber"])
def test_dahua_has_the_plate_at_one_of_several_places(place):
    text = f"Events[0].{place}=AB12\r\nEvents[0].Code=TrafficJunction\r\n"
    for other in ("", "Events[0].TrafficCar.PlateNumber=unlicensed\r\n" * (place != "TrafficCar.PlateNumber")):
        assert [one.plate for one in DAHUA.read(BodyPart("", (other + text).encode()))] == ["AB12"]


def test_dahua_refuses_other_texts():
    with pytest.raises(ProtocolViolation):
        DAHUA.read(BodyPart("text/plain", b"Error\r\nBad Request!"))


def test_axis_capture():
    assert AXIS.read(js(capture("axis-update.json"))) == (
        PlateReading(
            plate="1AB1234",
            confidence=0.8688,
            vehicle="1327",
            direction="approaching",
            occurrence="13046 1327 update",
        ),
    )


def test_axis_new_car_has_no_direction_and_a_lost_one_is_no_reading():
    (new,) = AXIS.read(js(axis_message("AB12", car=5, packet=1)))
    assert (new.plate, new.direction, new.left) == ("AB12", "", False)
    (lost,) = AXIS.read(js(axis_message("AB12", car=5, state="lost", packet=9)))
    assert (lost.plate, lost.vehicle, lost.left) == ("AB12", "5", True)


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"{}", b'{"carID": 5}', b"[" * 100_000, b"\xff\xfe"])
def test_axis_refuses_other_bodies(body):
    assert refuses(AXIS, js(body))


def test_plate_recognizer_capture():
    assert plate_recognizer().read(js(capture("plate-recognizer.json"))) == (
        PlateReading(plate="9JUB11", confidence=0.839, occurrence="camera-1 2021-09-29T05:56:13.606935Z"),
    )


def test_plate_recognizer_for_one_camera():
    assert plate_recognizer(camera="exit").read(js(recognizer_message("AB12", camera="entry"))) == ()
    assert plate_recognizer(camera="entry").read(js(recognizer_message("AB12", camera="entry")))[0].plate == "AB12"


def test_plate_recognizer_in_a_form():
    body = b"json=%7B%22data%22%3A%7B%22results%22%3A%5B%7B%22plate%22%3A%22ab12%22%7D%5D%7D%7D"
    (reading,) = plate_recognizer().read(BodyPart("application/x-www-form-urlencoded", body))
    assert (reading.plate, reading.confidence) == ("AB12", 1.0)


def test_plain_json_that_is_called_a_form():
    (reading,) = AXIS.read(BodyPart("application/x-www-form-urlencoded", axis_message("AB12", car=5)))
    assert reading.plate == "AB12"


def test_plate_recognizer_with_scored_values():
    plate = {"type": "Plate", "props": {"plate": [{"value": "ab12", "score": 0.7}, {"value": "a812", "score": 0.3}]}}
    (reading,) = plate_recognizer().read(js({"data": {"results": [{"plate": plate}, {"plate": None}]}}))
    assert (reading.plate, reading.confidence) == ("AB12", 0.7)


def test_plate_recognizer_heartbeat_is_no_reading():
    assert plate_recognizer().read(js({"hook": {"event": "heartbeat"}, "data": {}})) == ()


@pytest.mark.parametrize(
    "body", [{}, {"data": []}, {"data": {}}, {"data": {"results": {}}}, {"data": {"results": [1]}}]
)
def test_plate_recognizer_refuses_other_bodies(body):
    assert refuses(plate_recognizer(), js(body))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["carID", "carState", "plateUTF8", "hook", "data", "results", "plate", "props", "score"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(value):
    for dialect in (AXIS, plate_recognizer()):
        with contextlib.suppress(ProtocolViolation):
            dialect.read(js(value))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body):
    for dialect in (AXIS, plate_recognizer(), HIKVISION, DAHUA):
        with contextlib.suppress(ProtocolViolation):
            dialect.read(BodyPart("", body))
