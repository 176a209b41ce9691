"""The page's files, read once and kept in memory, plain and compressed.

A visit needs about thirty small files. Reading each of them in a thread would take longer than the rest of the visit.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import web

from gateway.web.http.files import takes_gzip

STATIC = Path(__file__).parent / "static"
DOCUMENT = "index.html"
_LOADER = "load.js"  # runs before the modules, and is no module itself
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".po": "text/x-gettext-translation",
    ".svg": "image/svg+xml",
}


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
        response.etag = tag = f"{self.tag}-gzip" if is_zipped else self.tag
        if any(known.value in (tag, "*") for known in request.if_none_match or ()):
            response.set_status(304)
            return response
        if is_zipped:
            response.headers["Content-Encoding"] = "gzip"
        response.body = self.zipped if is_zipped else self.plain
        return response


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the page's files by name. The document preloads all modules, so browsers fetch them in parallel."""
    contents = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    modules = [name for name in contents if name.endswith(".js") and name != _LOADER]
    links = "\n  ".join(f'<link rel="modulepreload" href="/status/static/{name}">' for name in modules)
    contents[DOCUMENT] = contents[DOCUMENT].replace(b"<!-- modules -->", links.encode())
    return {name: PageFile.of(name, content) for name, content in contents.items()}
