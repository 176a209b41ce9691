"""Check whether a 404 is central's own answer.

A proxy before central also answers 404 while central itself is down, and no record may be lost by that. So central is
asked for a list that it must have: if that answers 404 too, the answer is not central's. Central itself answers 404 to
an operation that it does not have. So if the record can be read on its own, it is read: if it is there, it is not gone.
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
"""Most records of a list that are searched for a record that central cannot return on its own."""


async def doubt(
    client: CentralClient,
    refusal: CentralRefused,
    *,
    of: WriteOperation | None = None,
    sent: JsonObject | None = None,
) -> CentralUnavailable | None:
    """Return why a refusal does not count, None if it counts. Errors of the client are returned, not raised.

    Args:
        client: the client of central.
        refusal: the refusal; only a 404 is checked.
        of: the operation that was refused. After a change or deletion, central is asked for the list of such records;
            otherwise for the list of devices, which every central has. If the gateway's account may not read the list,
            central is asked whether it runs, which needs no session.
        sent: the body of the operation; the record that a change or deletion names is asked for too.
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
    """Return whether central has the record that was to be changed: it is listed, or can be read on its own."""
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
