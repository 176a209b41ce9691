"""A gateway works whatever the path of its data folder."""

import json

import pytest
from forked import done

from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")

LONG = "a folder with a long name, 100 % of it used #1?&/" * 4 + "Zufahrt Süd 出口 'a' \"b\""


def conditions(site):
    cameras = site.api.call("/v1/camera/list")["cameras"]
    answers = (site.api.raw("GET", f"/v1/camera/status/{camera['id']}")[1] for camera in cameras)
    return {json.loads(answer)["status"]["condition"] for answer in answers}


def test_cameras_record_and_commands_reach_the_gateway_in_a_long_and_odd_folder(make_site, wait_until, monkeypatch):
    site = make_site(start=False)
    (site.folder / LONG).mkdir(parents=True)
    (site.folder / "linked").symlink_to(site.folder / LONG)
    monkeypatch.chdir(site.folder)
    site.data = (site.folder / "linked" / "data").relative_to(site.folder)
    site.start_gateway()
    wait_until(lambda: conditions(site) == {"recording"}, within=30, why=f"all cameras record\n{site.tail()}")
    reload = done("gateway", "reload", "--data", site.folder / LONG / "data")
    assert reload.returncode == 0, reload.stderr
    site.present("entry", GOOD_CARDS[0].sent)
    filmed = lambda: [event for event in site.api.camera_events() if event["ready"]]  # noqa: E731
    event = wait_until(filmed, within=40, why="the passage is on film")[0]
    status, body, _ = site.api.raw("GET", f"/v1/camera/event/clip/{event['id']}")
    assert (status, body[4:8]) == (200, b"ftyp")
    assert "Traceback" not in site.log.read_text()
