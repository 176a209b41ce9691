"""The site file on the page: shown with its faults, edited in its common parts, and changed on trial; and its accounts.

Only for administrators. A change is reverted unless a person confirms it within a minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from gateway.domain.accounts import LONGEST_PASSWORD, password_fault
from gateway.domain.errors import ConfigError
from gateway.domain.schedules import Day
from gateway.domain.writes import JsonObject
from gateway.site import Site
from gateway.site.edits import EDITABLE, Edit, edited
from gateway.site.running_site import Reloaded, RunningSite
from gateway.site.shown_file import ShownFault, ShownFile, shown_file
from gateway.site.unseen_readers import UnseenReader
from gateway.texts import Words, keyed, text
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text, Word, Yes
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import ADMINISTRATORS
from gateway.web.register.changes import (
    AccountShown,
    AddAccount,
    Change,
    Look,
    RemoveAccount,
    RoleShown,
    SetDisabled,
    SetPassword,
    SetRole,
    SetSecondFactor,
    SignOut,
)
from gateway.web.register.changes import Answer as RegisterAnswer

_WAIT_SECONDS = 15.0
"""How long a change waits for lanes to be free; less than the page waits for an answer."""


class WindowWanted(Body):
    """A time window of a schedule: from `start` to `end` on these days."""

    days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=8, fail_fast=True)]
    start: Annotated[str, Field(strict=True, pattern=r"^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$")]
    end: Annotated[str, Field(strict=True, pattern=r"^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$")]


class EditWanted(Body):
    """An edit of one entry of the site file: see `gateway.site.edits`."""

    section: Word
    id: Text = ""
    values: Annotated[dict[Word, Text | int | float | bool | None], Field(max_length=20, default_factory=dict)]
    windows: Annotated[tuple[WindowWanted, ...], Field(max_length=50, fail_fast=True)] | None = None
    remove: Yes = False

    def edit(self) -> Edit:
        """Return the edit as `gateway.site.edits` takes it."""
        windows = None if self.windows is None else tuple(one.model_dump(mode="json") for one in self.windows)
        return Edit(self.section, self.id, dict(self.values), windows, self.remove)


class EditsWanted(Body):
    """Edits of the file whose SHA-256 is `digest`; without edits, the file on disk is loaded as it is."""

    digest: Word
    edits: Annotated[tuple[EditWanted, ...], Field(max_length=200, fail_fast=True)] = ()


class TrialDecision(Body):
    """A person's decision on the change that is on trial: keep it, or revert it."""

    keep: Yes


class UnseenShown(AnswerPart):
    """A reader that has read nothing since the change; `proof` is what would show that it works."""

    device_id: int
    name: str
    proof: str
    text: str
    said: JsonObject


class TrialChange(AnswerPart):
    """A change that is on trial; `said` has the key and arguments of its text."""

    text: str
    said: JsonObject


class SettingsTrial(AnswerPart):
    """The change that is on trial; it is taken back in `seconds_left` unless a person keeps it."""

    by: str
    asks_person: bool
    seconds_left: float
    changes: tuple[TrialChange, ...]
    unseen: tuple[UnseenShown, ...]


class TrialEnded(AnswerPart):
    """The end of the last trial."""

    confirmed: bool
    why: str
    unseen: tuple[UnseenShown, ...]


class SiteFileShown(AnswerPart):
    """The site file: its lines without secrets, its faults, and the parts that can be edited, if it is valid.

    `digest` is the SHA-256 of the file; edits name it.
    """

    path: str
    digest: str
    lines: tuple[str, ...]
    faults: tuple[ShownFault, ...]
    notices: tuple[str, ...]
    trial: SettingsTrial | None
    last: TrialEnded
    parts: JsonObject | None


class SettingsAnswer(Answer):
    """The site file."""

    settings: SiteFileShown


class ChangeShown(AnswerPart):
    """A change of the site, and the lanes that it stops while it is made.

    `said` has the key and arguments of `text`.
    """

    text: str
    said: JsonObject
    part: str
    how: str
    lanes: tuple[str, ...]


