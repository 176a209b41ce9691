"""libosdp's own peripherals as a process: readers on one line, told and asked over stdin and stdout.

`python osdp_peripheral.py FD MANNER` serves the line at the descriptor FD; the line is "good", gives replies "double",
or "corrupts" some of them. The first line of stdin names the readers; each later one is an order. What the readers are
told to show is said on stdout, a line of JSON each, and "late" when the machine kept it from answering in time.
"""

import contextlib
import itertools
import json
import os
import select
import sys
import time

from osdp import Capability, Channel, LibFlag, LogLevel, PDCapabilities, PDInfo, PeripheralDevice

CAPABILITIES = 0x46

LATE_SECONDS = 0.05
"""Much sooner than the 0.2 s after which a panel gives an answer up."""


def without_security(frame):
    """The same reply, saying that this reader knows no secure channel, when it tells capabilities."""
    start = frame.find(0x53)
    if frame[start + 5] != CAPABILITIES:
        return frame
    body = bytearray(frame[start:-2])
    for at in range(6, len(body), 3):
        if body[at] == Capability.CommunicationSecurity:
            body[at + 1 : at + 3] = b"\0\0"
    check = 0x1D0F
    for byte in body:
        check ^= byte << 8
        for _ in range(8):
            check = (check << 1 ^ (0x1021 if check & 0x8000 else 0)) & 0xFFFF
    return frame[:start] + bytes(body) + check.to_bytes(2, "little")


class Ear(Channel):
    """One reader's end of a line that all share."""

    def __init__(self, send, *, secure):
        super().__init__()
        self.waiting = bytearray()
        self._send = send
        self._secure = secure

    def read(self, max_bytes):
        data = bytes(self.waiting[:max_bytes])
        del self.waiting[:max_bytes]
        return data

    def write(self, buf):
        self._send(bytes(buf) if self._secure else without_security(bytes(buf)))
        return len(buf)

    def flush(self):
        pass


class Reader:
    def __init__(self, plan, send):
        self.address = plan["address"]
        secure = plan.get("secure", True)
        self.ear = Ear(send, secure=secure)
        self.is_alive = plan.get("alive", True)
        capabilities = [(Capability.ContactStatusMonitoring, 1, 1)]
        if secure:
            capabilities.append((Capability.CommunicationSecurity, 1, 1))
        if plan.get("shows", True):
            capabilities += [(Capability.LEDControl, 1, 1), (Capability.AudibleControl, 1, 1)]
        key = bytes.fromhex(plan["key"]) if plan.get("key") else None
        flags = [] if not secure else [LibFlag.EnforceSecure if key else LibFlag.InstallMode]
        self.device = PeripheralDevice(
            PDInfo(self.address, self.ear, scbk=key, flags=flags),
            PDCapabilities(capabilities),
            log_level=LogLevel.Emergency,
            command_handler=self._shown,
        )

    def _shown(self, command):
        said = {name: value.hex() if isinstance(value, bytes) else value for name, value in command.items()}
        print(json.dumps({"address": self.address, **said}), flush=True)
        return 0, None


def main():
    line, manner = int(sys.argv[1]), sys.argv[2]
    os.set_blocking(line, False)
    frames = itertools.count(1)

    def send(data):
        with contextlib.suppress(OSError):  # nobody there
            if manner == "corrupts" and next(frames) % 12 == 0:
                data = data[:-3] + bytes([data[-3] ^ 0x40]) + data[-2:]
            os.write(line, data * 2 if manner == "double" else data)

    readers = {plan["address"]: Reader(plan, send) for plan in json.loads(sys.stdin.readline())}
    os.set_blocking(0, False)
    orders = os.fdopen(0, "rb", buffering=0, closefd=False)
    print(json.dumps({"ready": True}), flush=True)
    held = b""
    turned_at = time.monotonic()
    while True:
        if (now := time.monotonic()) - turned_at > LATE_SECONDS:
            print(json.dumps({"late": True}), flush=True)
        turned_at = now
        ready, _, _ = select.select([line, orders], [], [], 0.005)
        if line in ready:
            try:
                data = os.read(line, 4096)
            except OSError:
                data = b""  # nobody has the other side open
            for reader in readers.values():
                if reader.is_alive:
                    reader.ear.waiting += data
        if orders in ready:
            data = orders.read(4096)
            if not data:
                return
            *lines, held = (held + data).split(b"\n")
            for text in lines:
                order = json.loads(text)
                reader = readers[order.pop("address")]
                if "alive" in order:
                    reader.is_alive = order["alive"]
                else:
                    if "data" in order:
                        order["data"] = bytes.fromhex(order["data"])
                    if "report" in order:
                        order["report"] = bytes.fromhex(order["report"])
                    reader.device.ctx.submit_event(order)
        for reader in readers.values():
            reader.device.ctx.refresh()


if __name__ == "__main__":
    main()
