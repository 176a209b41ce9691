"""Write the manual pages and the shells' completion of the installed program.

Called as `pages.py SHARE`, the folder of /usr/share. The pages are made from the help of each command:
`edge-gateway.1` lists the commands, `edge-gateway-NAME.1` describes one of them with its subcommands.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from typer.completion import get_completion_script

from gateway.cli.app import COMPLETE, app
from gateway.cli.commands import NAMED, Named

PROGRAM = "edge-gateway"
_PLACES = {
    "bash": f"bash-completion/completions/{PROGRAM}",
    "zsh": f"zsh/vendor-completions/_{PROGRAM}",
    "fish": f"fish/vendor_completions.d/{PROGRAM}.fish",
}


def write_pages(share: Path) -> None:
    """Write a page for the program and one for each command below `share`/man/man1."""
    folder = share / "man/man1"
    folder.mkdir(parents=True, exist_ok=True)
    installed = [named for named in NAMED if named.is_installed]
    pages = {PROGRAM: "".join(_program(installed))}
    for named in installed:
        name = f"{PROGRAM}-{named.name}"
        pages[name] = "".join(_page(name, named.summary, _described(named.loaded(), f"{PROGRAM} {named.name}")))
    for name, text in pages.items():
        (folder / f"{name}.1.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def write_completion(share: Path) -> None:
    """Write each shell's completion below `share`, at the place where Debian's shells look."""
    for shell, place in _PLACES.items():
        (share / place).parent.mkdir(parents=True, exist_ok=True)
        script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE, shell=shell)
        (share / place).write_text(script + "\n", encoding="utf-8")


def _program(installed: Sequence[Named]) -> Iterator[str]:
    root = typer.main.get_group(app)
    commands = (f".TP\n.BR {_bare(f'{PROGRAM}-{named.name}')} (1)\n{_bare(named.summary)}\n" for named in installed)
    body = (*_paragraphs(root.help or ""), *_options(root), ".SH COMMANDS\n", *commands)
    return _page(PROGRAM, "gateway of one parking or gate site", iter(body))


def _page(name: str, summary: str, body: Iterator[str]) -> Iterator[str]:
    day = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC).date().isoformat()
    yield f'.TH {_bare(name).upper()} 1 {day} "{PROGRAM} {version(PROGRAM)}"\n'
    yield f".SH NAME\n{_bare(name)} \\- {_bare(summary.rstrip('.'))}\n.SH DESCRIPTION\n"
    yield from body


def _described(command: Any, called: str) -> Iterator[str]:
    """Describe a command, then each command below it."""
    yield from _paragraphs(command.help or "")
    usage = " ".join(command.collect_usage_pieces(command.make_context(called, [], resilient_parsing=True)))
    yield f".SH SYNOPSIS\n.B {_bare(called)}\n{_bare(usage)}\n"
    yield from _options(command)
    for name, below in getattr(command, "commands", {}).items():
        yield f'.SH "{_bare(f"{called} {name}").upper()}"\n'
        yield from _described_below(below, f"{called} {name}")


def _described_below(command: Any, called: str) -> Iterator[str]:
    text = "".join(_described(command, called))
    yield text.replace(".SH SYNOPSIS", ".SS Synopsis").replace(".SH OPTIONS", ".SS Options")


def _options(command: Any) -> Iterator[str]:
    shown = [option for option in command.params if getattr(option, "help", None) and not option.hidden]
    if shown:
        yield ".SH OPTIONS\n"
    for option in shown:
        names = ", ".join(option.opts) if option.opts[0].startswith("-") else option.metavar or option.name
        value = "" if getattr(option, "is_flag", True) or not option.metavar else f" {option.metavar}"
        yield f".TP\n.B {_bare(names + value)}\n{_bare(option.help)}\n"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield f".PP\n{_bare(' '.join(paragraph.split()))}\n"


def _bare(text: str) -> str:
    """Escape what roff would read as its own; backquotes of the help become bold words' quotes."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("`", '"')
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
    write_completion(Path(sys.argv[1]))
