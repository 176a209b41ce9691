"""Offers of viewers, as browsers, players and programs write them."""

from __future__ import annotations

import pytest

from gateway.camera_worker.sdp import NothingInCommon, SdpRefused, checked_offer

HEAD = "v=0\r\ns=-\r\nt=0 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:x\r\na=fingerprint:sha-256 AA:BB\r\n"
VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:0\r\na=rtpmap:96 H264/90000\r\n"
BASELINE = "a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={}\r\n"
AUDIO = "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:1\r\n"


def sections(text: str) -> list[list[str]]:
    return [section.split("\r\n") for section in text.split("m=")[1:]]


def test_a_section_without_a_direction_gets_the_usual_one():
    checked = sections(checked_offer(HEAD + VIDEO + BASELINE.format("42e01f") + AUDIO + "a=recvonly\r\n"))
    assert "a=sendrecv" in checked[0]
    assert [line for line in checked[1] if "recv" in line] == ["a=recvonly"]


@pytest.mark.parametrize("usual", ["a=recvonly", "a=sendrecv"])
def test_a_direction_of_the_session_holds_for_its_sections(usual):
    checked = sections(checked_offer(HEAD + usual + "\r\n" + VIDEO + BASELINE.format("42e01f")))
    assert usual in checked[0]


@pytest.mark.parametrize(
    "directions", [("", "a=sendonly\r\n"), ("", "a=inactive\r\n"), ("a=sendonly\r\n", ""), ("a=inactive\r\n", "")]
)
def test_an_offer_that_receives_nothing_is_refused(directions):
    of_session, own = directions
    with pytest.raises(SdpRefused, match="does not ask to receive"):
        checked_offer(HEAD + of_session + VIDEO + own + BASELINE.format("42e01f"))


@pytest.mark.parametrize("level", ["42e01f", "42001f", "42C02A", "4D801f", "4de01f", "58c01f", "58801f"])
def test_each_form_of_the_baseline_profile_is_taken(level):
    assert checked_offer(HEAD + VIDEO + BASELINE.format(level))


def test_a_profile_that_is_not_named_is_the_baseline():
    assert checked_offer(HEAD + VIDEO + "a=fmtp:96 Packetization-Mode = 1\r\n")


@pytest.mark.parametrize("level", ["640c1f", "64001f", "4d001f", "58001f", "420f1f", "nonsense", "42"])
def test_another_profile_is_refused_in_words(level):
    with pytest.raises(NothingInCommon, match="baseline profile"):
        checked_offer(HEAD + VIDEO + BASELINE.format(level))


def test_one_of_several_forms_is_enough():
    both = "a=rtpmap:97 h264/90000\r\na=fmtp:97 packetization-mode=1;profile-level-id=640c1f\r\n"
    assert checked_offer(HEAD + VIDEO + both + BASELINE.format("42e01f"))
    with pytest.raises(NothingInCommon, match="baseline profile"):
        checked_offer(HEAD + VIDEO + both)
    with pytest.raises(NothingInCommon, match=r"H\.264"):
        checked_offer(HEAD + VIDEO.replace("H264", "H265") + BASELINE.format("42e01f"))
