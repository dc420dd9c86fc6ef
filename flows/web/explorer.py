"""`vina explore`: the store in a browser, on FastAPI, with the pages that `vina ground` and `vina report` write.

It only reads. By default it listens on loopback only, and it answers only requests for the host names it was started
with: a page of another site cannot read the store through the user's browser (DNS rebinding).
"""

import ipaddress
import logging
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware

from storage import Store, StoreError
from storage.catalogue import Catalogue
from tasks.grounding.video_input import local_video
from tasks.pages import explorer_pages
from tasks.pages.rendering import render
from tasks.pages.video_view import KINDS

LOG = logging.getLogger("vina.explore")
LOCAL = ["127.0.0.1", "localhost", "[::1]"]
HEADERS = {
    "Content-Security-Policy": "default-src 'self' data: 'unsafe-inline'; frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
"""Response headers, in addition to the policy in each page."""


def make_app(store: Store, names: list[str], video_folders: Sequence[Path] = ()) -> FastAPI:
    """Return the web app; `names` are the host names it answers to, `video_folders` further folders to serve."""
    app = FastAPI(title="VINA", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names)
    video_files = _VideoFiles(store, video_folders)

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        if request.url.path != "/" and request.headers.get("Sec-Fetch-Site") == "cross-site":
            return Response("requests from pages of other sites are refused: start at /", 403)
        response: Response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(ValueError)
    @app.exception_handler(StoreError)
    async def explain(request: Request, error: Exception) -> HTMLResponse:
        return HTMLResponse(render("explore_error.html", message=str(error), site=True), 404)

    @app.get("/", response_class=HTMLResponse)
    def home() -> str:
        return explorer_pages.home(store)

    @app.get("/run", response_class=HTMLResponse)
    def run(id: str) -> str:
        return explorer_pages.run(store, id)

    @app.get("/videos", response_class=HTMLResponse)
    def videos(run: str | None = None, search: str = "", page: int = 1) -> str:
        return explorer_pages.videos(store, run, search, page)

    @app.get("/video", response_class=HTMLResponse)
    def video(id: str, run: str | None = None, article: str = "", matrix: str = "", by: str = "") -> str:
        return explorer_pages.video(store, id, run, article, matrix, by)

    @app.get("/video-file")
    def video_file(id: str) -> Response:
        path = video_files.path(id)
        return FileResponse(path, media_type=KINDS[path.suffix.lower()])

    @app.get("/sql", response_class=HTMLResponse)
    def sql(query: str = "") -> str:
        return explorer_pages.sql(store, query)

    return app


class _VideoFiles:
    """The video files of a store. Those on S3 are copied to a temporary folder once."""

    def __init__(self, store: Store, video_folders: Sequence[Path]) -> None:
        self._store, self._lock = store, threading.Lock()
        self._video_folders = [folder.resolve() for folder in video_folders]
        self._folder = TemporaryDirectory(prefix="vina-explore-")
        self._copies: dict[str, Path] = {}

    def path(self, video_id: str) -> Path:
        """Return the file that `videos` names. Raise ValueError if there is none, or if it must not be served."""
        uri = explorer_pages.video_uri_of(self._store, video_id)
        if uri is None or Path(uri).suffix.lower() not in KINDS:
            raise ValueError(f"video {video_id!r} has no video file that a browser can play")
        if not self._is_served(uri):
            raise ValueError(
                f"{uri} is neither in the store nor in a folder that was imported: "
                "serve it with `vina explore --videos FOLDER`"
            )
        with self._lock:
            if uri not in self._copies:
                folder = Path(self._folder.name) / str(len(self._copies))
                folder.mkdir(exist_ok=True)  # it exists if an earlier fetch failed
                self._copies[uri] = local_video(uri, folder)
        if not self._copies[uri].is_file():
            raise ValueError(f"the file of video {video_id!r} does not exist: {uri}")
        return self._copies[uri]

    def _is_served(self, uri: str) -> bool:
        """Return whether a file, its links resolved, is in the store, an imported folder, or a named folder."""
        if uri.startswith("s3://"):
            return self._store.location.is_s3 and uri.startswith(f"{self._store.uri}/")
        folders = [*self._video_folders, *_imported_folders(self._store)]
        if not self._store.location.is_s3:
            folders.append(Path(self._store.uri).resolve())
        path = Path(uri).resolve()
        return any(path.is_relative_to(folder) for folder in folders)


def _imported_folders(store: Store) -> list[Path]:
    """Return the folders that runs imported."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query("""
            SELECT DISTINCT unnest([configuration ->> '$.path', configuration ->> '$.settings.import.corpus']) AS path
            FROM runs WHERE list_contains(stages, 'import')""")
    paths = [Path(text) for text in rows["path"].to_pylist() if text]
    return [path.resolve() for path in paths if path.is_absolute()]


def serve(store: Store, host: str, port: int, video_folders: Sequence[Path] = ()) -> int:
    """Serve until Ctrl-C."""
    if not is_local(host):
        LOG.warning("%s: everyone who can reach this address can read the store at %s", host, store.uri)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise ValueError(f"cannot listen on {host}, port {port}: {why} (choose another with --port N)") from error
    with Catalogue(store):  # a broken store is reported now, not in the browser
        pass
    names = [*LOCAL, *([] if is_local(host) else [host] if host not in ("0.0.0.0", "::") else ["*"])]
    print(f"open http://{f'[{host}]' if ':' in host else host}:{port}/ (Ctrl-C stops the server)", flush=True)
    uvicorn.run(make_app(store, names, video_folders), host=host, port=port, log_level="warning", server_header=False)
    return 0


def is_local(host: str) -> bool:
    """Return whether an address is local to this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
