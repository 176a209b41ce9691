"""A store for the tests of the mirror."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from at_work import opened_store

from gateway.store import Store


@pytest.fixture
async def store(tmp_path) -> AsyncIterator[Store]:
    folder = tmp_path / "store"
    folder.mkdir()
    async with opened_store(folder) as store:
        yield store
