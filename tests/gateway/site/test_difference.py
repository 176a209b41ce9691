"""The differences between two loaded site files, and the parts that they touch."""

import pytest

from gateway.site import Change, Difference, LoadedSite, Site, difference

GATE = {"id": 7, "name": "Gate", "url": "rtsp://10.0.0.7/main"}
YARD = {"id": 8, "name": "Yard", "url": "rtsp://10.0.0.8/main"}
LINKS = [
    {"id": "north", "url": "tcp://10.0.0.1:502"},
    {"id": "south", "url": "tcp://10.0.0.2:502"},
    {"id": "osdp", "url": "serial:/dev/ttyS0"},
]


def barrier(number, link, **more):
    return {"id": number, "name": f"B{number}", "driver": "modbus-gate", "link": link, "profile": "p"} | more


def osdp(number, address):
    return {"id": number, "name": f"R{number}", "driver": "osdp-reader", "link": "osdp", "address": address, "key": "k"}


def lane(name, gate, **more):
    inputs = [{"role": role, "device": gate, "point": "arming_loop"} for role in ("arming", "closing")]
    return {"id": name, "name": name.title(), "gate": gate, "inputs": inputs} | more


FIELD = {
    "links": LINKS,
    "devices": [barrier(1, "north"), barrier(2, "south"), osdp(3, 0), osdp(4, 1)],
    "lanes": [lane("in", 1, readers=[3]), lane("out", 2)],
}


def loaded(*cameras, profiles=None, secrets=None, **others):
    site = Site.model_validate({"site": {"name": "North"}, "cameras": list(cameras), **others})
    return LoadedSite(site, profiles=profiles or {}, secrets=secrets or {})


def changed(**parts):
    return difference(loaded(**FIELD), loaded(**FIELD | parts))


def test_the_same_file_in_another_order_is_no_difference():
    assert difference(loaded(GATE, YARD), loaded(YARD, GATE)) == Difference()
    assert changed(lanes=FIELD["lanes"][::-1], links=LINKS[::-1], devices=FIELD["devices"][::-1]) == Difference()


def test_each_camera_is_told_with_what_was_changed_of_it():
    found = difference(loaded(GATE, YARD), loaded(GATE | {"name": "Main gate", "audio": "on"}, YARD | {"id": 9}))
    assert tuple(map(str, found.words())) == (
        "camera 9 (Yard) was added",
        "camera 7 (Main gate): changed name, audio",
        "camera 8 (Yard) was removed; its footage is kept",
    )
    assert not found.touches_more_than_cameras
    assert not found.interface


def test_a_lane_alone_touches_no_device():
    found = changed(lanes=[lane("in", 1, readers=[3], held_open_seconds=90), lane("out", 2)])
    assert found == Difference(
        changes=(Change("lane", "in", "In", keys=("held_open_seconds",), lanes=("in",)),), lanes=frozenset({"in"})
    )


def test_a_link_touches_its_devices_and_their_lanes():
    found = changed(links=[LINKS[0] | {"url": "tcp://10.0.0.9:502"}, *LINKS[1:]])
    assert (found.links, found.devices, found.lanes) == ({"north"}, {1}, {"in"})
    assert tuple(map(str, found.words())) == (
        "link north: changed url (device 1 connected anew; lane in started afresh)",
    )
    assert not found.interface


def test_a_reader_of_an_osdp_line_touches_the_whole_line():
    found = changed(devices=[*FIELD["devices"], osdp(5, 2)])
    assert (found.links, found.devices, found.lanes) == ({"osdp"}, {3, 4, 5}, {"in"})


def test_devices_of_another_family_touch_the_line():
    frames = barrier(2, "south") | {"driver": "serial-gate"}
    found = changed(devices=[FIELD["devices"][0], frames, *FIELD["devices"][2:]])
    assert (found.links, found.devices, found.lanes) == ({"south"}, {2}, {"out"})
    found = changed(devices=[FIELD["devices"][0], barrier(2, "south", unit=3), *FIELD["devices"][2:]])
    assert (found.links, found.devices) == (frozenset(), {2})


