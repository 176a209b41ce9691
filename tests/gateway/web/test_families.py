"""Families: methods take what their parameters name, and operations are declared by it."""

from __future__ import annotations

import pytest
from aiohttp import web
from pydantic import BaseModel

from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation, operations_of
from gateway.web.http.bodies import Body, SentChange, Word, WriteBody
from gateway.web.operation import NO_SESSION, OPEN


class Said(Body):
    word: Word


class Changed(WriteBody):
    id: int
    word: Word | None = None
    note: Word | None = None


class Asked(BaseModel):
    times: int = 1


class Heard(BaseModel):
    heard: str


class Echo(Family):
    def __init__(self) -> None:
        """It asks nothing of the gateway."""

    @operation("POST", "/echo/{id}/{place}", OPEN, "heard", status=201)
    async def _say(self, number: int, place: str, wanted: Said, caller: Caller) -> Heard:
        return Heard(heard=f"{number} {place} {wanted.word} {caller.username!r}")

    @operation("GET", "/echo", OPEN, "heard")
    @operation("GET", "/again", NO_SESSION, "heard")
    async def _hear(self, asked: Asked, request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{request.path} " * asked.times)

    @operation("PATCH", "/echo", OPEN, "heard")
    async def _change(self, change: SentChange[Changed]) -> Heard:
        known = {"id": 7, "word": 5, "note": "old"}  # no word that could be sent
        return Heard(heard=str(change.to(known).fields))


async def test_a_method_gets_what_its_parameters_name(open_gateway):
    async with open_gateway(Echo().routes()) as gateway:
        path = "/echo/12/north"
        assert await gateway.call(path, {"word": "hello"}, user="") == (201, {"heard": "12 north hello ''"})
        for bad, status in (("/echo/x/north", 404), (path, 400)):
            assert (await gateway.call(bad, {"word": 3}, user=""))[0] == status
        for path in ("/echo", "/again"):
            async with gateway.client.get(f"{gateway.url}{path}?times=2") as answer:
                assert await answer.text() == f"{path} {path} "
            assert (await gateway.call(f"{path}?times=x", method="GET", user=""))[0] == 400
        sent = {"id": 7, "word": 5, "note": "new", "other": 1}
        changed = await gateway.call("/echo", sent, method="PATCH", user="")
        assert changed == (200, {"heard": str({"word": 5, "note": "new"})})


def test_an_operation_has_the_models_of_its_method():
    say, hear, again, change = operations_of(Echo)
    assert (say.body, say.query, say.answer) == (Said, None, Heard)
    assert [(item.path, item.body, item.query, item.answer) for item in (hear, again)] == [
        ("/echo", None, Asked, None),
        ("/again", None, Asked, None),
    ]
    assert (change.body, change.answer) == (Changed, Heard)


async def _place(_self: object, place: str) -> Heard:
    raise NotImplementedError(place)


async def _number(_self: object, number: float) -> Heard:
    raise NotImplementedError(number)


async def _two(_self: object, one: Said, other: Said) -> Heard:
    raise NotImplementedError(one, other)


@pytest.mark.parametrize("method", [_place, _number, _two])
def test_what_an_operation_cannot_give_is_refused_when_it_is_declared(method):
    with pytest.raises(TypeError, match="/echo"):
        operation("POST", "/echo", OPEN)(method)
