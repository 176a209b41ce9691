"""Families of operations: classes whose methods answer what `@operation` declares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, get_args, get_origin, get_type_hints

from aiohttp import web
from pydantic import BaseModel
from pydantic_core import to_json

from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import SentChange, path_id, read_body, read_change, read_query
from gateway.web.http.errors import from_json_text
from gateway.web.operation import Operation

if TYPE_CHECKING:
    from gateway.web.context import InterfaceContext

Handler = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]
Method = Callable[..., Awaitable[web.StreamResponse | BaseModel]]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Route:
    """An operation and its handler. The handler is called only for callers whom the operation's rule lets in."""

    operation: Operation
    handler: Handler


@dataclass(frozen=True, slots=True)
class Answering:
    """A family's method, the operations that it answers, and the types of its parameters.

    A parameter gets what its type names: the request, its caller, or the validated body (of a GET, the query). A change
    of a record comes as `SentChange[model]`, the path's `{id}` as an `int`, and another of its places as the `str` of
    the same name. A model that is returned is sent as JSON.
    """

    method: Method
    operations: tuple[Operation, ...]
    takes: tuple[tuple[str, Any], ...]

    async def answer(
        self, family: object, operation: Operation, request: web.Request, caller: Caller
    ) -> web.StreamResponse:
        """Answer a request. Raises RequestRefused for a body or a query that is not as it should be."""
        given: dict[Any, object] = {web.Request: request, Caller: caller}
        arguments = [
            given[kind] if kind in given else await _sent(request, operation, name, kind) for name, kind in self.takes
        ]
        answer = await self.method(family, *arguments)
        if isinstance(answer, web.StreamResponse):
            return answer
        return from_json_text(to_json(answer), status=operation.status)


class Family:
    """Base of the classes whose methods answer operations.

    Attributes:
        context: what they need of the gateway.
    """

    def __init__(self, context: InterfaceContext) -> None:
        self.context = context

    @classmethod
    def answering(cls) -> Iterator[Answering]:
        """Yield the methods that answer operations, in their order."""
        return (item for item in vars(cls).values() if isinstance(item, Answering))

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family with their handlers."""
        return tuple(
            Route(operation, partial(item.answer, self, operation))
            for item in self.answering()
            for operation in item.operations
        )


def operations_of(*families: type[Family]) -> tuple[Operation, ...]:
    """Return the operations of these families, in their order."""
    return tuple(operation for family in families for item in family.answering() for operation in item.operations)


def _decorator(declared: Callable[P, Operation]) -> Callable[P, Callable[[Method | Answering], Answering]]:
    def with_fields(*args: P.args, **fields: P.kwargs) -> Callable[[Method | Answering], Answering]:
        return partial(_answering, declared(*args, **fields))

    return with_fields


operation = _decorator(Operation)
"""Declare the operation that a method answers, with the fields of `Operation`.

The models of its body or query and of its answer are those that the method takes and returns. One method may answer
several operations.
"""


def _answering(item: Operation, method: Method | Answering) -> Answering:
    if isinstance(method, Answering):
        return replace(method, operations=(_with_models(item, method.method), *method.operations))
    takes = {name: kind for name, kind in get_type_hints(method).items() if name != "return"}
    return Answering(method, (_with_models(item, method),), tuple(takes.items()))


def _with_models(item: Operation, method: Method) -> Operation:
    """Return the operation with the models that the method names. Raises TypeError for what cannot be given."""
    hints = get_type_hints(method)
    answer = hints.pop("return")
    if isinstance(answer, type) and issubclass(answer, BaseModel):
        item = replace(item, answer=answer)
    for name, kind in hints.items():
        if kind in (int, str):
            if f"{{{'id' if kind is int else name}}}" not in item.path:
                raise TypeError(f"{item.path} has no place for {name}")
        elif kind not in (web.Request, Caller):
            if not issubclass(_body(kind), BaseModel) or item.body is not None or item.query is not None:
                raise TypeError(f"{item.path} has no {kind} for {name}")
            item = replace(item, query=kind) if item.method == "GET" else replace(item, body=_body(kind))
    return item


def _body(kind: Any) -> Any:
    """Return the model of the body that a parameter's type names."""
    return get_args(kind)[0] if get_origin(kind) is SentChange else kind


async def _sent(request: web.Request, item: Operation, name: str, kind: Any) -> object:
    if kind in (int, str):
        return path_id(request) if kind is int else request.match_info[name]
    if get_origin(kind) is SentChange:
        return await read_change(request, _body(kind))
    return read_query(request, kind) if item.method == "GET" else await read_body(request, kind)
