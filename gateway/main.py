"""The only wiring: a Site becomes every collaborator, handed over by keyword, run in one TaskGroup."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import structlog

from gateway.clock import SystemClock
from gateway.data_folder import DataFolder, MediaCondition
from gateway.logs import Logs
from gateway.notify import Notify, feed_watchdog
from gateway.redaction import Redaction
from gateway.site import Secrets, Site, load, secrets_folder
from gateway.supervision import Progress, Supervisor

log = structlog.get_logger(__name__)

_LOOP_MOVES_WITHIN = 5.0
_LOOP_BEAT_SECONDS = 1.0


def run(*, site_path: Path, data: Path) -> int:
    """Run the gateway of a site until SIGTERM or SIGINT; the exit status. Raises GatewayError when it cannot start."""
    notify = Notify.take_from()
    redaction = Redaction()
    secrets = Secrets(folder=secrets_folder(site_path), heard=redaction.hide)
    site = load(site_path, secrets=secrets)
    with DataFolder.open(data) as folder, Logs(redaction=redaction):
        asyncio.run(_run(site=site, folder=folder, notify=notify))
    return 0


async def _run(*, site: Site, folder: DataFolder, notify: Notify) -> None:
    clock = SystemClock()
    progress = Progress(clock=clock)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if folder.media_condition is not MediaCondition.READY:
        log.error("media_folder_not_ready", condition=folder.media_condition, folder=str(folder.media))

    def status() -> str:
        return f"{site.site.name}: {len(site.lanes)} lanes"

    async def beat() -> None:
        while True:
            progress.beat("loop")
            await asyncio.sleep(_LOOP_BEAT_SECONDS)

    async with Supervisor(clock=clock) as supervisor:
        progress.expect("loop", within=_LOOP_MOVES_WITHIN)
        supervisor.keep("loop beat", beat)
        supervisor.keep("watchdog", lambda: feed_watchdog(notify=notify, progress=progress, status=status))
        log.info("gateway_started", site=site.site.name, data=str(folder.path))
        notify.ready(status())
        await stop.wait()
        notify.stopping()
        log.info("gateway_stopping")
