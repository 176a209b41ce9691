"""The compiled functions and those in Python: equal results, equal errors, and equal lives of what they hand out."""

import tracemalloc
from random import Random

import packet_cases
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.rtsp.client.connection import packet_runs
from drivers.rtsp.depacketizer import whole_slices
from gateway.camera_worker.transport_stream import transport_packets

FUNCTIONS = (packet_runs, whole_slices, transport_packets)
LARGEST = 8_000_000


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The functions of the present source, compiled with every warning an error."""
    if not packet_cases.can_compile():
        pytest.skip("no C compiler, or no headers of Python")
    return packet_cases.load(packet_cases.build(tmp_path_factory.mktemp("compiled")))


@settings(max_examples=examples(60, of=500))
@given(st.integers(0, 1 << 64))
def test_both_return_and_raise_the_same(compiled, seed):
    for number in range(20):
        packet_cases.compare(compiled, Random(seed + number))


def test_the_examples_reach_what_they_are_for(compiled):
    """Else both would be equal in refusing everything."""
    found = dict.fromkeys(FUNCTIONS, 0)
    for seed in range(600):
        function, given_ = packet_cases.call(Random(seed))
        _, result = packet_cases.outcome(getattr(compiled, function.__name__), given_())
        found[function] += isinstance(result, bytearray) or (isinstance(result, list) and len(result[0][1]) > 0)
    assert all(count > 50 for count in found.values()), found


@pytest.mark.parametrize("is_h265", [False, True])
def test_a_slice_is_as_long_as_it_may_be(compiled, is_h265):
    start, head = (6, 15) if is_h265 else (5, 14)
    begin = b"\x62\x01" if is_h265 else b"\x5c"
    for size in (LARGEST, LARGEST + 1):
        left, packets = size - start, []
        for number in range(130):
            part = min(left, 62_000)
            left -= part
            ends = 0x80 * (not number) | 0x40 * (not left)
            fixed = bytes((0x80, 96 | 0x80 * (not left), 0, number + 1)) + bytes(8)
            packets.append(fixed + begin + bytes((ends | 1,)) + b"\x80" + bytes(part - 1))
            assert len(packets[-1]) == head + part
        results = [
            function(packets, 0, is_h265, 0x8060_0001, -1, LARGEST)
            for function in (whole_slices, compiled.whole_slices)
        ]
        assert results[0] == results[1]
        assert [len(unit) for unit, _ in results[0][0]] == ([size] if size == LARGEST else [])


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_a_packet_holds_its_buffer_and_nothing_else_does(compiled, way):
    find = packet_runs if way == "python" else compiled.packet_runs
    buffer = bytearray(b"$\0\0\x03abc$\0\0\x02de")
    ((channel, (packet, other)),), after = find(memoryview(buffer), 0, len(buffer), {0})
    assert (channel, after) == (0, len(buffer))
    with pytest.raises(BufferError):
        buffer.clear()
    buffer[4:7] = b"xyz"
    assert (bytes(packet), bytes(other)) == (b"xyz", b"de")
    del packet, other
    with pytest.raises(IndexError):
        find(memoryview(buffer), 0, len(buffer) + 1, {0})
    buffer.clear()


def test_nothing_is_kept(compiled):
    calls = [packet_cases.call(Random(seed)) for seed in range(300)]

    def work():
        for function, given_ in calls:
            packet_cases.outcome(getattr(compiled, function.__name__), given_())

    work()
    tracemalloc.start()
    try:
        work()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10):
            work()
        assert tracemalloc.get_traced_memory()[0] - before < 2_000
    finally:
        tracemalloc.stop()


def test_wrong_arguments_are_refused(compiled):
    for function in FUNCTIONS:
        with pytest.raises(TypeError):
            getattr(compiled, function.__name__)(None)
    with pytest.raises(TypeError):
        compiled.whole_slices((), 0, False, 0, 0, 0)
    with pytest.raises(TypeError):
        compiled.whole_slices([None], 0, False, 0, 0, 0)
    with pytest.raises(IndexError):
        compiled.whole_slices([b""], -2, False, 0, 0, 0)
