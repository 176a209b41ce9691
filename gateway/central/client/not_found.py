"""Check of a 404: whether it is central's own word.

A proxy before central also answers 404 while central itself is away, and nothing may be lost by that. So central is
asked for a list that it must have. Whatever answers 404 to that too is not central. Central itself answers 404 to an
operation that it does not have. So where a record can be read, it is: one that is there is not gone.
"""

from __future__ import annotations

from pydantic import JsonValue

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import WRITES, Effect, JsonObject, Lookup, WriteOperation

NOT_FOUND = 404
_EVERY_CENTRAL_HAS = "device"
_NEWEST = 100
"""Records of the list that are looked through for one that central does not answer for singly."""


async def doubt(
    client: CentralClient,
    refusal: CentralRefused,
    *,
    of: WriteOperation | None = None,
    sent: JsonObject | None = None,
) -> CentralUnavailable | None:
    """Return why a refusal does not count, None for one to believe. Raises nothing of the client's.

    `of`: the operation that was refused. After a change, central is asked for the list of such records; after anything
    else, for the list of devices, which every central has. Where the gateway's account may not ask for the list,
    central is asked whether it runs, which needs no session. `sent`: its body; the record that a change
    or deletion names is asked for, too.
    """
    changes = of is not None and of.effect is not Effect.CREATE
    lookup = _lookup(of.kind if of is not None and changes else _EVERY_CENTRAL_HAS)
    if refusal.status != NOT_FOUND or lookup is None:
        return None
    try:
        try:
            limit = 1 if of is None or of.kind in READS else _NEWEST
            listed = await client.call("POST", lookup.path, {"page": 1, "page_limit": limit} if lookup.paged else {})
        except CentralRefused as error:
            if error.status:
                raise
            await client.look()
            listed = {}
        if (
            of is None
            or sent is None
            or not changes
            or not await _is_there(client, of, sent, listed.get(lookup.resource))
        ):
            return None
    except CentralRefused as error:
        return CentralFailed(f"{refusal}; {error}") if error.status == NOT_FOUND else None
    except CentralUnavailable as error:
        return error
    return CentralFailed(f"{refusal}, though central has the record: it may not know {of.path}")


async def _is_there(client: CentralClient, operation: WriteOperation, sent: JsonObject, listed: JsonValue) -> bool:
    """Return whether central has the record that was to be changed: it is listed, or central answers for it."""
    number = sent.get("id")
    if isinstance(listed, list) and any(isinstance(one, dict) and one.get("id") == number for one in listed):
        return True
    path = READS.get(operation.kind)
    if path is None:
        return False
    try:
        answer = await client.call("POST", path, {"id": number})
    except CentralRefused:
        return False
    return any(answer.get(name) for name in (*operation.resources, "id"))


def _lookup(kind: str) -> Lookup | None:
    return next((item.lookup for item in WRITES.values() if item.kind == kind and item.lookup), None)
