"""Access to the register of accounts: through the gateway that runs on the data folder, or directly if none runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.domain.errors import ConfigError, GatewayError
from gateway.runtime.beneath import acting_as_owner
from gateway.runtime.clock import SystemClock
from gateway.web.register.changes import REGISTER_PATH, Answer, Change

if TYPE_CHECKING:
    from gateway.runtime.data_folder import DataFolder


def made(change: Change, data: Path, *, new: bool = False) -> Answer:
    """Make a change; return the register's lists after it. Raises GatewayError when it is refused.

    `new`: the folder may be empty, because no gateway has run on it yet.
    """
    from gateway.cli.client import NobodyThere, RunningGatewayClient  # noqa: PLC0415  # help and wrong options answer faster

    if not new and not (data / "site.db").exists():
        raise ConfigError(f"no gateway has run on {data} yet; start it once, or say with --data where its data is")
    try:
        answer = RunningGatewayClient.local(data / "run").answer_of(
            Answer, REGISTER_PATH, change.model_dump(mode="json")
        )
    except NobodyThere:
        answer = asyncio.run(_here(change, data))
    if answer.error:
        raise GatewayError(answer.error)
    return answer


async def _here(change: Change, data: Path) -> Answer:
    """Make the change in this process, which locks the data folder meanwhile, so that no gateway starts on it."""
    from gateway.store import Store  # noqa: PLC0415  # other commands start faster without it
    from gateway.web.register.register import Register  # noqa: PLC0415  # likewise

    os.umask(os.umask(0o077) | 0o027)  # as in the gateway: no access for other users to its databases
    with acting_as_owner(data), _opened(data) as folder:
        store = Store(folder=folder.path, site_name="", sends=False)
        await store.open()
        try:
            register = Register(
                accounts=store.accounts,
                api_keys=store.api_keys,
                journal=store.journal,
                remembered_accounts=store.remembered_accounts,
                sessions=store.sessions,
                clock=SystemClock(),
            )
            return await register.ask(change)
        finally:
            await store.close_as_found()


def _opened(data: Path) -> DataFolder:
    from gateway.runtime.data_folder import DataFolder  # noqa: PLC0415  # other commands start faster without it

    try:
        return DataFolder.open(data)
    except ConfigError as error:
        raise ConfigError(f"{error}; if that gateway has only just started, try again in a moment") from error
