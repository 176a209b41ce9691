"""Health probes and readiness. They need no session, since the interface's specification names no permission."""

from __future__ import annotations

from aiohttp import web

from gateway.domain.writes import JsonObject
from gateway.web.answers import Answer, ProblemAnswer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.errors import as_json, success
from gateway.web.operation import OPEN, SIGNED_IN, Rule
from gateway.web.problems import verdict_fields
from gateway.web.status.page_files import PAGE_PATH


class RootAnswer(Answer):
    """The server runs. Its version is told to those who signed in."""

    name: str
    version: str | None = None


class LiveAnswer(Answer):
    """The process answers. Its version, and what is not ready, are told to those who signed in."""

    version: str | None = None
    not_ready: tuple[str, ...] | None = None


class ReadyAnswer(Answer):
    """Every lane can admit vehicles and let them out. Those who signed in are told which cannot, and why."""

    not_ready: tuple[str, ...] | None = None
    headline: str | None = None
    problems: tuple[ProblemAnswer, ...] | None = None


_PROBE = Rule(session=False, whole=False, confirmed=False)


class Health(Family):
    """The handlers of `GET /` and the probes. A browser at `/` is redirected to the page."""

    @operation("GET", "/", OPEN, head=True, purpose="Whether the server process runs", answer=RootAnswer)
    async def _root(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if "text/html" in request.headers.get("Accept", ""):
            raise web.HTTPFound(PAGE_PATH)
        return success(name="edge-gateway", **self._release(caller))

    @operation("GET", "/health/live", _PROBE, head=True, purpose="Liveness probe", answer=LiveAnswer)
    async def _live(self, caller: Caller) -> web.StreamResponse:
        """Answer 200 always: a process that answers is alive, even if a lane is not ready."""
        return success(**self._release(caller), **self._reasons(caller))

    @operation("GET", "/health/ready", _PROBE, head=True, purpose="Readiness probe", answer=ReadyAnswer)
    async def _ready(self, caller: Caller) -> web.StreamResponse:
        """Answer 200 when every lane is ready, else 503; the reasons are shown only to signed-in callers."""
        verdict = self.context.verdict()
        ready = not verdict.not_ready
        error = {} if ready else {"error": "not ready"}
        told: JsonObject = {}
        if caller.may(SIGNED_IN):
            told = {"not_ready": list(map(str, verdict.not_ready)), **verdict_fields(verdict)}
        return as_json({"success": ready, **error, **told}, status=200 if ready else 503)

    def _reasons(self, caller: Caller) -> dict[str, list[str]]:
        """Return the reasons for not being ready; nothing for callers without a session."""
        return {"not_ready": list(map(str, self.context.verdict().not_ready))} if caller.may(SIGNED_IN) else {}

    def _release(self, caller: Caller) -> dict[str, str]:
        """Return the version; nothing for callers without a session, who might look up its vulnerabilities."""
        return {"version": self.context.release} if caller.may(SIGNED_IN) else {}
