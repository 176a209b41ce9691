"""The daemon's process: it opens the data folder, locks the lines, sets up logs, and runs the gateway."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from gateway.app.contexts import RunContext
from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.logs import Logs
from gateway.runtime.process_settings import give_memory_back, set_aside, write_no_core_dump
from gateway.runtime.redaction import Redaction
from gateway.site import Secrets, doubtful, load_whole, secrets_folder
from gateway.site.line_locks import LineLocks
from gateway.site.trial_files import TrialFiles

if TYPE_CHECKING:
    from gateway.web.families import Route
    from gateway.web.status.snapshot import DemoCard

log = structlog.get_logger(__name__)


def run(
    *, site_path: Path, data: Path, extra_routes: tuple[Route, ...] = (), demo_cards: tuple[DemoCard, ...] = ()
) -> int:
    """Run the gateway of a site until SIGTERM or SIGINT and return the exit status.

    Raises GatewayError when it cannot start.

    Args:
        site_path: the site file.
        data: the data folder.
        extra_routes: further operations beside those of the catalogue.
        demo_cards: cards that the page offers to present; one of `extra_routes` presents them.
    """
    os.umask(os.umask(0o077) | 0o027)  # no access for other users to databases, footage and keys
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # must not end the process before `Gateway.live` handles it
    write_no_core_dump()
    give_memory_back()
    notify = Notify.take_from()
    redaction = Redaction()
    secrets = Secrets(folder=secrets_folder(site_path), report=redaction.hide)
    files = TrialFiles(path=site_path, folder=data / "site-file")
    loaded = load_whole(site_path, secrets=secrets, text=files.unconfirmed())
    locked = LineLocks(links=loaded.site.links)
    with DataFolder.open(data) as folder, locked as locks, Logs(redaction=redaction) as logs:
        if folder.takes_nothing:
            log.error("gateway_starts_without_recording", why=folder.takes_nothing)
        for doubt in doubtful(loaded.site, site_path):
            log.warning("site_file_doubtful", doubt=doubt)
        start = files.at_start()
        if start.notice:
            log.warning("site_file_returned", why=start.notice)
        context = RunContext(
            loaded=loaded,
            files=files,
            folder=folder,
            secrets=secrets,
            notify=notify,
            locks=locks,
            start=start,
            redaction=redaction,
            log_tail=logs.tail,
            extra_routes=extra_routes,
            demo_cards=demo_cards,
        )
        gateway = Gateway(context)
        set_aside()
        asyncio.run(gateway.live())
    return 0
