"""A few words on the state of each line and each unit: how it answers, the likely cause, what to do. Pure."""

from __future__ import annotations

from drivers.bus.line_quality import Counts, Failure, LineFault, LineQuality, UnitFault, UnitQuality

_WORTH_TELLING = 0.01
_FEWEST = 3

_LINE = {
    LineFault.DOWN: "Its port or its converter cannot be opened: check its plug, its supply and its address.",
    LineFault.SILENT: "No unit answers: check the supply of the units, whether A and B are swapped, and the speed.",
    LineFault.ECHOES: "Only what is sent comes back: the adapter hears itself; set `echoes` of the link, and check the"
    " wires behind it.",
    LineFault.DISTURBED: "Something comes that nobody asked for: another master asks on this line, or its shield is"
    " open.",
}
_FAILING = {
    UnitFault.SILENT: "It does not answer while others do: check its supply, its address switch and its wires.",
    UnitFault.GARBLED: "Its answers cannot be read while others' can: two devices have this address, or its wires are"
    " bad. Unplug it: if something still answers, change one address.",
    UnitFault.UNRELIABLE: "It falls silent again and again: a loose terminal, or a line without resistors at its ends.",
}
_OFTEN = {
    Failure.SILENT: "a loose wire, or a supply that drops",
    Failure.GARBLED: "disturbance on the cable, or another device at its address",
    Failure.ECHOED: "an adapter that hears itself",
    Failure.LATE: "a unit or a converter that is slower than its profile allows",
}


def line_sentence(line: LineQuality) -> str:
    """Describe the state of a line, with the likely cause of a fault and what to do."""
    fault = line.fault
    if fault is LineFault.DOWN:
        return f"{line.down_reason}. {_LINE[fault]}"
    if fault is LineFault.ECHOES and any(unit.failing is None for unit in line.units):
        return "What is sent comes back before each answer: set `echoes` of the link."
    if fault is not None:
        return _garbled(line) if fault is LineFault.GARBLED else _LINE[fault]
    worse = [str(unit.unit) for unit in line.units if unit.fault is not None or unit.unsecured]
    if worse:
        return f"Others answer, but not unit {', '.join(worse)} as it should."
    return "Every unit answers in time." if line.units else "No unit was asked yet."


def _garbled(line: LineQuality) -> str:
    if line.violation:
        return f"What comes cannot be read: {line.violation}."
    if line.is_serial:
        return "What comes cannot be read: speed, parity or stop bits differ from those of the units."
    return "What comes cannot be read: another service answers there, or `framing` differs."


def unit_sentence(unit: UnitQuality, line: LineQuality) -> str:
    """Describe the state of a unit on a line, with the likely cause of a fault and what to do."""
    housing = "Its housing is open. " if unit.is_tampered else ""
    return housing + _answering(unit, line)


def _answering(unit: UnitQuality, line: LineQuality) -> str:
    if line.fault not in {None, LineFault.DISTURBED} and (unit.failing is not None or line.fault is LineFault.DOWN):
        return "" if unit.failing is None else "See the line."
    if unit.fault is UnitFault.SLOW:
        return (
            f"It answers after {(unit.reply_seconds or 0) * 1000:.0f} ms, of {unit.allowed_seconds * 1000:.0f} ms that"
            " its profile allows: raise the speed of the line, put fewer units on it, or allow it more time."
        )
    if unit.fault is not None:
        return _FAILING[unit.fault]
    if unit.reply_seconds is None:
        return "It has not answered yet."
    if unit.unsecured:
        return (
            f"It {unit.unsecured}. Give it its key again with `edge-gateway osdp provision`, near it and alone on its"
            " line."
        )
    return _hour_sentence(unit.hour)


def _hour_sentence(hour: Counts) -> str:
    lost = sum(hour.failed.values())
    if lost < _FEWEST or hour.lost_share < _WORTH_TELLING:
        return "It answers in time."
    kind = max(hour.failed, key=lambda failure: hour.failed[failure])
    return f"{lost} of {lost + sum(hour.reply_times)} requests of the last hour failed, as by {_OFTEN[kind]}."
