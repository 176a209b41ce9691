"""Requests to a barrier and its answers."""

import pytest

from drivers.contract import DeviceFault, GatePosition, ProtocolViolation
from drivers.hikvision.isapi import BarrierControl, check_answer, control_body, control_path, read_position, status_path
from drivers.xml_texts import read_xml


@pytest.mark.parametrize("control", BarrierControl)
def test_command_is_one_document(control):
    assert read_xml(control_body(control)).first["ctrlMode"] == control.value


def test_paths_name_the_channel():
    assert control_path(2) == "/ISAPI/Parking/channels/2/barrierGate"
    assert status_path(1) == "/ISAPI/Parking/channels/1/barrierGate/barrierGateStatus"


@pytest.mark.parametrize(("said", "position"), [("0", "unknown"), ("1", "closed"), ("2", "open")])
def test_position(said, position):
    body = f"<BarrierGateStatus><barrierGateStatus>{said}</barrierGateStatus></BarrierGateStatus>".encode()
    assert read_position(body) is GatePosition(position)


@pytest.mark.parametrize(
    "body", [b"", b"<a/>", b"<a><barrierGateStatus>3</barrierGateStatus></a>", b"<!DOCTYPE a><a/>"]
)
def test_other_status_is_a_violation(body):
    with pytest.raises(ProtocolViolation):
        read_position(body)


def test_answers():
    check_answer(b"<ResponseStatus><statusCode>1</statusCode><statusString>OK</statusString></ResponseStatus>")
    with pytest.raises(DeviceFault, match="deviceBusy"):
        check_answer(
            b"<ResponseStatus><statusCode>2</statusCode><subStatusCode>deviceBusy</subStatusCode></ResponseStatus>"
        )
    with pytest.raises(ProtocolViolation):
        check_answer(b"<html><statusCode>1</statusCode></html>")
