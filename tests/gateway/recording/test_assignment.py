"""Assignment of cameras to workers, and their accounts."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest

from gateway.domain.errors import ConfigError
from gateway.recording.camera_workers import groups, worker_camera
from gateway.site import Camera, Secrets

CAMERA = Camera(id=7, name="Gate", url="rtsp://10.0.0.8:554/stream?channel=1")


def test_one_worker_for_every_few_cameras():
    assert groups((1, 2, 3, 4, 5), most=4) == ((1, 2, 3, 4), (5,))
    assert groups((), most=4) == ()


@pytest.mark.parametrize("password", ["plain", "p@ss:w/rd?#%&ü ", ""])
def test_credentials_are_put_into_the_url_whatever_they_hold(tmp_path, password):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_GATE": password})
    camera = CAMERA.model_copy(update={"username": "us@er", "password": "gate"})
    assigned = worker_camera(camera, secrets, segment_seconds=2)
    assert "@" not in repr(assigned)
    parts = urlsplit(assigned.url)
    assert (parts.hostname, parts.port, parts.path, parts.query) == ("10.0.0.8", 554, "/stream", "channel=1")
    assert (unquote(parts.username), unquote(parts.password)) == ("us@er", password)


def test_an_account_stands_in_the_address_where_the_camera_takes_it_there(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_GATE": "{username}&x"})
    camera = Camera(
        id=7,
        name="Gate",
        url="rtsp://10.0.0.8/user={username}&password={password}&channel=1",
        live_url="rtsp://10.0.0.8/user={username}_password={password}_stream=1.sdp?real_stream",
        username="ad min",
        password="gate",
    )
    assigned = worker_camera(camera, secrets, segment_seconds=2)
    assert assigned.url.endswith("@10.0.0.8/user=ad%20min&password=%7Busername%7D%26x&channel=1")
    assert assigned.live_url.endswith("/user=ad%20min_password=%7Busername%7D%26x_stream=1.sdp?real_stream")


def test_a_password_alone_may_stand_in_the_address(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_GATE": "word"})
    camera = Camera(id=7, name="Gate", url="rtsp://10.0.0.8/live?key={password}", password="gate")
    assert worker_camera(camera, secrets, segment_seconds=2).url == "rtsp://10.0.0.8/live?key=word"
    with pytest.raises(ValueError, match="go together"):
        Camera(id=7, name="Gate", url="rtsp://10.0.0.8/live", password="gate")


def test_an_account_in_the_address_is_named_and_never_written_there():
    with pytest.raises(ValueError, match="has a place for the account"):
        Camera(id=7, name="Gate", url="rtsp://10.0.0.8/password={password}")
    for url in (
        "rtsp://10.0.0.8/user={username}&password=word",
        "rtsp://10.0.0.8/user=admin_password=word_channel=1",
        "rtsp://10.0.0.8/live?user={username}&pwd=word",
        "rtsp://{username}:{password}@10.0.0.8/live",
        "rtsp://x{password}y.example.com/live",
        "rtsp://10.0.0.8{password}?x",
    ):
        with pytest.raises(ValueError, match="must not hold credentials"):
            Camera(id=7, name="Gate", url=url, username="me", password="gate")


def test_the_live_stream_has_the_same_account(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_GATE": "word"})
    camera = CAMERA.model_copy(update={"live_url": "rtsp://10.0.0.8/low", "username": "me", "password": "gate"})
    assigned = worker_camera(camera, secrets, segment_seconds=2)
    assert assigned.live_url == "rtsp://me:word@10.0.0.8/low"
    assert "word" not in repr(assigned)
    assert worker_camera(CAMERA, secrets, segment_seconds=2).live_url is None


def test_sound_is_off_unless_asked_for(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={})
    assert not worker_camera(CAMERA, secrets, segment_seconds=2).audio
    assert worker_camera(CAMERA.model_copy(update={"audio": "on"}), secrets, segment_seconds=2).audio


def test_a_token_stands_where_a_password_does(tmp_path):
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_GATE": "a/b c"})
    camera = Camera(id=7, name="Gate", url="wheps://10.0.0.8/whep", token="gate")
    assert worker_camera(camera, secrets, segment_seconds=2).url == "wheps://:a%2Fb%20c@10.0.0.8/whep"


def test_a_missing_secret_is_said_so(tmp_path):
    camera = CAMERA.model_copy(update={"username": "user", "password": "gate"})
    with pytest.raises(ConfigError, match="gate"):
        worker_camera(camera, Secrets(folder=tmp_path, environ={}), segment_seconds=2)
