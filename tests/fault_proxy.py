"""An HTTP proxy on loopback in front of the S3 server, which injects faults."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse


@dataclass
class Fault:
    """What happens to the next `times` requests that `applies` to: an error status, a delay, a lost answer."""

    applies: Callable[[str, str], bool]  # of method and path
    times: int = 10**9
    status: int | None = None
    delay_s: float = 0.0
    lose_answer: bool = False
    happened: int = 0


class FaultProxy:
    """Forwards to `target`; `fault` is the one in force."""

    def __init__(self, target: str) -> None:
        self.fault: Fault | None = None
        self._lock = threading.Lock()
        proxy, address = self, urlparse(target)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.body()
                fault = proxy._take(self.command, self.path)
                if fault and fault.delay_s:
                    time.sleep(fault.delay_s)
                if fault and fault.status:
                    code = {500: "InternalError", 503: "SlowDown", 403: "AccessDenied"}[fault.status]
                    error = f"<Error><Code>{code}</Code><Message>injected</Message></Error>"
                    self.reply(fault.status, {"Content-Type": "application/xml"}, error.encode())
                    return
                connection = HTTPConnection(str(address.hostname), address.port, timeout=30)
                kept = {n: v for n, v in self.headers.items() if n.lower() not in ("transfer-encoding", "expect")}
                connection.request(self.command, self.path, body, kept | {"Content-Length": str(len(body))})
                answer = connection.getresponse()
                content = answer.read()
                if fault and fault.lose_answer:
                    self.close_connection = True
                    return
                self.reply(answer.status, dict(answer.getheaders()), content)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = forward

            def body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                chunks = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    continue
                return b"".join(chunks)

            def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
                try:
                    self.send_response_only(status)
                    length = headers.pop("Content-Length", None)
                    for name, value in headers.items():
                        if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                            self.send_header(name, value)
                    size = length if self.command == "HEAD" and length else str(len(content))
                    self.send_header("Content-Length", size)
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(content)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the client gave up, as a time-out test wants it to

            def log_message(self, *arguments: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _take(self, method: str, path: str) -> Fault | None:
        with self._lock:
            fault = self.fault
            if fault is None or fault.happened >= fault.times or not fault.applies(method, path):
                return None
            fault.happened += 1
            return fault

    @contextmanager
    def misbehaving(self, fault: Fault) -> Iterator[Fault]:
        self.fault = fault
        try:
            yield fault
        finally:
            self.fault = None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
