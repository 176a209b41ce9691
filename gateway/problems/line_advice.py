"""Steps for a fault of a line or a device on it, by its cause and the kind of line. Pure."""

from __future__ import annotations

from types import MappingProxyType

from drivers.bus.line_quality import LineFault, LineQuality
from drivers.contract import Cause
from gateway.domain.problems import ProblemKind

BY_CAUSE = MappingProxyType(
    {
        Cause.REFUSED: (
            "It runs, and refuses the connection: check the port of the link, and its own settings.",
            "Many modules take one connection at a time: look whether another program has it.",
        ),
        Cause.NO_ROUTE: ("Check the address of the link, and the network of this machine and of the device.",),
        Cause.SILENT_HOST: (
            "It has no power or no network: check its supply, cable and lamps.",
            "Check the address of the link in the site file.",
        ),
        Cause.NO_PORT: (
            "Its adapter is unplugged or has another name: `edge-gateway discover` lists the ports that are there.",
        ),
        Cause.OTHER_UNIT: (
            "Set `unit` of the device to the address that answers, or the address in its own settings to that one.",
        ),
        Cause.OTHER_NUMBER: (
            "Set `transaction_numbers = false` for the link: its device does not copy the number of a request.",
        ),
        Cause.OTHER_LENGTH: (
            "Check the profile of the device: it answers with another number of values than the profile asks for.",
            "If the profile is right, ask its maker for another firmware.",
        ),
        Cause.OTHER_SERVICE: (
            "Another service answers there: check address and port of the link, and `framing` of its devices.",
        ),
    }
)
"""The steps for each cause that is known for sure."""
ON_NETWORK = MappingProxyType(
    {
        LineFault.GARBLED: (
            "At a `tcp:` address check address, port and `framing`: another service may answer there.",
            "Behind a converter, compare the serial settings of the converter with those of the devices.",
            "Check that nobody else asks on this line.",
        ),
        LineFault.SILENT: (
            "Check the supply of the devices, and the two wires of the line at the first of them: A to A, B to B.",
            "Behind a converter, compare the serial settings of the converter with those of the devices.",
        ),
    }
)
"""The steps for a line over the network, where no cause is known."""
_BY_HAND = "Until it answers, open the gate by hand or by its key switch."
_FOLLOWS = frozenset(
    {
        ProblemKind.GATE_OFFLINE,
        ProblemKind.DEVICE_OFFLINE,
        ProblemKind.DEVICE_NOT_SEEN,
        ProblemKind.DEVICE_UNUSABLE,
        ProblemKind.UNIT_GARBLED,
    }
)
"""The problems of devices whose steps follow from a known cause."""


def steps_of_line(quality: LineQuality, fault: LineFault) -> tuple[str, ...]:
    """Return the steps for a line with this fault; empty for those of its kind of problem."""
    if quality.cause is not None:
        return BY_CAUSE[quality.cause]
    return () if quality.is_serial else ON_NETWORK.get(fault, ())


def steps_of_device(cause: Cause | None, kind: ProblemKind) -> tuple[str, ...]:
    """Return the steps for a device's problem whose cause is known; empty for those of its kind."""
    if cause is None or kind not in _FOLLOWS:
        return ()
    return (*BY_CAUSE[cause], _BY_HAND) if kind is ProblemKind.GATE_OFFLINE else BY_CAUSE[cause]
