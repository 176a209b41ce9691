"""In which order files of tests begin: what takes long first, so that no worker is left with it at the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

_LONG = ("tests/system/", "tests/gateway/simulation/", "tests/gateway/recording/", "tests/gateway/camera_worker/")


def _rank(nodeid: str) -> int:
    return next((rank for rank, folder in enumerate(_LONG) if nodeid.startswith(folder)), len(_LONG))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Within a rank the order stays as it is: by chance."""
    ranked: Sequence[pytest.Item] = sorted(items, key=lambda item: _rank(item.nodeid))
    items[:] = ranked
