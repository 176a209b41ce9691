"""Warnings of a card that no reader of the site can send, with what its number may mean."""

from __future__ import annotations

from datetime import UTC

import pytest

from drivers.osdp.section import OsdpReaderDevice
from drivers.serial_line.section import SerialReaderDevice
from gateway.central.field_map import CardFieldMap, map_card
from gateway.site import Site
from gateway.site.reader_numbers import doubts_of_number

OSDP = OsdpReaderDevice(id=202, name="OSDP", driver="osdp-reader", link="osdp", key="key")


def serial(form, **keys):
    return SerialReaderDevice.model_validate(
        {"id": 201, "name": "Reader", "driver": "serial-reader", "link": "line", "form": form, **keys}
    )


def doubts(record, *devices):
    card = map_card(1, record, CardFieldMap(), UTC)
    return list(doubts_of_number(card, Site.model_construct(devices=devices)))


@pytest.mark.parametrize(
    ("record", "reader"),
    [
        ({"number": "00199573"}, serial("text")),
        ({"number": "5076483"}, serial("decimal")),
        ({"number": "001,11572"}, serial("wiegand26")),
        ({"number": "0005076483"}, serial("wiegand26")),
        ({"number": "0005076483"}, serial("hex", bits={"skip_first": 8, "skip_last": 8})),
        ({"number": "04:A1:B2:C3:D4:E5:F6"}, serial("hex")),
        ({"number": "4711", "card_format": "H10302"}, OSDP),
        ({"number": "TXT-77"}, OSDP),
        ({"number": "\u0661\u0662\u0663"}, serial("text")),
        ({"holder_name": "Nora"}, serial("text")),
    ],
)
def test_a_card_that_a_reader_can_send_has_no_warning(record, reader):
    assert doubts(record, reader) == []


def test_a_site_without_readers_has_no_warning():
    assert doubts({"number": "00199573"}) == []


@pytest.mark.parametrize(
    ("record", "reader", "told"),
    [
        (
            {"number": "00199573"},
            serial("wiegand26"),
            "no reader of this site can send 00199573 as it is: enter it as 003,02965 if that is what it means",
        ),
        (
            {"number": "00111572"},
            serial("wiegand26"),
            (
                "no reader of this site can send 00111572 as it is: "
                "enter it as 001,11572 / 001,46036 if that is what it means"
            ),
        ),
        (
            {"number": "4711"},
            OSDP,
            "no reader of this site can send 4711 as it is: enter it as 4711 h10302 if that is what it means",
        ),
        (
            {"number": "AB-12"},
            serial("wiegand26"),
            "no reader of this site can send AB-12: compare it with what the reader sends when the card is shown",
        ),
        (
            {"number": "\u0416-77"},
            serial("text"),
            "no reader of this site can send \u0416-77: compare it with what the reader sends when the card is shown",
        ),
        (
            {"plate": "DM 001"},
            serial("text"),
            "no reader of this site can send this card: compare it with what the reader sends when the card is shown",
        ),
    ],
)
def test_what_no_reader_can_send_is_offered_in_the_spellings_that_one_can(record, reader, told):
    assert doubts(record, reader) == [told]


def test_each_offer_is_a_number_that_the_reader_can_send():
    (told,) = doubts({"number": "00111572"}, OSDP)
    assert "enter it as 001,11572 / " in told
    assert doubts({"number": "001,11572"}, OSDP) == []
