"""The table of the program's commands. A command's module is imported only when the command is called."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gateway.domain.errors import GatewayError


@dataclass(frozen=True, slots=True)
class Named:
    """A command, or a group of them, that is not imported yet.

    Attributes:
        name: its name on the command line.
        summary: the first paragraph of its own help.
        place: `module:name` of its function, or of its `typer.Typer` if it is a group.
    """

    name: str
    summary: str
    place: str

    @property
    def is_installed(self) -> bool:
        """Tell whether the package of the command is there: a site's installation leaves out the simulation."""
        return importlib.util.find_spec(self.place.partition(".")[0]) is not None

    def loaded(self) -> Any:
        """Import and return the command or group. Raises GatewayError where its package is left out."""
        if not self.is_installed:
            raise GatewayError(
                f"'{self.name}' is not part of this installation, because no site needs it: install the wheel of this "
                "release in an environment of its own, with pip, and run it there"
            )
        module, _, name = self.place.partition(":")
        found = getattr(importlib.import_module(module), name)
        alone = typer.Typer(rich_markup_mode="markdown")  # joins the lines of a paragraph
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=self.name)
        else:
            alone.command(self.name)(found)
        return typer.main.get_group(alone).commands[self.name]


NAMED = (
    Named(
        "init",
        "Set up a new site: write its site file, secrets, certificate and first account, and start the gateway.",
        "gateway.cli.init:init",
    ),
    Named(
        "certificate",
        "Show the certificate that `init` made for the site, or renew it. Phones then need nothing new.",
        "gateway.cli.init.files:certificate",
    ),
    Named(
        "check",
        "Check a site file and list every fault with its place. The exit status is 2 when there is one.",
        "gateway.cli.check:check",
    ),
    Named("run", "Run the gateway of a site until SIGTERM or Ctrl-C.", "gateway.cli.run:run"),
    Named(
        "reload",
        "Take over the changes of the site file while the gateway runs.",
        "gateway.cli.reload:reload",
    ),
    Named(
        "backup",
        "Write a backup: databases, site file, profiles, sealed secrets. The gateway may run meanwhile.",
        "gateway.cli.backup:backup",
    ),
    Named(
        "restore",
        "Put a backup in its places on this box, or with `--check` see whether it is good. Stop the gateway first.",
        "gateway.cli.backup:restore",
    ),
    Named(
        "status",
        "Show the site in a few lines: lanes, devices, cameras, central. The exit status is 1 when a lane cannot work.",
        "gateway.cli.lanes:status",
    ),
    Named(
        "doctor",
        "List what is wrong at the site, the worst first, with what to do. The exit status is 1 when something is.",
        "gateway.cli.doctor:doctor",
    ),
    Named(
        "demo",
        "Run a simulated site with barriers, card readers, cameras, a central service and vehicles.",
        "simulation.demo.command:demo",
    ),
    Named(
        "drivers",
        "List the drivers and the device profiles, or show one profile.",
        "gateway.cli.drivers:drivers",
    ),
    Named(
        "simulate",
        "Simulate days of traffic and faults on virtual time, and check every promise.",
        "simulation.virtual_site.command:simulate",
    ),
    Named(
        "probe",
        "Test a line: see its units and frames, scan it, listen to a port, or read one device.",
        "gateway.cli.probe:app",
    ),
    Named(
        "discover",
        "Find serial ports, Modbus units, cameras and what mDNS announces, and print them as part of a site file.",
        "gateway.cli.discover:discover",
    ),
    Named(
        "fleet",
        "See the gateways of a fleet, command them, and prepare a NATS server for them. Runs anywhere.",
        "gateway.cli.fleet:app",
    ),
    Named("events", "List the events of the site, follow them, and export them.", "gateway.cli.events:app"),
    Named("lanes", "Show the lanes, watch them, and open, close, stop or hold a gate.", "gateway.cli.lanes:app"),
    Named("cards", "Find, add, change and suspend access cards, and explain card numbers.", "gateway.cli.cards:cards"),
    Named(
        "incidents",
        "List and fetch what lanes did around each alarm, and save what one did just now.",
        "gateway.cli.incidents:app",
    ),
    Named(
        "replay",
        "Run an incident through the lane machine of this release, and compare its answers with those of then.",
        "gateway.cli.incidents:replay",
    ),
    Named(
        "bundle",
        "Collect what helps whoever is called into one file: state, problems, events, log, lines, machine. No secrets.",
        "gateway.cli.bundle:bundle",
    ),
    Named("devices", "Show the devices of the site, and their inputs.", "gateway.cli.devices:app"),
    Named("cameras", "Show what the cameras record, and fetch a picture.", "gateway.cli.cameras:app"),
    Named("media", "Prepare the disk for footage.", "gateway.cli.media:app"),
    Named("osdp", "Set the keys of OSDP readers.", "gateway.cli.osdp:app"),
    Named(
        "evidence",
        "Fetch the proof of an event as one signed file, or verify such a file on any machine.",
        "gateway.cli.evidence:app",
    ),
    Named("users", "Manage accounts, roles and the keys of programs.", "gateway.cli.users:app"),
    Named(
        "outbox",
        "Show what waits for central or was refused. Send it again, edit it, or drop it.",
        "gateway.cli.outbox:app",
    ),
    Named(
        "sync",
        "Show the state of synchronisation, fetch everything again, or send what central has lost.",
        "gateway.cli.sync:app",
    ),
    Named(
        "webhooks",
        "List webhooks, enable them, test them, and send failed messages again. Programs register them.",
        "gateway.cli.webhooks:app",
    ),
)


class NamedCommands(TyperGroup):
    """The group of all commands, with names and summaries for `--help`; a command is loaded when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {named.name: TyperCommand(name=named.name, help=named.summary) for named in NAMED}
        self._named = {named.name: named for named in NAMED}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, the loaded command, and the remaining arguments. See `TyperGroup.resolve_command`."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self._named[name].loaded(), rest
