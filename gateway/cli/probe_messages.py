"""What `edge-gateway probe` says where there is no plain answer."""

from __future__ import annotations

import math

from drivers.modbus.late_answers import Heard, Voice
from drivers.modbus.profile import UnitProfile
from drivers.modbus.survey import Answered
from gateway.site import (
    Device,
    ModbusDevice,
    OsdpReaderDevice,
    SerialGateDevice,
    SerialReaderDevice,
    SerialTagReaderDevice,
    Site,
)


def late(voice: Voice, timeout: float) -> Answered:
    """A unit that was heard after its time, or though it was not asked, as a line of `probe bus`."""
    if voice.after is None:
        words = "heard though it was not asked: another master on the line, or an answer under a wrong address"
        return Answered(voice.unit, words, is_clear=True)
    wanted = math.ceil(voice.after * 12) / 10
    words = f"answers late, after {voice.after:.2f} s: more than --timeout {timeout:g}; try --timeout {wanted:g}"
    return Answered(voice.unit, words, is_clear=True)


def hint_of(heard: Heard, device: ModbusDevice, profile: UnitProfile) -> str:
    """What was heard instead of the answer, in words; "" for nothing."""
    voices = heard.voices()
    others = ", ".join(str(voice.unit) for voice in voices if voice.unit != device.unit)
    own = next((voice.after for voice in voices if voice.unit == device.unit), None)
    if own is not None and own > profile.reply_ms / 1000:
        return f"its answer came after {own:.2f} s, and profile {device.profile!r} waits {profile.reply_ms} ms"
    if others:
        return f"but unit {others} was heard: is {device.unit} the right address of device {device.id}?"
    return ""


def why_not_probed(device: Device, site: Site) -> str:
    """What to do instead for a device that does not speak Modbus."""
    link = next(link for link in site.links if link.id == device.link)
    words = f"device {device.id} ({device.name}) is a {device.driver} and speaks no Modbus"
    line = f" --baud {link.baud} --parity {link.parity} --stop-bits {link.stop_bits}" if link.kind == "serial" else ""
    listen = f"edge-gateway probe port {link.url}{line}"
    told = "the status page and the log tell whether it answers"
    if isinstance(device, SerialReaderDevice):
        return f"{words}; see what it sends with: {listen}"
    if isinstance(device, SerialGateDevice | SerialTagReaderDevice):
        return f"{words}; {told}, and what it sends unasked is seen with: {listen}"
    if isinstance(device, OsdpReaderDevice):
        return f"{words}; what it says is encrypted: {told}"
    return f"{words}; it is on the network at {link.url}: {told}"