class EditsTried(AnswerPart):
    """The effect of edits: the faults of the file, why it would be refused, and the changes."""

    faults: tuple[str, ...]
    refused: tuple[str, ...]
    changes: tuple[ChangeShown, ...]


class TriedAnswer(Answer):
    """Edits that were tried; nothing was changed."""

    settings: EditsTried


class EditsApplied(EditsTried):
    """Edits that are in force, on trial."""

    trial: SettingsTrial | None


class AppliedAnswer(Answer):
    """Edits that are in force."""

    settings: EditsApplied


class TrialDecided(AnswerPart):
    """The trial is over."""

    decided: Literal[True] = True


class DecidedAnswer(Answer):
    """The person's decision is carried out."""

    settings: TrialDecided


class StatusSettings(Family):
    """The handlers of `/status/settings/…`. `site_file`: None where the site file cannot be read again."""

    @operation("GET", "/status/settings/file", ADMINISTRATORS, "settings")
    async def _show(self) -> SettingsAnswer:
        return SettingsAnswer(settings=await self._settings())

    @operation("POST", "/status/settings/try", ADMINISTRATORS, "settings", reads=True)
    async def _try(self, wanted: EditsWanted) -> TriedAnswer:
        found = await self._file.compare(await self._edited(wanted))
        return TriedAnswer(settings=EditsTried(faults=found.faults, refused=found.refused, changes=_changes(found)))

    @operation("POST", "/status/settings/apply", ADMINISTRATORS, "settings")
    async def _apply(self, wanted: EditsWanted, caller: Caller) -> AppliedAnswer:
        text = await self._edited(wanted)
        done = await self._file.reload(by=f"user:{caller.username}", text=text, asks_person=True, wait=_WAIT_SECONDS)
        if not done.is_taken:
            raise RequestRefused(409, "; ".join((*done.faults, *done.refused)))
        applied = EditsApplied(faults=(), refused=(), changes=_changes(done), trial=self._trial())
        return AppliedAnswer(settings=applied)

    @operation("POST", "/status/settings/decide", ADMINISTRATORS, "settings")
    async def _decide(self, wanted: TrialDecision, caller: Caller) -> DecidedAnswer:
        by = f"user:{caller.username}"
        if not (self._file.confirm(by=by) if wanted.keep else self._file.take_back(by=by)):
            raise RequestRefused(409, text("refused.no_change_waits"))
        return DecidedAnswer(settings=TrialDecided())

    @property
    def _file(self) -> RunningSite:
        if self.context.site_file is None:
            raise RequestRefused(409, text("refused.no_reload"))
        return self.context.site_file

    async def _edited(self, wanted: EditsWanted) -> bytes:
        """Return the edited text. Raises RequestRefused (409) if the file has changed since it was shown."""
        content, _, _ = await self._looked()
        if _digest(content) != wanted.digest:
            raise RequestRefused(409, text("refused.site_file_changed"))
        try:
            return edited(content, (one.edit() for one in wanted.edits))
        except ConfigError as error:
            raise RequestRefused(409, error.words) from error

    async def _looked(self) -> tuple[bytes, Site | None, ShownFile]:
        file = self._file
        try:
            content, loaded, faults = await file.look()
        except OSError as error:
            raise RequestRefused(409, text("refused.site_file_unreadable", why=str(error.strerror))) from error
        return content, None if loaded is None else loaded.site, shown_file(content, faults)

    async def _settings(self) -> SiteFileShown:
        file = self._file
        text, site, shown = await self._looked()
        last = file.last_outcome
        return SiteFileShown(
            path=str(file.path),
            digest=_digest(text),
            lines=shown.lines,
            faults=shown.faults,
            notices=tuple(file.notices()),
            trial=self._trial(),
            last=TrialEnded(confirmed=last.confirmed, why=str(last.why), unseen=_unseen(last.unseen)),
            parts=None if site is None else _parts(site),
        )

    def _trial(self) -> SettingsTrial | None:
        trial = self._file.trial
        if trial is None:
            return None
        return SettingsTrial(
            by=trial.by.removeprefix("user:"),
            asks_person=trial.asks_person,
            seconds_left=round(self._file.seconds_left(), 1),
            changes=tuple(TrialChange(**_told(change.words())) for change in trial.changes),
            unseen=_unseen(trial.unseen()),
        )


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _unseen(readers: Iterable[UnseenReader]) -> tuple[UnseenShown, ...]:
    return tuple(
        UnseenShown(
            device_id=one.device_id,
            name=one.name,
            proof=one.proof.value,
            text=str(one.words),
            said={"text": keyed(one.words)},
        )
        for one in readers
    )


