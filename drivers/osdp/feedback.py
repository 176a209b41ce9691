"""Commands of libosdp for the lamp and buzzer of a reader, by feedback. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from osdp import Capability, Command, CommandLEDColor

from drivers.contract import Feedback

Order = Mapping[str, int | bool]

_SHOWN_FOR = 30  # in units of 100 ms; libosdp cuts it to 8 bits
_SET_TEMPORARY = 2
_CANCEL_TEMPORARY = 1
_TONE = 2


def orders(feedback: Feedback) -> tuple[tuple[int, Order], ...]:
    """List the commands in order, each with the capability that a reader needs for it.

    Granted is 3 s of green and one tone, denied 3 s of blinking red and three tones, awaiting 3 s of slowly blinking
    amber and two short tones. Ready ends each early, and the reader shows again what it shows by itself.
    """
    match feedback:
        case Feedback.GRANTED:
            return (_lamp(CommandLEDColor.Green, on=10, off=0), _tones(1, on=3))
        case Feedback.DENIED:
            return (_lamp(CommandLEDColor.Red, on=2, off=2), _tones(3, on=1))
        case Feedback.AWAITING:
            return (_lamp(CommandLEDColor.Amber, on=5, off=5), _tones(2, on=1))
        case Feedback.READY:
            return (_lamp(CommandLEDColor.Black, on=0, off=0, control=_CANCEL_TEMPORARY),)


def _lamp(colour: int, *, on: int, off: int, control: int = _SET_TEMPORARY) -> tuple[int, Order]:
    return Capability.LEDControl, {
        "command": Command.LED,
        "reader": 0,
        "led_number": 0,
        "temporary": True,
        "control_code": control,
        "on_count": on,
        "off_count": off,
        "on_color": colour,
        "off_color": CommandLEDColor.Black,
        "timer_count": _SHOWN_FOR,
    }


def _tones(count: int, *, on: int) -> tuple[int, Order]:
    return Capability.AudibleControl, {
        "command": Command.Buzzer,
        "reader": 0,
        "control_code": _TONE,
        "on_count": on,
        "off_count": 1,
        "rep_count": count,
    }
