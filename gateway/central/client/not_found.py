"""Check of a 404: whether it is central's own word.

A proxy before central also answers 404 while central itself is away, and nothing may be lost by that. So central is
asked for a list that it must have. Whatever answers 404 to that too is not central. Central itself answers 404 to an
operation that it does not have. So where a record can be read, it is: one that is there is not gone.
"""

from __future__ import annotations

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import WRITES, Effect, JsonObject, Lookup, WriteOperation

NOT_FOUND = 404
_EVERY_CENTRAL_HAS = "device"


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
    lookup = _lookup(_EVERY_CENTRAL_HAS if of is None or of.effect is Effect.CREATE else of.kind)
    if refusal.status != NOT_FOUND or lookup is None:
        return None
    try:
        try:
            await client.call("POST", lookup.path, {"page": 1, "page_limit": 1} if lookup.paged else {})
        except CentralRefused as error:
            if error.status:
                raise
            await client.look()
    except CentralRefused as error:
        return CentralFailed(f"{refusal}; {error}") if error.status == NOT_FOUND else None
    except CentralUnavailable as error:
        return error
    return None if of is None or sent is None else await _is_there(client, refusal, of, sent)


async def _is_there(
    client: CentralClient, refusal: CentralRefused, operation: WriteOperation, sent: JsonObject
) -> CentralUnavailable | None:
    """Return that central failed, if it has the record after all; None where it has not, or does not say."""
    path = READS.get(operation.kind)
    if path is None or operation.effect is Effect.CREATE:
        return None
    try:
        answer = await client.call("POST", path, {"id": sent.get("id")})
    except CentralRefused:
        return None
    except CentralUnavailable as error:
        return error
    if not any(answer.get(name) for name in (*operation.resources, "id")):
        return None
    return CentralFailed(f"{refusal}, though central has the record: it may not know {operation.path}")


def _lookup(kind: str) -> Lookup | None:
    return next((item.lookup for item in WRITES.values() if item.kind == kind and item.lookup), None)