def _told(words: Words) -> dict[str, Any]:
    return {"text": str(words), "said": {"text": keyed(words)}}


def _changes(found: Reloaded) -> tuple[ChangeShown, ...]:
    return tuple(
        ChangeShown(**_told(change.words()), part=change.part, how=change.how, lanes=change.lanes)
        for change in found.changes
    )


def _parts(site: Site) -> JsonObject:
    """Return the parts of the file that can be edited."""
    return {
        "site": {"name": site.site.name},
        "lanes": _rows(site.lanes, "lanes"),
        "devices": _rows(site.devices, "devices"),
        "cameras": _rows(site.cameras, "cameras"),
        "areas": _rows(site.areas, "areas"),
        "schedules": [one.model_dump(mode="json") for one in site.schedules],
        "holidays": [one.model_dump(mode="json") for one in site.holidays],
    }


def _rows(items: Iterable[object], section: str) -> list[JsonValue]:
    return [{key: getattr(item, key) for key in ("id", *EDITABLE[section])} for item in items]


class AccountWanted(Body):
    """A change of an account. A second factor can only be removed here; its owner sets up a new one."""

    do: Literal["add", "password", "role", "disable", "enable", "no-second-factor", "remove", "sign-out"]
    username: Word
    password: Annotated[str, Field(strict=True, max_length=LONGEST_PASSWORD, repr=False)] = ""
    role: Word = ""


class AccountsAndRoles(AnswerPart):
    """The accounts of the site, and the roles that they may have."""

    accounts: tuple[AccountShown, ...]
    roles: tuple[RoleShown, ...]


class AccountsAnswer(Answer):
    """The accounts of the site."""

    accounts: AccountsAndRoles


class StatusAccounts(Family):
    """The handlers of `/status/settings/accounts` and `/status/settings/account`.

    Passwords are hashed before they reach the register, and never shown.
    """

    @operation("GET", "/status/settings/accounts", ADMINISTRATORS, "accounts")
    async def _list(self) -> AccountsAnswer:
        return _shown(await self.context.auth.register.ask(Look()))

    @operation("POST", "/status/settings/account", ADMINISTRATORS, "accounts")
    async def _change(self, wanted: AccountWanted, caller: Caller) -> AccountsAnswer:
        if wanted.username == caller.username and wanted.do in {"disable", "remove", "role"}:
            raise RequestRefused(409, text("refused.own_rights"))
        answer = await self.context.auth.register.ask(await self._wanted(wanted), by=caller.username)
        if answer.error:
            raise RequestRefused(409, answer.error)
        return _shown(answer)

    async def _wanted(self, wanted: AccountWanted) -> Change:  # noqa: PLR0911 (one per change)
        name = wanted.username
        match wanted.do:
            case "add":
                return AddAccount(username=name, password_hash=await self._hashed(wanted), role=wanted.role)
            case "password":
                return SetPassword(username=name, password_hash=await self._hashed(wanted))
            case "role":
                return SetRole(username=name, role=wanted.role)
            case "disable" | "enable":
                return SetDisabled(username=name, disabled=wanted.do == "disable")
            case "no-second-factor":
                return SetSecondFactor(username=name, secret="", step=0)
            case "remove":
                return RemoveAccount(username=name)
            case "sign-out":
                return SignOut(username=name)

    async def _hashed(self, wanted: AccountWanted) -> str:
        if fault := password_fault(wanted.username, wanted.password):
            raise RequestRefused(409, fault)
        return await self.context.auth.roster.hashed(wanted.password)


def _shown(answer: RegisterAnswer) -> AccountsAnswer:
    return AccountsAnswer(accounts=AccountsAndRoles(accounts=answer.accounts, roles=answer.roles))
