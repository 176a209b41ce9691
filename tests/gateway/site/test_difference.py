"""What two site files have different."""

from gateway.site import Difference, Site, difference

GATE = {"id": 7, "name": "Gate", "url": "rtsp://10.0.0.7/main"}
YARD = {"id": 8, "name": "Yard", "url": "rtsp://10.0.0.8/main"}


def site(*cameras, **others):
    return Site.model_validate({"site": {"name": "North"}, "cameras": list(cameras), **others})


def test_the_same_file_in_another_order_is_no_difference():
    assert difference(site(GATE, YARD), site(YARD, GATE)) == Difference()


def test_each_camera_is_told_with_what_was_changed_of_it():
    found = difference(site(GATE, YARD), site(GATE | {"name": "Main gate", "audio": "on"}, YARD | {"id": 9}))
    assert [camera.id for camera in found.added] == [9]
    assert [camera.id for camera in found.removed] == [8]
    assert [(change.camera.id, change.keys) for change in found.changed] == [(7, ("name", "audio"))]
    assert found.sentences() == (
        "camera 9 (Yard) was added",
        "camera 7 (Main gate): changed name, audio",
        "camera 8 (Yard) was removed; its footage is kept",
    )
    assert found.restart == ()


def test_what_needs_a_restart_is_named():
    before = site(
        GATE,
        api={"port": 8480},
        links=[{"id": "gates", "url": "tcp://10.0.0.1:502"}, {"id": "cards", "url": "serial:/dev/ttyS0"}],
        areas=[{"id": "yard", "name": "Yard"}],
        devices=[{"id": 1, "name": "Reader", "driver": "serial-reader", "link": "cards"}],
    )
    after = site(
        GATE,
        api={"port": 8481},
        events={"clip_before_seconds": 9},
        holidays=[{"date": "2027-01-01", "name": "New Year"}],
        links=[{"id": "gates", "url": "tcp://10.0.0.2:502"}, {"id": "tags", "url": "serial:/dev/ttyS0"}],
        areas=[{"id": "yard", "name": "Yard", "limit": 4}],
        devices=[{"id": 1, "name": "Reader 1", "driver": "serial-reader", "link": "tags"}],
    )
    assert difference(before, after).restart == (
        "[api]",
        "[events]",
        "[[holidays]]",
        "link gates",
        "link cards was removed",
        "link tags was added",
        "device 1 (Reader 1)",
        "area yard (Yard)",
    )
    assert difference(before, after).sentences() == ()


def test_a_secret_is_not_told():
    found = difference(site(GATE), site(GATE | {"username": "viewer", "password": "the-secret-name"}))
    assert found.sentences() == ("camera 7 (Gate): changed username, password",)
