"""The commands of the program by name. The module of one is imported when it is called; `--help` needs none of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Named:
    """A command, or a group of them, that is not imported yet.

    Attributes:
        summary: the first paragraph of its own help.
        place: `module:name` of its function, or of its `typer.Typer` when it is a group.
    """

    name: str
    summary: str
    place: str

    def loaded(self) -> Any:
        """Return the command itself."""
        module, _, name = self.place.partition(":")
        found = getattr(importlib.import_module(module), name)
        alone = typer.Typer()
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=self.name)
        else:
            alone.command(self.name)(found)
        return typer.main.get_group(alone).commands[self.name]


NAMED = (
    Named(
        "check",
        "Say everything that is wrong with a site file, each fault with its place. Exit status 2 when there is any.",
        "gateway.cli.check:check",
    ),
    Named("run", "Run the gateway of a site until it is told to stop.", "gateway.cli.run:run"),
    Named(
        "reload",
        "Have the gateway that runs read its site file again: cameras are added, changed and removed at once.",
        "gateway.cli.reload:reload",
    ),
    Named(
        "demo",
        "Run a simulated site: barriers, card readers, cameras and a central service, with vehicles coming by.",
        "gateway.cli.demo:demo",
    ),
    Named(
        "drivers",
        "List the drivers that a site file can name, and the device profiles with what they can do.",
        "gateway.cli.drivers:drivers",
    ),
    Named(
        "simulate",
        "Run the real lanes, decisions, commands, store and outbox against a simulated field, on virtual time.",
        "gateway.cli.simulate:simulate",
    ),
    Named(
        "probe",
        "Look at a line: what comes from a port, who is on a bus, what one unit holds. Raw bytes are shown.",
        "gateway.cli.probe:app",
    ),
    Named("cards", "Questions about cards and their numbers.", "gateway.cli.cards:cards"),
    Named("media", "The disk of footage.", "gateway.cli.media:app"),
    Named("osdp", "Keys of OSDP readers.", "gateway.cli.osdp:app"),
    Named(
        "evidence",
        "Fetch the proof of an event as one signed file, or judge such a file on any machine.",
        "gateway.cli.evidence:app",
    ),
    Named("users", "Who may sign in at the site, what they may do, and the keys of programs.", "gateway.cli.users:app"),
    Named(
        "outbox",
        "What waits for central, and what central refused: look at it, send it again, edit it, let it go.",
        "gateway.cli.outbox:app",
    ),
    Named(
        "sync",
        "See how the site stands with central, fetch everything anew, and send what central has lost.",
        "gateway.cli.sync:app",
    ),
    Named(
        "webhooks",
        "Look at webhooks, enable them, send again what was not taken, try them out. Programs register them.",
        "gateway.cli.webhooks:app",
    ),
)


class NamedCommands(TyperGroup):
    """A group that tells of its commands by their names and summaries, and has the one that is called loaded."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {named.name: TyperCommand(name=named.name, help=named.summary) for named in NAMED}
        self._named = {named.name: named for named in NAMED}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As its base does, and the command is the loaded one."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self._named[name].loaded(), rest
