"""Packets by the bytes of the standard, and answers in whatever pieces they come."""

from __future__ import annotations

import pytest

from gateway.mqtt.packets import (
    LONGEST_ANSWER,
    AnswerKind,
    Answers,
    BrokerAnswer,
    MalformedPacket,
    MqttMessage,
    connect,
    publish,
)

ANSWERS = {
    "20 03 00 00 00": BrokerAnswer(kind=AnswerKind.CONNECTED),
    "20 14 00 00 11 21 00 14 27 00 10 00 00 24 01 13 00 1e 12 00 01 61": BrokerAnswer(
        kind=AnswerKind.CONNECTED, most_unanswered=20, longest_packet=1_048_576, keep_alive=30
    ),
    "20 02 00 01": BrokerAnswer(kind=AnswerKind.CONNECTED, reason=1),
    "20 02 00 00": BrokerAnswer(kind=AnswerKind.CONNECTED, reason=1),
    "20 02 00 05": BrokerAnswer(kind=AnswerKind.CONNECTED, reason=5),
    "20 0e 00 87 0b 1f 00 02 6e 6f 26 00 01 61 00 00": BrokerAnswer(kind=AnswerKind.CONNECTED, reason=0x87),
    "40 02 01 02": BrokerAnswer(kind=AnswerKind.TAKEN, packet_id=0x102),
    "40 03 00 07 10": BrokerAnswer(kind=AnswerKind.TAKEN, packet_id=7, reason=0x10),
    "40 03 00 07 95": BrokerAnswer(
        kind=AnswerKind.TAKEN, packet_id=7, reason=0x95
    ),  # Mosquitto's, for a message that is too long
    "40 08 00 07 87 04 1f 00 01 8a": BrokerAnswer(
        kind=AnswerKind.TAKEN, packet_id=7, reason=0x87
    ),  # words that are not UTF-8
    "40 09 00 07 87 05 1f 00 02 6e 6f": BrokerAnswer(kind=AnswerKind.TAKEN, packet_id=7, reason=0x87),
    "d0 00": BrokerAnswer(kind=AnswerKind.PONG),
    "e0 00": BrokerAnswer(kind=AnswerKind.DISCONNECT),
    "e0 02 8b 00": BrokerAnswer(kind=AnswerKind.DISCONNECT, reason=0x8B),
}


def bare(message: MqttMessage) -> bytes:
    return publish(message, packet_id=10)


def test_a_message_is_as_the_standard_writes_it():
    message = MqttMessage(topic="a/b", payload=b"{}", kept=True, expiry_seconds=60, box=5)
    form = b"application/json".hex()
    head, properties = "33 2d 0003 612f62 000a", f"23 0101 02 0000003c 03 0010 {form} 26 0003 626f78 0001 35"
    assert bare(message) == bytes.fromhex(f"{head} {properties}") + b"{}"


def test_a_message_that_takes_a_kept_one_away_has_no_content():
    assert bare(MqttMessage(topic="a/b", payload=b"", kept=True)).endswith(b"application/json")
    assert bare(MqttMessage(topic="a", payload=b""))[0] == 0x32


def test_a_long_message_has_its_length_in_seven_bits_a_byte():
    assert bare(MqttMessage(topic="a", payload=b"x" * 200))[1:3] == bytes([227 & 0x7F | 0x80, 227 >> 7])
    assert bare(MqttMessage(topic="a", payload=b"x" * 20_000))[1:4] == bytes([0xBB, 0x9C, 0x01])


def test_the_first_packet_has_will_user_and_password():
    will = MqttMessage(topic="w", payload=b"off", kept=True, content_type="t")
    packet = connect(client_id="gate", will=will, keep_alive=60, username="u", password="p")
    assert packet == bytes.fromhex(
        "10 2b 0004 4d515454 05 ee 003c 05 27 00001000 0004 67617465"
        "06 0101 03 0001 74 0001 77 0003 6f6666 0001 75 0001 70"
    )
    alone = connect(client_id="gate", will=will, keep_alive=60, username=None, password=None)
    assert (alone[9], len(alone)) == (0x2E, len(packet) - 6)


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_is_read(text):
    assert list(Answers().feed(bytes.fromhex(text))) == [ANSWERS[text]]


def test_answers_come_in_whatever_pieces():
    whole = bytes.fromhex("".join(ANSWERS))
    for size in (1, 2, 5, 17):
        reader = Answers()
        found = [one for at in range(0, len(whole), size) for one in reader.feed(whole[at : at + size])]
        assert found == list(ANSWERS.values())


@pytest.mark.parametrize(
    ("answer", "is_refusal"),
    [
        (BrokerAnswer(kind=AnswerKind.TAKEN, reason=0x10), False),
        (BrokerAnswer(kind=AnswerKind.TAKEN, reason=0x87), True),
        (BrokerAnswer(kind=AnswerKind.CONNECTED, reason=5), True),
        (BrokerAnswer(kind=AnswerKind.CONNECTED), False),
    ],
)
def test_no_subscriber_is_no_refusal(answer, is_refusal):
    assert answer.is_refusal is is_refusal


@pytest.mark.parametrize(
    "text",
    [
        "30 03 00 01 61",  # a message
        "90 03 00 01 00",  # an answer to a subscription
        "62 02 00 01",  # of QoS 2
        "41 02 00 01",  # with flags
        "20 01 00",  # cut short
        "40 01 00",
        "20 05 00 00 01 0b 05",  # a property of subscriptions
        "20 04 00 00 05 21",  # properties that are not whole
        "20 06 00 00 03 12 00 05",  # a text that is not whole
        "40 ff ff ff ff 01",  # a length of five bytes
        "40 ff ff ff 7f",  # of 256 MB
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(MalformedPacket):
        list(Answers().feed(bytes.fromhex(text)))


def test_a_long_answer_is_not_waited_for():
    length = LONGEST_ANSWER + 1
    with pytest.raises(MalformedPacket):
        list(Answers().feed(bytes([0x20, length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])))
