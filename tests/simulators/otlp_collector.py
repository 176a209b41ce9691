"""A collector of traces on loopback: OTLP over HTTP with protobuf, which can hang or refuse."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span


class OtlpCollector:
    """The spans that came in, and how requests are answered.

    Attributes:
        status: the HTTP status of answers.
        free: answers wait until it is set.
        asked: the number of requests.
    """

    def __init__(self) -> None:
        self.received: list[ResourceSpans] = []
        self.status = 200
        self.free = threading.Event()
        self.free.set()
        self.asked = 0
        self.endpoint = ""

    @property
    def spans(self) -> list[Span]:
        return [span for one in self.received for scope in one.scope_spans for span in scope.spans]

    @contextmanager
    def served(self) -> Iterator[OtlpCollector]:
        """Serve on a free port."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        self.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            self.free.set()
            server.shutdown()
            thread.join()
            server.server_close()


def _handler(collector: OtlpCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.asked += 1
            collector.free.wait(60)
            if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
                self.send_error(404)
                return
            if collector.status == 200:
                plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                collector.received += ExportTraceServiceRequest.FromString(plain).resource_spans
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(collector.status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
