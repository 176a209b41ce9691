"""Advice for each kind of problem with lines and devices: consequences for drivers, and steps for a technician."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

LINE_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.LINE_DOWN: Advice(
            "Line down",
            Severity.ALARM,
            "No device on this line works.",
            (
                "Read the reason above. A serial port that is not there is unplugged.",
                "A converter that refuses the connection runs, but does not serve this port: check its settings.",
                "A converter that does not answer has no power or no network: check its supply, cable and lamps.",
                "Check the address of the link in the site file: `edge-gateway check`.",
            ),
        ),
        K.LINE_SILENT: Advice(
            "Nobody answers on a line",
            Severity.ALARM,
            "No device on this line works.",
            (
                "Check the supply of the devices, and the two wires of the line at the first of them: A to A, B to B.",
                "Check speed, parity and stop bits of the link against the devices' settings.",
                "Unplug the devices one by one: a single one that holds the line silences all.",
            ),
        ),
        K.LINE_GARBLED: Advice(
            "A line cannot be understood",
            Severity.ALARM,
            "No device on this line works.",
            (
                "Check speed, parity and stop bits of the link against the devices' settings.",
                "Check that the line has one resistor of 120 ohms at each end, and that its wires are not swapped.",
                "Check that nobody else asks on this line.",
            ),
        ),
        K.LINE_ECHOES: Advice(
            "A line echoes",
            Severity.ALARM,
            "No device on this line works.",
            (
                "If the adapter echoes by design, set `echoes = true` for the link, or switch it off at the adapter.",
                "Check the wires from the adapter to the first device: it may hear itself alone.",
            ),
        ),
        K.LINE_DISTURBED: Advice(
            "Somebody else on a line",
            Severity.WARNING,
            "Devices work; commands may come late.",
            (
                "Look whether another gateway or a service laptop asks on the same line, and disconnect it.",
                "If there is none, check the shield of the cable and its way past motors.",
            ),
        ),
        K.UNIT_GARBLED: Advice(
            "Two devices at one address",
            Severity.ALARM,
            "The parts that it serves do not work.",
            (
                "Unplug this device. If something still answers at its address, two devices have it: change one.",
                "If nothing does, check its wires and its terminals.",
            ),
        ),
        K.UNIT_UNRELIABLE: Advice(
            "Device answers now and then",
            Severity.WARNING,
            "Lanes work; a gate may react late, or open again while it closes.",
            (
                "Check the terminals of this device for a loose wire.",
                "Check the resistors at the ends of the line, and its way past motors and mains.",
            ),
        ),
        K.UNIT_SLOW: Advice(
            "Device answers slowly",
            Severity.WARNING,
            "Lanes work; inputs and gates are seen late.",
            (
                "Raise the speed of the line, at the device and in the site file.",
                "Put fewer devices on the line, or look what else asks this device.",
            ),
        ),
        K.DEVICE_NOT_SEEN: Advice(
            "Device not seen yet",
            Severity.NOTICE,
            "The gateway has just started and waits for this device.",
            ("Wait half a minute.", "If it stays so, check its line in the site file."),
        ),
        K.DEVICE_OFFLINE: Advice(
            "Device offline",
            Severity.ALARM,
            "The parts that it serves do not work.",
            (
                "Check its supply and its cable.",
                "Check link, unit or address in the site file against the device's settings.",
                'If it shares a line: "Look for units" at Lines on the page finds the address at which it answers.',
                "`edge-gateway discover` lists the serial ports that are there.",
            ),
        ),
        K.DEVICE_UNUSABLE: Advice(
            "Device answers, but cannot be used",
            Severity.ALARM,
            "The parts that it serves do not work.",
            ("Read what it answers, above.", "Check its driver, profile and key in the site file."),
        ),
        K.READER_NOT_SECURE: Advice(
            "Reader off its secure channel",
            Severity.ALARM,
            "No card at this reader counts: nobody could tell its messages from forged ones.",
            (
                "If the reader was replaced or reset, give it its key: `edge-gateway osdp provision`.",
                "If not, check that the site file names the key that the reader was given.",
                "If nobody worked at it, go and look: somebody may have put another device in its place.",
            ),
        ),
        K.DEVICE_TAMPERED: Advice(
            "Housing open",
            Severity.ALARM,
            "Somebody may read or change what the device sends.",
            (
                "Go and look whether its housing is open or its fixing is loose.",
                "If somebody was at it, change the key of an OSDP reader: `edge-gateway osdp provision`.",
            ),
        ),
    }
)
