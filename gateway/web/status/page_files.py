"""The page's document, and its files, read once and kept in memory, plain and compressed.

Its ES modules are served as one script, because a browser fetches no more than six files at a time.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from aiohttp import web

from gateway.texts import FOLDER
from gateway.web.answers import Answer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.files import takes_gzip, unless_known
from gateway.web.operation import OPEN
from gateway.web.status.snapshot import UserState, user_state

STATIC = Path(__file__).parent / "static"
DOCUMENT = "index.html"
SCRIPT = "page.js"
_LOADER = "load.js"  # runs before the modules, and is no module itself
_IMPORT = re.compile(r'^import (\{ \w+(?:, \w+)* \}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_MODULE_WORD = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_LANGUAGES = b"LANGUAGES"
"""The place in the document for the languages, each by its own name."""
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

PAGE_PATH = "/status/"
VIEW_ADDRESSES = (
    "/status/events",
    "/status/events/{id}",
    "/status/lanes/{id}",
    "/status/commissioning/{id}",
    "/status/cards",
    "/status/lines",
    "/status/health",
    "/status/settings",
    "/status/wall",
)
"""Addresses of the page's views. Each answers with the same document; `views.js` then shows the view."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page."""

    content_type: str
    plain: bytes
    zipped: bytes
    tag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> PageFile:
        """Return a file with this name and content."""
        zipped = gzip.compress(content, mtime=0)
        return cls(_TYPES[Path(name).suffix], content, zipped, hashlib.sha256(content).hexdigest()[:32])

    def answer(self, request: web.Request) -> web.Response:
        """Answer a request for the file; 304 if the client has it. Browsers revalidate it at each visit."""
        is_zipped = takes_gzip(request)
        response = web.Response(content_type=self.content_type, charset="utf-8")
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Vary"] = "Accept-Encoding"
        if is_zipped:
            response.headers["Content-Encoding"] = "gzip"
        response.body = self.zipped if is_zipped else self.plain
        return unless_known(request, response, tag=f"{self.tag}-gzip" if is_zipped else self.tag)


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the page's files by name, with all modules in one script."""
    contents = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    modules = {
        name.removesuffix(".js"): contents.pop(name).decode()
        for name in tuple(contents)
        if name.endswith(".js") and name != _LOADER
    }
    contents[SCRIPT] = one_script(modules).encode()
    languages = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.json"))}
    contents |= {f"{name}.json": content for name, content in languages.items()}
    contents[DOCUMENT] = contents[DOCUMENT].replace(_LANGUAGES, _names_of(languages))
    return {name: PageFile.of(name, content) for name, content in contents.items()}


def _names_of(languages: Mapping[str, bytes]) -> bytes:
    names = {name: json.loads(content)["language"] for name, content in languages.items()}
    return html.escape(json.dumps(names, ensure_ascii=False)).encode()


def one_script(modules: Mapping[str, str]) -> str:
    """Join ES modules into one: each in a function of its own, behind those that it imports.

    Raises ValueError for an import or export of another form than the page's modules have.
    """
    imported = {name: {found[2] for found in _IMPORT.finditer(text)} for name, text in modules.items()}
    return "".join(_as_function(name, modules[name]) for name in TopologicalSorter(imported).static_order())


def _as_function(name: str, text: str) -> str:
    exported = ", ".join(found[1] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = \2_js;", text))
    if (left := _MODULE_WORD.search(body)) is not None:
        raise ValueError(f"{name}.js: {left[0]}")
    return f"const {name}_js = await (async () => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


async def page(request: web.Request) -> web.StreamResponse:
    """Answer with the page's document."""
    return page_files()[DOCUMENT].answer(request)


class SessionAnswer(Answer):
    """The signed-in account, or null."""

    user: UserState | None
    mfa_pending: bool


class StatusPage(Family):
    """The handlers of `/status/` and `/status/session`. The document is public: the site's data comes by the stream."""

    @operation("GET", PAGE_PATH, OPEN, head=True)
    async def _page(self, request: web.Request) -> web.StreamResponse:
        return await page(request)

    @operation("GET", "/status/session", OPEN, "user")
    async def _session(self, caller: Caller) -> SessionAnswer:
        """Answer with the account. The page asks this before it opens the stream."""
        whole = caller.signed_in and not caller.mfa_pending
        return SessionAnswer(user=user_state(caller) if whole else None, mfa_pending=caller.mfa_pending)
