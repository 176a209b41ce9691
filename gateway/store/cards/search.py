"""Conditions of searches among cards, as SQL."""

from __future__ import annotations

import json

from gateway.domain.printed import readings_of
from gateway.store.engine.text_search import Condition, any_of, json_may_hold, search_in

_USERNAMES = ("username", "user.username", "guest.username")


def search_cards(search: str) -> Condition:
    """Build the condition for cards whose number, holder, username or plate contains this text; "" is in all.

    A card is found by its whole number in any spelling too.
    """
    if not search or "\0" in search:
        return search_in(search)
    plate = search_in(search, plates=("alias",))
    spelled = json.dumps([alias for one in readings_of(search) for alias in (*one.aliases(), *one.other_spellings())])
    return any_of(
        search_in(search, texts=("number", "holder")),
        having_username(search),
        Condition(
            f"id IN (SELECT card_id FROM card_alias WHERE alias >= 'plate:' AND alias < 'plate;' AND {plate.sql})",
            plate.values,
        ),
        Condition("id IN (SELECT card_id FROM card_alias WHERE alias IN (SELECT value FROM json_each(?)))", (spelled,)),
    )


def having_username(search: str) -> Condition:
    """Build the condition for cards whose username contains this text."""
    usernames = tuple(f"json_extract(record, '$.{path}')" for path in _USERNAMES)
    username, record = search_in(search, texts=usernames), json_may_hold("record", search)
    # The quick test first, because parsing JSON is slow. json_valid, because one bad record would fail the whole query.
    return Condition(
        f"CASE WHEN {record.sql} AND json_valid(record) THEN {username.sql} ELSE 0 END",
        (*record.values, *username.values),
    )


def username_of(record: str) -> str:
    """Return the username in a record's JSON text, "" for none."""
    value: object = json.loads(record)
    for path in _USERNAMES:
        found = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""
