"""No secret passes: by name, by shape, by value; and plain sentences stay as they are."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.runtime.redaction import HIDDEN, Redaction

SECRET = "hunter2-Geheim"


@pytest.mark.parametrize(
    "text",
    [
        f"cannot open rtsp://viewer:{SECRET}@192.0.2.20:554/stream1",
        f"two: http://a:{SECRET}@x/ and RTSP://b:{SECRET}@y/",
        f"rtsp://viewer:pa@{SECRET}@192.0.2.20/",
        f"GET /v1/camera/list?session={SECRET}&limit=3",
        f"Authorization: Bearer {SECRET}",
        f"header was 'Bearer {SECRET}'",
        f"SessionID: {SECRET}",
        f"Cookie: session={SECRET}; other=1",
        f'{{"username": "demo", "password": "{SECRET}"}}',
        f"{{'session': '{SECRET}'}}",
        f"password={SECRET}",
        f"api_key = {SECRET}",
        f"central_password='{SECRET}'",
    ],
)
def test_a_secret_is_known_by_the_shape_of_the_text(text):
    assert SECRET not in Redaction().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "camera 301 at rtsp://192.0.2.20/stream1 is unreachable",
        "no secret 'central-password': not among systemd's credentials",
        "lanes[1].gate: no device 103",
        "session of technician expired",
        "mail to someone@example.com, see https://example.com/a?b=c",
        "Basic settings",
        "reading 26 bits 1A2B3C4 at 12:00:00",
    ],
)
def test_plain_sentences_stay(text):
    assert Redaction().text(text) == text


@pytest.mark.parametrize(
    "name",
    ["password", "central_password", "session", "SessionID", "accessToken", "x-token", "Authorization", "cookie"],
)
def test_a_secret_is_known_by_its_name(name):
    assert Redaction().value(name, SECRET) == HIDDEN
    assert Redaction().value(name, [SECRET]) == HIDDEN
    assert Redaction().value("answer", {"deep": [{name: SECRET}]}) == {"deep": [{name: HIDDEN}]}


def test_numbers_and_other_names_stay():
    redaction = Redaction()
    assert redaction.value("sessions", 3) == 3
    assert redaction.value("token", None) is None
    assert redaction.value("device", 103) == 103
    assert redaction.value("devices", (103, 104)) == [103, 104]
    assert redaction.value("passwords_changed", "yes") == "yes"


def test_things_are_shown_by_their_text_without_secrets():
    class Camera:
        def __str__(self):
            return f"camera at rtsp://a:{SECRET}@b/"

    assert Redaction().value("camera", Camera()) == f"camera at rtsp://{HIDDEN}@b/"


def test_nesting_without_end_is_cut():
    knot = []
    knot.append(knot)
    assert "…" in str(Redaction().value("knot", knot))


@given(secret=st.text(min_size=6, max_size=40), before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_registered_value_is_hidden_wherever_it_stands(secret, before, after):
    assume("\n" not in secret or any(len(line) >= 6 for line in secret.splitlines()))  # a shorter one hides nothing
    redaction = Redaction()
    redaction.hide(secret)
    hidden = redaction.text(f"{before}{secret}{after}")
    assert secret not in hidden or secret in HIDDEN * 20 or secret in f"{before}{HIDDEN}{after}"


def test_a_registered_value_is_hidden_as_urls_hold_it_too():
    redaction = Redaction()
    redaction.hide("p@ss/word")
    assert redaction.text("x=p%40ss%2Fword y=p@ss/word") == f"x={HIDDEN} y={HIDDEN}"


def test_a_short_value_does_not_black_out_words():
    redaction = Redaction()
    redaction.hide("demo")
    assert redaction.text("the demo runs") == "the demo runs"


@pytest.mark.parametrize(
    "line", ["_" * 9_000, "a." * 4_000 + "://", 'password="' * 900, "://" * 3_000, "token " * 1_500]
)
def test_a_long_line_is_cut_and_a_long_text_too(line):
    text = Redaction().text("\n".join([line] * 40))
    assert len(text) < 20_000
    assert max(map(len, text.split("\n"))) <= 2_060


def test_a_secret_at_the_place_of_the_cut_does_not_show_in_part():
    redaction = Redaction()
    redaction.hide(SECRET)
    for before in range(2_030, 2_060):
        assert SECRET[:6] not in redaction.text("x" * before + SECRET + "y" * 50)
        assert SECRET[:6] not in Redaction().text(
            "x" * (before - 8) + f" rtsp://a:{SECRET}" + "z" * 40 + "@host/ " + "y" * 50
        )
        assert SECRET[:6] not in redaction.text(("z" * 1_000 + "\n") * 16 + "x" * (before - 1_700) + SECRET + "y" * 50)


def test_a_secret_of_several_lines_is_hidden_line_by_line():
    redaction = Redaction()
    redaction.hide("first-line\nsecond-line")
    assert redaction.text("a first-line\nb second-line") == f"a {HIDDEN}\nb {HIDDEN}"


def test_a_quote_that_never_ends_hides_the_rest():
    assert Redaction().text('password="abc def ghi') == f"password={HIDDEN}"
