"""Migrations as numbered SQL files, one folder per database file. A step and its number are committed together."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from gateway.domain.errors import StoreError

Family = Literal["site", "cards"]
FAMILIES: tuple[Family, Family] = ("site", "cards")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered migration."""

    number: int
    name: str
    sql: str


def migrations(family: Family) -> tuple[Migration, ...]:
    """Return all steps of a database file, in order. Numbers run from 1 without a gap."""
    steps: list[Migration] = []
    for file in (resources.files(__name__) / family).iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            steps.append(Migration(number=int(number), name=name, sql=file.read_text("utf-8")))
    steps.sort(key=lambda step: step.number)
    return tuple(steps)


def after_salvage(family: Family) -> str:
    """Return SQL that makes a file consistent again after rows were lost."""
    return (resources.files(__name__) / f"{family}_after_salvage.sql").read_text("utf-8")


def refuse_newer(connection: sqlite3.Connection, steps: tuple[Migration, ...]) -> int:
    """Return the schema's number. Raises StoreError if the schema is newer than this program knows."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    newest = steps[-1].number
    if version > newest:
        raise StoreError(
            f"the database has schema {version}, this program knows up to {newest}: "
            "install the newer program again, or restore the data folder that belongs to this one"
        )
    return version


def migrate(connection: sqlite3.Connection, steps: tuple[Migration, ...]) -> None:
    """Apply all missing migrations. Raises StoreError if the schema is newer than this program knows."""
    version = refuse_newer(connection, steps)
    for step in steps:
        if step.number > version:
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{step.sql}\nPRAGMA user_version = {step.number};\nCOMMIT;")
            except sqlite3.Error:
                if connection.in_transaction:
                    connection.rollback()
                raise
