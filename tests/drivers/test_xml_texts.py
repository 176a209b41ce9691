"""XML of devices, without its dangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.xml_texts import LARGEST, read_xml


def test_first_occurrence_wins_and_namespaces_do_not_count():
    texts = read_xml(b'<?xml version="1.0"?><n:a xmlns:n="x"><b> one </b><c><n:b>two</n:b></c><d/></n:a>\r\n')
    assert texts.root == "a"
    assert texts.first == {"b": "one", "c": "", "d": "", "a": ""}


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<a>",
        b"<a></b>",
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a SYSTEM "file:///etc/hostname"><a/>',
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b"<a>&x;</a>",
        b'<?xml version="1.0" encoding="no-such"?><a/>',
        b"<a>" * 33 + b"</a>" * 33,
        b"<a>" + b" " * LARGEST + b"</a>",
    ],
)
def test_what_is_no_plain_document_is_refused(document):
    with pytest.raises(ProtocolViolation):
        read_xml(document)


@given(st.binary(max_size=200) | st.text("<>/a! -[]&;", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(document):
    try:
        texts = read_xml(document)
    except ProtocolViolation:
        return
    assert texts.root
