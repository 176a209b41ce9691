"""The line's process by itself: it goes when its parent goes, and says nothing of what it was told."""

import asyncio
import sys

from drivers.osdp.messages import ReaderSetup, Setup

KEY = "5ec1e75ec1e75ec1e75ec1e75ec1e75e"


async def start():
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "drivers.osdp.line_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_without_a_parent_it_ends_at_once(tmp_path):
    process = await start()
    readers = (ReaderSetup(address=1, key=KEY),)
    setup = Setup(url=f"serial:{tmp_path / 'none'}", baud=9600, parity="none", stop_bits=1, readers=readers)
    process.stdin.write(setup.to_line())
    async with asyncio.timeout(20):
        assert b'"line"' in await process.stdout.readline()
        assert b'"lost"' in await process.stdout.readline()
    process.stdin.close()
    async with asyncio.timeout(30):
        _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")


async def test_a_setup_that_is_none_is_not_repeated():
    process = await start()
    async with asyncio.timeout(20):
        out, err = await process.communicate(f'{{"url": "x", "readers": [{{"key": "{KEY}!"}}]}}\n'.encode())
    assert process.returncode == 1
    assert KEY.encode() not in out + err
