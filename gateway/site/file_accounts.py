"""Accounts that a site file of an older format holds. The register takes them over; nothing else reads them. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from drivers.settings import Name, SecretName, Section
from gateway.site.fault import SiteFault
from gateway.site.faults import faults_of
from gateway.site.fields import Permission
from gateway.site.formats import ACCOUNTS, removed


class FileAccount(Section):
    """An entry of `[[api.accounts]]`. The password is the secret of that name."""

    username: Name
    password: SecretName
    permissions: tuple[Permission, ...] = ("*",)


class _Api(Section):
    accounts: tuple[FileAccount, ...]


class _File(Section):
    api: _Api


def accounts_of(text: bytes) -> tuple[FileAccount, ...]:
    """Return the accounts that a valid site file holds; none from the format on in which they are kept elsewhere."""
    return _accounts_in(tomllib.loads(text.decode("utf-8-sig")))


def account_faults(raw: Mapping[str, Any]) -> Iterator[SiteFault]:
    """Yield the faults of the accounts that a site file holds."""
    try:
        accounts = _accounts_in(raw)
    except ValidationError as error:
        yield from faults_of(error)
        return
    names = [account.username for account in accounts]
    for index, name in enumerate(names):
        if (first := names.index(name)) != index:
            place = f"{ACCOUNTS}[{index}].username"
            yield SiteFault(place, f"{name!r} is already used by {ACCOUNTS}[{first}]")


def _accounts_in(raw: Mapping[str, Any]) -> tuple[FileAccount, ...]:
    found = removed(raw, ACCOUNTS)
    return () if found is None else _File.model_validate({"api": {"accounts": found}}).api.accounts
