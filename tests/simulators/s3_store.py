"""An S3-compatible store for tests, on loopback, written from the API reference of Amazon S3.

It keeps objects in memory, checks each signature of version 4 and each check sum by itself, and answers with the
reference's error codes. Addresses are in path style. It knows no multipart uploads and no versions.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import ssl
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from gateway.runtime.clock import SystemClock

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION, BUCKET = "eu-central-1", "yard-backups"

_SKEW_SECONDS = 15 * 60
_PIECE = 64 * 1024
_CHECK_SUMS: Mapping[str, Callable[[bytes], bytes]] = {
    "content-md5": lambda body: hashlib.md5(body, usedforsecurity=False).digest(),
    "x-amz-checksum-crc32": lambda body: zlib.crc32(body).to_bytes(4, "big"),
    "x-amz-checksum-sha1": lambda body: hashlib.sha1(body, usedforsecurity=False).digest(),
    "x-amz-checksum-sha256": lambda body: hashlib.sha256(body).digest(),
}


class Refused(Exception):
    """An answer with one of the reference's error codes."""

    def __init__(self, status: int, code: str, more: str = "") -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.more = more


@dataclass
class S3Store:
    """The objects of one bucket, and the faults that a test asks for.

    Attributes:
        denied: methods that the key's policy does not permit.
        ahead_seconds: how far its clock is ahead of this machine's.
        busy: so many of the next requests are answered "503 Slow Down".
        cut_uploads, cut_downloads: so many of the next are cut in the middle.
        alter: what becomes of a body at rest, after its check sums were found right.
        page: so many keys are on one page of a list.
        names_region: whether it says which region is the right one, as Amazon's does.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    ahead_seconds: float = 0.0
    busy: int = 0
    cut_uploads: int = 0
    cut_downloads: int = 0
    alter: Callable[[bytes], bytes] = bytes
    page: int = 1000
    names_region: bool = False
    endpoint: str = ""

    @contextmanager
    def served(self, tls: ssl.SSLContext | None = None) -> Iterator[S3Store]:
        """Serve it, each connection in a thread of its own, until the context ends."""
        server = _Server(("127.0.0.1", 0), _Connection)
        server.store = self
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.endpoint = f"{'http' if tls is None else 'https'}://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def now(self) -> dt.datetime:
        """Return the time of its clock."""
        micros = SystemClock().wall().micros + round(self.ahead_seconds * 1_000_000)
        return dt.datetime.fromtimestamp(micros / 1_000_000, dt.UTC)


class _Server(ThreadingHTTPServer):
    store: S3Store
    daemon_threads = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Be silent about clients that end a connection; anything else is printed."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    @property
    def store(self) -> S3Store:
        return cast("_Server", self.server).store

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_GET  # noqa: N815  # the base class finds a method's handler by its name
    do_PUT = do_GET  # noqa: N815  # likewise
    do_DELETE = do_GET  # noqa: N815  # likewise

    def _answer(self) -> None:
        try:
            body = self._body()
            self._check_signature(body)
            self._serve(body)
        except Refused as refused:
            self._send(
                refused.status,
                f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{refused.code}</Code><Message>refused'
                f"</Message>{refused.more}<RequestId>4442587FB7D0A2F9</RequestId></Error>".encode(),
                {"Content-Type": "application/xml"},
            )
        except _CutError:
            self.close_connection = True

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length", "0"))
        if self.command == "PUT" and "Content-Length" not in self.headers:
            raise Refused(411, "MissingContentLength")
        if self.command == "PUT" and self.store.cut_uploads:
            self.store.cut_uploads -= 1
            self.rfile.read(length // 2)
            raise _CutError
        body = self.rfile.read(length)
        if len(body) != length:
            raise _CutError
        return body

    def _check_signature(self, body: bytes) -> None:
        """Raise Refused unless the request is signed as "Using the Authorization Header" of the reference asks."""
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme != "AWS4-HMAC-SHA256":
            raise Refused(403, "AccessDenied")
        fields = dict(part.strip().split("=", 1) for part in given.split(","))
        key, day, region, service, end = fields["Credential"].split("/")
        if key != ACCESS_KEY:
            raise Refused(403, "InvalidAccessKeyId")
        if region != REGION or service != "s3" or end != "aws4_request":
            more = f"<Region>{REGION}</Region>" * self.store.names_region
            raise Refused(400, "AuthorizationHeaderMalformed", more)
        moment = self.headers["x-amz-date"]
        sent = dt.datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
        if abs((self.store.now() - sent).total_seconds()) > _SKEW_SECONDS:
            raise Refused(403, "RequestTimeTooSkewed")
        names = fields["SignedHeaders"].split(";")
        present = {name.lower() for name in self.headers}
        owed = {"host"} | {name for name in present if name.startswith("x-amz-") or name == "content-md5"}
        if not owed <= set(names) or not moment.startswith(day):
            raise Refused(403, "AccessDenied")
        sha256 = hashlib.sha256(body).hexdigest()
        if self.headers["x-amz-content-sha256"] != sha256:
            raise Refused(400, "XAmzContentSHA256Mismatch")
        scope = f"{day}/{region}/s3/aws4_request"
        canonical = self._canonical_request(names, sha256)
        to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signing = f"AWS4{SECRET_KEY}".encode()
        for part in (day, region, "s3", "aws4_request"):
            signing = hmac.digest(signing, part.encode(), "sha256")
        if not hmac.compare_digest(hmac.digest(signing, to_sign.encode(), "sha256").hex(), fields["Signature"]):
            raise Refused(403, "SignatureDoesNotMatch")

    def _canonical_request(self, names: list[str], sha256: str) -> str:
        parts = urlsplit(self.path)
        query = sorted(
            (quote(name, safe="~"), quote(value, safe="~"))
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        )
        headers = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in names)
        return "\n".join(
            [
                self.command,
                quote(unquote(parts.path), safe="/~"),
                "&".join(f"{name}={value}" for name, value in query),
                headers,
                ";".join(names),
                sha256,
            ]
        )

    def _serve(self, body: bytes) -> None:
        if self.store.busy:
            self.store.busy -= 1
            raise Refused(503, "SlowDown")
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket != BUCKET:
            raise Refused(404, "NoSuchBucket")
        if self.command in self.store.denied:
            raise Refused(403, "AccessDenied")
        if not key:
            self._list(dict(parse_qsl(parts.query)))
        elif self.command == "PUT":
            self._put(key, body)
        elif self.command == "DELETE":
            self.store.objects.pop(key, None)
            self._send(204, b"", {})
        elif key not in self.store.objects:
            raise Refused(404, "NoSuchKey")
        else:
            found = self.store.objects[key]
            self._send(200, found, {"ETag": f'"{hashlib.md5(found, usedforsecurity=False).hexdigest()}"'})

    def _put(self, key: str, body: bytes) -> None:
        for name, summed in _CHECK_SUMS.items():
            if name in self.headers and base64.b64decode(self.headers[name]) != summed(body):
                raise Refused(400, "BadDigest")
        self.store.objects[key] = self.store.alter(body)
        self._send(200, b"", {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'})

    def _list(self, query: dict[str, str]) -> None:
        """Answer ListObjectsV2."""
        if self.command != "GET" or query.get("list-type") != "2":
            raise Refused(501, "NotImplemented")
        encode = quote if query.get("encoding-type") == "url" else escape
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        rows: dict[str, str] = {}
        for key in sorted(self.store.objects):
            if not key.startswith(prefix) or key <= base64.b64decode(query.get("continuation-token", "")).decode():
                continue
            folder, found, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else ("", "", "")
            if found:
                rows[f"{prefix}{folder}/"] = (
                    f"<CommonPrefixes><Prefix>{encode(prefix + folder)}/</Prefix></CommonPrefixes>"
                )
            else:
                size = len(self.store.objects[key])
                rows[key] = f"<Contents><Key>{encode(key)}</Key><Size>{size}</Size></Contents>"
        shown = list(rows)[: self.store.page]
        more = ""
        if len(rows) > len(shown):
            token = base64.b64encode(shown[-1].encode()).decode()
            more = f"<NextContinuationToken>{token}</NextContinuationToken>"
        listed = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><Prefix>{encode(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
            f"<EncodingType>{query.get('encoding-type', '')}</EncodingType>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{''.join(rows[key] for key in shown)}"
            "</ListBucketResult>"
        )
        self._send(200, listed.encode(), {"Content-Type": "application/xml"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Connection", "close")  # so that no thread waits for a request that does not come
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = status == 200 and self.command == "GET" and "ETag" in headers and self.store.cut_downloads > 0
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.store.cut_downloads -= 1
            raise _CutError


class _CutError(Exception):
    """The connection is to end without an answer."""
