"""Offers of each layer of the daemon to the next one: built once, frozen, and handed down whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.runtime.redaction import Redaction
from gateway.site.trial_files import AtStart

if TYPE_CHECKING:
    from gateway.app.central import CentralParts
    from gateway.app.device_registration import DeviceRegistration
    from gateway.app.machine_watch import MachineWatch
    from gateway.app.restartable import Restartable
    from gateway.app.run_records import RunRecords
    from gateway.app.running_field import RunningField
    from gateway.app.served_interface import ServedInterface
    from gateway.app.systemd import LaneControl, Notify
    from gateway.lanes import Lanes
    from gateway.lanes.incidents import Incidents
    from gateway.lines.site_lines import SiteLines
    from gateway.problems.found import SiteState
    from gateway.problems.problem import Verdict
    from gateway.proof_package.of_events import ProofPackages
    from gateway.recording import Recording
    from gateway.runtime.clock import SystemClock
    from gateway.runtime.data_folder import DataFolder
    from gateway.runtime.loop_watch import LoopWatch
    from gateway.runtime.supervision import Progress
    from gateway.site import LoadedSite, Secrets, Site
    from gateway.site.line_locks import LineLocks
    from gateway.site.running_site import RunningSite
    from gateway.site.trial_files import TrialFiles
    from gateway.store import Store
    from gateway.support.bundle import SupportBundle
    from gateway.web.families import Route
    from gateway.web.status.snapshot import DemoCard


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """Inputs of one run of the gateway: what the process gives to it.

    Attributes:
        loaded: the site, as the process has read it.
        files: the site file and its changes on trial.
        folder: the data folder.
        secrets: the site's secrets.
        notify: the socket of systemd.
        locks: the locks on the site's lines; None without locks.
        start: what became of a change that was on trial at the last stop.
        redaction: the secrets that no log may show.
        log_tail: returns the last lines of the log.
        extra_routes: further operations beside those of the catalogue.
        demo_cards: cards that the page offers to present; one of `extra_routes` presents them.
    """

    loaded: LoadedSite
    files: TrialFiles
    folder: DataFolder
    secrets: Secrets
    notify: Notify
    locks: LineLocks | None = None
    start: AtStart = field(default_factory=AtStart)
    redaction: Redaction = field(default_factory=Redaction)
    log_tail: Callable[[], tuple[str, ...]] = tuple
    extra_routes: tuple[Route, ...] = ()
    demo_cards: tuple[DemoCard, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LanesContext:
    """Parts that run before the services do: the store, the field, its lanes, and what watches them.

    Attributes:
        run: what the process has given.
        store: the store.
        lanes: the lanes.
        field: the lines and the devices.
        registration: the registration of devices and cameras in the store.
        records: the recorder of events on the gateway itself.
        incidents: what lanes did around each alarm.
        control: the wait until lanes are under control.
        machine: the watch over disks and memory.
        loop: the watch over the event loop.
        progress: the record of progress for the watchdog.
        clock: the monotonic clock and the wall clock.
        started_at: when the gateway started (monotonic seconds).
        stop: stops the gateway.
    """

    run: RunContext
    store: Store
    lanes: Lanes
    field: RunningField
    registration: DeviceRegistration
    records: RunRecords
    incidents: Incidents
    control: LaneControl
    machine: MachineWatch
    loop: LoopWatch
    progress: Progress
    clock: SystemClock
    started_at: float
    stop: Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServicesContext:
    """Offers of the services to each other.

    Attributes:
        base: what runs before them.
        site: returns the site in force.
        site_file: the reader of the site file.
        recording: the footage.
        interface: the interface on its port.
        central: the parts that work with central.
        lines: the polled lines, their scans and frames.
        guessable: the hashes of passwords that are known to be easily guessed, by the account's name.
        verdict: returns the present problems of the site.
        state: returns the present state of the site's parts.
        support: returns the maker of support bundles.
        proofs: returns the maker of proof packages.
    """

    base: LanesContext
    site: Callable[[], Site]
    site_file: RunningSite
    recording: Recording
    interface: ServedInterface
    central: Restartable[CentralParts]
    lines: SiteLines
    guessable: dict[str, str]
    verdict: Callable[[], Verdict]
    state: Callable[[], SiteState]
    support: Callable[[], SupportBundle]
    proofs: Callable[[], ProofPackages]
