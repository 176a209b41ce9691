"""Commands of libosdp that show feedback with a reader's lamp and buzzer. Pure."""

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
    """Return the commands for this feedback in order, each with the capability that a reader needs for it.

    - Granted: green for 3 s and one tone.
    - Denied: blinking red for 3 s and three short tones.
    - Awaiting: slowly blinking amber for 3 s and two short tones.
    - Ready: ends the lamp's feedback early, so that the reader shows its own idle state again.
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
