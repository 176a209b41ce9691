"""The program `edge-gateway`: its commands, and the messages and exit statuses of their failures."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from typing import Annotated

import typer

from gateway.cli.commands import NamedCommands
from gateway.domain.errors import ConfigError, GatewayError, GatewayUnreachable
from gateway.runtime.redaction import Redaction

FAILED = 1
MISCONFIGURED = 2
UNREACHABLE = 3
INTERRUPTED = 130
COMPLETE = "_EDGE_GATEWAY_COMPLETE"
"""The variable that is set when a shell asks for completions of a command line."""


@dataclass(slots=True)
class Invocation:
    """Options given before the command."""

    debug: bool = False


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata  # noqa: PLC0415  # other commands start faster without it

        typer.echo(f"edge-gateway {importlib.metadata.version('edge-gateway')}")
        raise typer.Exit


app = typer.Typer(
    name="edge-gateway",
    cls=NamedCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")] = False,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Run and inspect the gateway of one parking or gate site.

    Example: edge-gateway check /etc/edge-gateway/site.toml
    """
    ctx.obj.debug = debug


def main() -> None:
    """Run the command line and end the process.

    Exit status: 0 good; 1 a fault was found, or the command failed; 2 the command line, the site file or a secret is
    wrong; 3 no gateway answers; 130 interrupted.
    """
    invocation = Invocation()
    if COMPLETE in os.environ:
        # Imported only here, because only a shell that completes a line needs it.
        from typer._completion_classes import completion_init  # noqa: PLC0415

        completion_init()
    try:
        app(obj=invocation)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # a technician at a gate needs a sentence, not a traceback
        if invocation.debug:
            _say(traceback.format_exc())
        sys.exit(_explain(_innermost(error)))


def _explain(error: Exception) -> int:
    """Print what went wrong; return the exit status."""
    if isinstance(error, ConfigError):
        for line in error.lines():
            _say(line)
    if isinstance(error, GatewayError):
        _say(f"edge-gateway: {error}")
        if isinstance(error, GatewayUnreachable):
            return UNREACHABLE
        return MISCONFIGURED if isinstance(error, ConfigError) else FAILED
    reason = str(error) or "no reason given"
    _say(f"edge-gateway: unexpected {type(error).__name__}: {reason} (edge-gateway --debug … shows where)")
    return FAILED


def _innermost(error: Exception) -> Exception:
    """Return the error inside nested exception groups that hold only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _say(text: str) -> None:
    typer.echo(Redaction().text(text), err=True)
