"""The compiled functions of `drivers/rtsp/_fast.c` built for tests, and input of every kind for them.

`python packet_cases.py EXTENSION --seconds 60 --seed 1` compares them with those in Python; `make fuzz-compiled` runs
it with address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from drivers.rtsp.client import connection
from drivers.rtsp.depacketizer import whole_slices
from gateway.camera_worker.transport_stream import transport_packets

SOURCE = Path(__file__).parents[2] / "drivers" / "rtsp" / "_fast.c"
Call = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]
"""A function in Python, and what makes its arguments, each time anew."""


def can_compile() -> bool:
    return shutil.which("cc") is not None and Path(sysconfig.get_paths()["include"], "Python.h").exists()


def build(folder: Path, flags: Iterable[str] = ("-O1",)) -> Path:
    """Compile the extension, with every warning an error; returns its file."""
    built = folder / "_fast.abi3.so"
    words = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-DPy_LIMITED_API=0x030B0000", *flags]
    subprocess.run([*words, f"-I{sysconfig.get_paths()['include']}", str(SOURCE), "-o", str(built)], check=True)
    return built


def load(built: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("drivers.rtsp._fast", built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(chance: Random) -> Call:
    """A function and its arguments: such as come in use, and such as are spoilt in every way."""
    return chance.choice([_packet_runs, _packet_runs, _whole_slices, _whole_slices, _transport_packets])(chance)


def _packet_runs(chance: Random) -> Call:
    buffer = b"".join(_interleaved(chance) for _ in range(chance.randrange(12)))
    buffer = buffer[: chance.choice([len(buffer)] * 3 + [chance.randrange(len(buffer) + 1)])]
    at = chance.choice([0] * 7 + [chance.randrange(-2, len(buffer) + 3)])
    until = chance.choice([len(buffer)] * 5 + [chance.randrange(-2, len(buffer) + 3)])
    channels = set(chance.choices([0, 0, 0, 1, 2, 255], k=chance.randrange(8)))
    kind = chance.choice([bytearray, bytearray, bytes])
    released = chance.random() < 0.02

    def given() -> tuple[Any, ...]:
        view = memoryview(kind(buffer))
        if released:
            view.release()
        return view, at, until, channels

    return connection.packet_runs, given


def _interleaved(chance: Random) -> bytes:
    size = chance.choice([0, 1, 3, 20, chance.randrange(300)])
    packet = (
        b"$"
        + bytes((chance.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 9]),))
        + size.to_bytes(2, "big")
        + chance.randbytes(size)
    )
    spoilt = [packet[:-1], b"RTSP/1.0 200 OK\r\n\r\n", b"$", chance.randbytes(5), b"$\0\xff\xff"]
    return chance.choice([packet] * 40 + spoilt)


def _whole_slices(chance: Random) -> Call:
    is_h265 = chance.random() < 0.5
    sequence = chance.choice([0, 0xFFFF, 0xFFE0 + chance.randrange(32), *(chance.randrange(0x10000) for _ in range(6))])
    kind, timestamp = chance.choice([96, 97, 127]), chance.choice([0, 3_000, 0xFFFFFFFF - 3_000])
    follows = (0x8000 | kind) << 16 | sequence
    before = chance.choice([-1, timestamp - 3_600 & 0xFFFFFFFF] * 4 + [timestamp])
    packets: list[bytes] = []
    wrong = chance.choice([0, 0, 0, 0.05])
    for _ in range(chance.randrange(8)):
        count = 1 if chance.random() < wrong else chance.randrange(2, 10)
        for number in range(count):
            mark = 0x80 * (number == count - 1)
            head = bytes((0x80, mark | kind)) + (sequence & 0xFFFF).to_bytes(2, "big") + timestamp.to_bytes(4, "big")
            packets.append(head + b"same" + _fragment(chance, is_h265, 0x80 * (not number) | mark // 2, wrong))
            sequence += 1
        timestamp = timestamp + 3_600 & 0xFFFFFFFF
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        _spoil(packets, chance)
    at = chance.choice([0] * 6 + [chance.randrange(len(packets) + 2)])
    largest = chance.choice([8_000_000] * 4 + [chance.randrange(400)])
    kinds = chance.choices("bmor" if chance.random() < 0.1 else "bmo", k=len(packets))

    def given() -> tuple[Any, ...]:
        return [_as(*one) for one in zip(kinds, packets, strict=True)], at, is_h265, follows, before, largest

    return whole_slices, given


def _fragment(chance: Random, is_h265: bool, ends: int, wrong: float) -> bytes:
    is_wrong = chance.random() < wrong
    data = chance.randbytes(0 if is_wrong else chance.choice([1, 2, 40, chance.randrange(1, 200)]))
    first = bytes((chance.randrange(256) if is_wrong else chance.choice([0x80, 0x9A, 0xE0, 0x88]),))
    kind = chance.choice([0, 5, 19, 33]) if is_wrong else 1
    return (b"\x62\x01" if is_h265 else b"\x5c") + bytes((ends | kind,)) + first + data


def _spoil(packets: list[bytes], chance: Random) -> None:
    """Lose, repeat, move, shorten or change one packet."""
    if not packets:
        return
    at = chance.randrange(len(packets))
    packet = packets.pop(at)
    spoilt = bytearray(packet or b"\0")
    place = chance.randrange(len(spoilt))
    spoilt[place] ^= 1 << chance.randrange(8)
    head = bytearray(packet or b"\0")
    head[chance.randrange(min(17, len(head)))] ^= 1 << chance.randrange(8)
    packets[at:at] = chance.choice(
        [[], [packet] * 2, [packet[: chance.randrange(20)]], [bytes(spoilt)], [bytes(head)], [b""], [packet[::-1]]]
    )


def _as(kind: str, packet: bytes) -> bytes | memoryview:
    if kind == "b":
        return packet
    if kind == "o":  # a part of a larger buffer, of which more packets may be parts
        return memoryview(b"before" + packet + b"after")[6 : 6 + len(packet)]
    view = memoryview(bytearray(packet))
    if kind == "r":
        view.release()
    return view


def _transport_packets(chance: Random) -> Call:
    begin = chance.randbytes(188 * chance.choice([0, 0, 2]))
    field = chance.randbytes(chance.choice([7, 7, chance.randrange(100)]))
    head = chance.randbytes(chance.choice([20, 25, chance.randrange(200)]))
    room = max(0, 183 - len(field) - len(head))
    near = room + 184 * chance.randrange(3) + chance.randrange(-3, 4)
    data = chance.randbytes(chance.choice([0, room, max(0, near), max(0, near), chance.randrange(40_000)]))
    counter = chance.randrange(16)
    return transport_packets, lambda: (begin, field, head, data, counter)


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> object:
    """Return what a function returns, with the types of all its parts; or the error that it raises."""
    try:
        return _told(function(*arguments))
    except Exception as error:  # noqa: BLE001 -- which kind it is, is compared
        return type(error), str(error)


def _told(value: object) -> object:
    if isinstance(value, list | tuple):
        return type(value), [_told(one) for one in value]
    return type(value), bytes(value) if isinstance(value, memoryview) else value


def compare(compiled: ModuleType, chance: Random) -> None:
    reference, given = call(chance)
    arguments = given()
    compiled_outcome = outcome(getattr(compiled, reference.__name__), arguments)
    assert compiled_outcome == outcome(reference, given()), f"{reference.__name__}{given()!r}"


def main() -> None:
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("extension", type=Path)
    command.add_argument("--seconds", type=float, default=60)
    command.add_argument("--seed", type=int, default=time.time_ns())
    asked = command.parse_args()
    compiled, ends, count = load(asked.extension), time.monotonic() + asked.seconds, 0
    print(f"seed {asked.seed}", flush=True)
    while time.monotonic() < ends:
        compare(compiled, Random(asked.seed + count))
        count += 1
    print(f"{count} inputs, good")


if __name__ == "__main__":
    sys.exit(main())
