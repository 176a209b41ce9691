"""Excel files over a real socket, read back as the XML that they are."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from aiohttp import ClientSession, web

from gateway.web import excel
from gateway.web.admission import errors_as_envelopes
from gateway.web.excel import MEDIA_TYPE, At, Column, Excel, Sheet

NOON = 1_768_323_600_000_000  # 2026-01-13 12:00 at Toronto


async def batches(*rows, size=2):
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def cells(content, sheet=1):
    """Rows of (type, text) as Excel would read them: `s` text, `n` a number."""
    with zipfile.ZipFile(BytesIO(content)) as book:
        text = book.read(f"xl/worksheets/sheet{sheet}.xml").decode()
    return [
        [
            ("s" if 't="inlineStr"' in head else "f" if "<f>" in inner else "n", re.sub(r"<[^>]*>", "", inner))
            for head, inner in re.findall(r"<c ([^>]*)>(.*?)</c>", row)
        ]
        for row in re.findall(r"<row [^>]*>(.*?)</row>", text)
    ]


@pytest.fixture
async def asked(tmp_path, monkeypatch):
    """Asks for a file of these sheets; nothing may be left of it on the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    maker = Excel(zone=ZoneInfo("America/Toronto"))
    wanted: list[Sheet] = []

    async def handler(request):
        return await maker.answer(request, name="things", sheets=wanted)

    app = web.Application(middlewares=[errors_as_envelopes])
    app.router.add_get("/", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    async def ask(*sheets):
        wanted[:] = sheets
        async with ClientSession() as client, client.get(f"http://127.0.0.1:{runner.addresses[0][1]}/") as answer:
            return answer.status, answer.headers, await answer.read()

    yield ask
    await runner.cleanup()
    assert list(Path(tmp_path).iterdir()) == []


async def test_text_stays_text_and_moments_are_the_sites(asked):
    rows = (["=1+1", 5, 1.5, At(NOON), True], ["+49", None, "", "\x07<&>", "@x"], ["x" * 40_000, 0, 0, 0, False])
    status, headers, content = await asked(Sheet("One", tuple(Column(name) for name in "abcde"), batches(*rows)))
    assert status == 200
    assert headers["Content-Type"] == MEDIA_TYPE
    assert headers["Content-Disposition"] == 'attachment; filename="things.xlsx"'
    titles, first, second, third = cells(content)
    assert [text for _, text in titles] == list("abcde")
    assert first == [("s", "=1+1"), ("n", "5"), ("n", "1.5"), ("n", "46035.5"), ("s", "yes")]
    assert second == [("s", "+49"), ("s", "_x0007_&lt;&amp;&gt;"), ("s", "@x")]
    assert len(third[0][1]) == 32_767


async def test_several_sheets(asked):
    _, _, content = await asked(*(Sheet(name, (Column("n"),), batches([name])) for name in ("One", "Two")))
    assert (cells(content, 1)[1], cells(content, 2)[1]) == ([("s", "One")], [("s", "Two")])


@pytest.mark.parametrize(("rows", "told"), [(5, False), (6, True)])
async def test_what_does_not_fit_is_told(asked, monkeypatch, rows, told):
    monkeypatch.setattr(excel, "MOST_ROWS", 5)
    _, _, content = await asked(Sheet("One", (Column("n"),), batches(*([n] for n in range(rows)))))
    found = cells(content)
    assert len(found) == 6 + told
    assert ("There are more" in found[-1][0][1]) is told


async def test_rows_that_fail_leave_nothing_behind(asked):
    async def failing():
        yield [["a"]]
        raise TimeoutError

    status, _, content = await asked(Sheet("One", (Column("n"),), failing()))
    assert status == 504
    assert b'"success":false' in content


async def test_many_rows_keep_nobody_waiting(asked):
    """How late the loop is while 20,000 rows are written; batches are made as they are taken."""
    ended = asyncio.Event()
    lags = []

    async def tick():
        while not ended.is_set():
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - start)

    async def many():
        for number in range(200):
            yield [[f"card {number}", number, At(NOON), "text"] for _ in range(100)]

    ticking = asyncio.get_running_loop().create_task(tick())
    _, _, content = await asked(Sheet("One", tuple(Column(name) for name in "abcd"), many()))
    ended.set()
    await ticking
    assert len(cells(content)) == 20_001
    lags.sort()
    assert lags[len(lags) // 2] < 0.05, "the loop has to come round while rows are written"
