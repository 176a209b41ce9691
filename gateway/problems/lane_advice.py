"""Advice for each kind of problem with lanes, lines and devices: consequences, and steps for a technician."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

_INPUT_STEPS = (
    "Look whether the device of this input is listed as offline; if so, mend that first.",
    "Check the detector's supply and its lamp, and the wire from its contact to the input.",
    "Check in the site file that the lane names the right device and point.",
)
LANE_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.GATE_OFFLINE: Advice(
            "Gate controller offline",
            Severity.ALARM,
            "No vehicle is let in or out here: the gateway cannot move the gate.",
            (
                "Check the controller's supply and its fuse.",
                "Check the line: cable, converter and its lamps.",
                'If it shares a line: "Look for units" at Lines on the page finds the address at which it answers.',
                "Check its link, address and unit in the site file; `edge-gateway discover` lists what is there.",
                "Until it answers, open the gate by hand or by its key switch.",
            ),
        ),
        K.GATE_POSITION_UNKNOWN: Advice(
            "Gate position unknown",
            Severity.ALARM,
            "The gate may stand half open. It is not closed until its position is known.",
            (
                "Make sure that nobody and nothing is under the gate.",
                "Open it, then close it, from the page.",
                "If it stays unknown, check the limit switches and their wires.",
            ),
        ),
        K.GATE_LIMITS_BOTH_ON: Advice(
            "Both limit switches on",
            Severity.ALARM,
            "The gate is not closed: nobody can tell whether it is open.",
            (
                "Look how the gate stands. One of the two switches is stuck, or its wire has a short circuit.",
                "Move the gate by hand or its key switch, and watch both inputs at Health: one does not change.",
                "Free or replace that switch: dirt, ice and a bent actuator hold it.",
                "If both change, check in the profile that the right inputs are named, and which of them are inverted.",
            ),
        ),
        K.GATE_DOES_NOT_MOVE: Advice(
            "Gate does not move",
            Severity.ALARM,
            "The controller takes commands, but the gate does not reach its limit.",
            (
                "Look whether something blocks the gate, or its key switch or emergency stop is on.",
                "Check the motor's supply and fuse, and the wires from the controller's output to the motor.",
                "Check the limit switches: the gate may stand where it should, and not say so.",
                "Open it by hand until then.",
            ),
        ),
        K.GATE_TOO_SLOW: Advice(
            "Gate moves too slowly",
            Severity.WARNING,
            "An opening that takes longer than `opening_seconds` is given up, so that its vehicle is not let in.",
            (
                "Watch it move: look whether it hangs or scrapes, and whether its limit switch is reached.",
                "If it has always been as slow, raise `opening_seconds` or `closing_seconds` of the lane.",
                "If not, check its spring or counterweight, its gear, and the supply of the motor under load.",
            ),
        ),
        K.GATE_SLOWER: Advice(
            "Gate moves more slowly than it used to",
            Severity.WARNING,
            "Vehicles wait longer. The gate may soon fail to reach its limits.",
            (
                "Watch it move: look whether it hangs, scrapes or swings after.",
                "Check its spring or counterweight, its bearings and its gear, and grease them by the maker's manual.",
                "Check the supply of the motor under load, and its capacitor.",
                "If it was set to move slowly, this is over after some hundred travels.",
            ),
        ),
        K.ARMING_LOOP_UNKNOWN: Advice(
            "Arming loop unknown",
            Severity.ALARM,
            "No card or plate counts here, since the gateway cannot tell whether a vehicle is there.",
            _INPUT_STEPS,
        ),
        K.CLOSING_LOOP_UNKNOWN: Advice(
            "Closing loop unknown",
            Severity.ALARM,
            "No passage is seen, and the gate is not closed.",
            _INPUT_STEPS,
        ),
        K.SAFETY_INPUT_UNKNOWN: Advice(
            "Safety input unknown", Severity.ALARM, "The gate is not closed, so it stays open.", _INPUT_STEPS
        ),
        K.READERS_OFFLINE: Advice(
            "All readers of a lane offline",
            Severity.ALARM,
            "Nobody can show a card or plate here.",
            (
                "Check the reader's supply and its cable.",
                "Check address and speed in the site file against the reader's settings.",
                "Until then, let drivers in from the page.",
            ),
        ),
        K.GATE_STOPPED: Advice(
            "Gate stopped by a person",
            Severity.WARNING,
            "The gate stays where it is until somebody opens or closes it, or a vehicle is let in.",
            ("Make sure that the way is free.", "Open or close the gate from the page."),
        ),
        K.GATE_HELD_OPEN: Advice(
            "Gate open too long",
            Severity.WARNING,
            "Anybody can drive through.",
            (
                "Look what stands under the gate or on its loops.",
                "If nothing does, look which input is on, and check its detector.",
                "Close the gate from the page once the way is free.",
            ),
        ),
        K.GATE_FORCED_OPEN: Advice(
            "Gate opened without a command",
            Severity.ALARM,
            "Somebody may have forced it, or opened it with another control.",
            ("Go and look, or look at the recording.", "Close the gate from the page once the way is free."),
        ),
        K.VEHICLE_STUCK: Advice(
            "Vehicle under the gate",
            Severity.WARNING,
            "The gate stays open.",
            (
                "Look whether a vehicle stands under the gate.",
                "If none does, reset the loop detector and check its sensitivity.",
            ),
        ),
        K.INPUT_STUCK: Advice(
            "Input stuck",
            Severity.WARNING,
            "Where it is a safety input the gate stays open; where it is an arming loop no new vehicle is seen.",
            (
                "Look whether something stands there.",
                "If nothing does, reset the detector, then check its wire for a short circuit.",
            ),
        ),
        K.INPUT_CHATTERS: Advice(
            "Input chatters",
            Severity.WARNING,
            "The gate stays open while it goes on.",
            (
                "Check the wire and its terminals for a loose contact.",
                "Change the frequency of the loop detector: a neighbouring loop may disturb it.",
            ),
        ),
        K.INPUTS_ALL_ON: Advice(
            "All inputs on",
            Severity.ALARM,
            "A vehicle that is not there seems to wait and to stand under the gate: it stays open once it is open.",
            (
                "If nothing stands there, measure the supply of the detectors and of the input module.",
                "If that is good, their contacts work the other way round: change `inverted` in the profile.",
                "Then `edge-gateway reload`, with `--now` if it waits for a vehicle that is not there.",
            ),
        ),
        K.CARDS_WITHOUT_VEHICLE: Advice(
            "Cards, but no vehicle",
            Severity.WARNING,
            "These cards open nothing: a card counts only with a vehicle on the arming loop.",
            (
                "Let a vehicle drive onto the arming loop and watch that input on the lane's page.",
                "If it stays off, check the detector's lamp, its sensitivity, and the wire from its contact.",
                "If it goes on, drivers show their cards before they are there: move the reader or the loop.",
                "If the reader belongs to another lane, correct `readers` of both lanes in the site file.",
            ),
        ),
        K.VEHICLES_WITHOUT_CARD: Advice(
            "Vehicles, but no card",
            Severity.WARNING,
            "Drivers wait here and give up.",
            (
                "Show a card at the reader: look for its lamp and sound, and for the card on the lane's page.",
                "If nothing comes, check the reader's supply, its wires, and form and speed in the site file.",
                "If no vehicle was there, the arming loop sees the lane beside it: check its sensitivity.",
            ),
        ),
        K.READERS_SWAPPED: Advice(
            "Readers swapped",
            Severity.ALARM,
            "Drivers are not let in, or the gate of another lane opens for their cards.",
            (
                "Show a card at each of the two readers and look on which lane's page it appears.",
                "If they are swapped, swap their links in the site file, or their wires.",
            ),
        ),
        K.READER_SILENT: Advice(
            "Reader silent",
            Severity.WARNING,
            "It may not read any more, though its line seems well.",
            (
                "Show a card at it: look for its lamp and sound, and for the card on the lane's page.",
                "If nothing comes, check the reader's supply, its wires, and form and speed in the site file.",
                "If it comes, nobody came here for long: nothing is to be done.",
            ),
        ),
        K.KEY_SWITCH_ON: Advice(
            "Key switch in use",
            Severity.NOTICE,
            "Whoever has the key moves the gate; the gateway does not close it.",
            ("Turn the key switch back when the work is done.",),
        ),
        K.FIRE_INPUT_ACTIVE: Advice(
            "Fire input active",
            Severity.ALARM,
            "The gate is kept open.",
            ("Follow the fire plan of the site.", "Once the alarm is reset, check that the contact opens again."),
        ),
        K.SCHEDULE_DOUBTED: Advice(
            "Schedules doubted",
            Severity.WARNING,
            "The lane's times may be wrong, since the clock is not trusted.",
            ("See the problem of the clock.",),
        ),
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
                "At a `tcp:` address check address, port and `framing`: another service may answer there.",
                "Check that nobody else asks on this line.",
            ),
        ),
        K.LINE_ECHOES: Advice(
            "A line echoes",
            Severity.WARNING,
            "Devices on this line may not answer.",
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
                "On a serial line raise the speed, at the device and in the site file.",
                "Put fewer devices on the line, or look what else asks this device.",
                "On a network check its cable and switch, and how busy the converter is.",
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
        K.MESSAGES_REFUSED: Advice(
            "Messages of a device are refused",
            Severity.WARNING,
            "The device is there, but no card or plate that it sends in this form counts.",
            (
                "Read above why, and what the device said.",
                "Check its driver, profile and form in the site file, and the make and the format set at the device.",
                "On a serial line check speed, parity, data bits and stop bits.",
                "If a push had another token or came from another address, compare both with the site file.",
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
