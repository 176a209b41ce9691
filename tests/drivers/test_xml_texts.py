"""XML of devices, without its dangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.texts import raw_bytes
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
        b"<a>\xff\xfe</b>",
        b"<a>" * 33 + b"</a>" * 33,
        b"<a>" + b" " * LARGEST + b"</a>",
    ],
)
def test_what_is_no_plain_document_is_refused(document):
    with pytest.raises(ProtocolViolation):
        read_xml(document)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (b"<a>A & B &x; &amp; &#65;</a>", "A & B &x; & A"),
        (b"<a>A\x01&#2;&#xFFFE;B</a>", "A\ufffd\ufffd\ufffdB"),
        (b"<a>S\xfcd</a>", "S\ufffdd"),
        (b'<?xml version="1.0" encoding="no-such"?><a>x</a>', "x"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?><a>S\xfcd</a>', "S\xfcd"),
        ('<?xml version="1.0" encoding="gb2312"?><a>入口</a>'.encode("gbk"), "入口"),
        ('<?xml version="1.0" encoding="gb2312"?><a>入口</a>'.encode(), "入口"),
        ("<a>\U0010ff10</a>".encode(), "\ufffd"),
        (b"<a>x</a>\0\r\n\0", "x"),
    ],
)
def test_names_as_people_typed_them_cost_no_document(document, text):
    assert read_xml(document).first["a"] == text


def test_bytes_of_an_unknown_encoding_are_kept_for_who_knows_it():
    assert raw_bytes(read_xml(b"<a>S\xfcd</a>", keeps_bytes=True).first["a"]) == b"S\xfcd"


@given(st.binary(max_size=200) | st.text("<>/a! -[]&;", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(document):
    try:
        texts = read_xml(document)
    except ProtocolViolation:
        return
    assert texts.root