@pytest.mark.parametrize("part", ["profiles", "secrets"])
def test_a_profile_or_a_secret_with_another_content_touches_what_uses_it(part):
    name = {"profiles": "p", "secrets": "k"}[part]
    found = difference(loaded(**FIELD, **{part: {name: "1"}}), loaded(**FIELD, **{part: {name: "2"}}))
    touched = {"profiles": ({1, 2}, {"in", "out"}), "secrets": ({3, 4}, {"in"})}[part]
    assert (found.devices, found.lanes) == touched
    assert "2" not in str(str(found.words()[0]).split(" (")[0])


def test_a_name_of_a_device_connects_nothing_anew():
    found = changed(devices=[barrier(1, "north", name="North gate"), *FIELD["devices"][1:]])
    assert (found.links, found.devices, found.lanes) == (frozenset(), frozenset(), frozenset())
    assert tuple(map(str, found.words())) == ("device 1 (North gate): changed name",)


def test_a_gate_is_connected_anew_with_the_limits_that_tell_its_position():
    module = barrier(9, "south") | {"driver": "modbus-io"}
    ends = {"closed_limit": {"device": 9, "point": "a"}, "open_limit": {"device": 9, "point": "b"}}
    lanes, devices = [lane("in", 1, **ends), lane("out", 2)], [*FIELD["devices"], module]
    before = loaded(**FIELD | {"lanes": lanes, "devices": devices})
    after = loaded(**FIELD | {"lanes": lanes, "devices": [*FIELD["devices"], module | {"unit": 4}]})
    found = difference(before, after)
    assert (found.devices, found.lanes) == ({1, 9}, {"in"})


def test_rules_for_the_whole_site_touch_every_lane_and_schedules_none():
    assert changed(policy={"stale_seconds": 9}).lanes == {"in", "out"}
    assert changed(policy={"stale_cards_hours": 9}).lanes == frozenset()
    found = changed(
        schedules=[{"id": "day"}],
        holidays=[{"date": "2027-01-01", "name": "New Year"}],
        areas=[{"id": "yard", "name": "Yard"}],
        storage={"incident_days": 500},
    )
    assert found.lanes == frozenset()
    assert tuple(map(str, found.words())) == (
        "[storage]: changed incident_days",
        "area yard (Yard) was added",
        "schedule day was added",
        "holiday 2027-01-01 (New Year) was added",
    )


def test_what_needs_a_restart_is_refused_in_a_sentence():
    central = {"url": "http://10.0.0.5", "username": "gate", "password": "central"}
    assert changed(events={"clip_before_seconds": 9}).refused == ("[events] changes only with a restart",)
    assert changed(central=central).refused == ("[central] is added only with a restart",)
    before = loaded(central=central)
    assert difference(before, loaded()).refused == ("[central] is removed only with a restart",)
    found = difference(before, loaded(central=central | {"pull_seconds": 5}))
    assert (found.refused, found.central, found.interface) == ((), True, True)
    found = difference(before, loaded(central=central | {"backlog_gigabytes": 5}))
    assert found.refused == ("[central] backlog_gigabytes changes only with a restart",)
    rtsp = {"username": "screen", "password": "screen"}
    before, after = (loaded(rtsp=rtsp, secrets={"screen": digest}) for digest in ("old", "new"))
    assert difference(before, after).refused == ("[rtsp] changes only with a restart",)
    without = changed(lanes=[], devices=[], links=[])
    assert without.refused == ("the last lane is removed only with a restart: the file may be cut short",)
    assert changed(lanes=FIELD["lanes"][:1]).refused == ()


def test_a_secret_is_not_told():
    found = difference(loaded(GATE), loaded(GATE | {"username": "viewer", "password": "the-secret-name"}))
    assert tuple(map(str, found.words())) == ("camera 7 (Gate): changed username, password",)
