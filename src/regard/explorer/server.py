"""The server behind `regard serve`: the explorer, some recordings by number, and models that can be asked.

It serves what it was started with and nothing else: no path of a request is ever a path of the disk. It answers only
to its own name (so that no other site can have a name pointed at it), refuses requests that other sites make, takes no
more than `MAX_UPLOAD` bytes, and says in a sentence what is wrong with a request.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import TypeVar
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.core.errors import RegardError
from regard.explorer import modules
from regard.explorer.asking import BusyError, LiveModel, Question, QuestionError, Queue, read_question
from regard.explorer.packing import file_bytes

T = TypeVar("T")
logger = logging.getLogger(__name__)

MAX_UPLOAD = 24_000_000
"""Bytes of a question; base64 makes a third more of a picture."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TYPES = {".js": "text/javascript", ".css": "text/css"}


@dataclass(frozen=True)
class Served:
    """A recording's file, read when it is asked for."""

    path: Path
    name: str
    step: int | None = None


def make_app(
    recordings: Sequence[Served] = (),
    models: Sequence[LiveModel] = (),
    *,
    hosts: Sequence[str] = _LOOPBACK,
    queue: Queue | None = None,
    title: str = "Where the model looks",
) -> Starlette:
    """The application; `hosts` are the names it answers to."""
    waiting = queue or Queue()

    async def index(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = resources.files("regard.explorer").joinpath("serve.html").read_text(encoding="utf-8")
        policy = (
            f"default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
            "connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"content-security-policy": policy}
        return Response(Template(text).substitute(nonce=nonce), media_type="text/html", headers=headers)

    async def browser(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in modules.FILES:
            raise HTTPException(404, f"The explorer has no file {name[:80]!r}.")
        return Response(modules.read(name), media_type=_TYPES[Path(name).suffix])

    async def contents(request: Request) -> Response:
        listed = [
            {"id": place, "name": one.name, **({"step": one.step} if one.step is not None else {})}
            for place, one in enumerate(recordings)
        ]
        asked = [
            {"id": place, "name": one.name, "reads": one.reads, "example": one.example}
            for place, one in enumerate(models)
        ]
        return JSONResponse({"title": title, "recordings": listed, "models": asked})

    async def recording(request: Request) -> Response:
        served = _numbered(recordings, request.path_params["number"], "recording")
        try:
            return Response(served.path.read_bytes(), media_type="application/octet-stream")
        except OSError as error:
            raise HTTPException(404, f"{served.name} cannot be read any more: {error.strerror}.") from None

    async def look(request: Request) -> Response:
        model, question = await asked(request)
        answer = await answered(lambda: file_bytes(model.look(question)))
        return Response(answer, media_type="application/octet-stream")

    async def python(request: Request) -> Response:
        model, question = await asked(request)
        return JSONResponse({"python": await answered(lambda: model.python(question))})

    async def answered(work: Callable[[], T]) -> T:
        try:
            return await waiting.run(work)
        except RegardError:
            raise
        except Exception as error:  # whatever a model fails with, the next question can be asked
            logger.exception("A model failed.")
            raise HTTPException(500, f"The model failed: {type(error).__name__}: {error}.") from error

    async def asked(request: Request) -> tuple[LiveModel, Question]:
        model = _numbered(models, request.path_params["number"], "model")
        return model, read_question(await _json(request), model.reads)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        waiting.close()

    routes = [
        Route("/", index),
        Route("/browser/{name}", browser),
        Route("/api/contents", contents),
        Route("/api/recordings/{number}", recording),
        Route("/api/models/{number}/look", look, methods=["POST"]),
        Route("/api/models/{number}/python", python, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(OwnSite, hosts=tuple(hosts))],
        exception_handlers={
            HTTPException: lambda _, error: _sentence(error.status_code, error.detail),
            QuestionError: lambda _, error: _sentence(400, str(error)),
            BusyError: lambda _, error: _sentence(503, str(error), {"retry-after": "2"}),
            RegardError: lambda _, error: _sentence(422, str(error)),
            ClientDisconnect: lambda _, error: _sentence(400, "The question was cut off."),
        },
    )


class OwnSite:
    """Refuses other names than our own and requests that other sites send, before anything is read."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.refusal(headers)
        if refusal:
            await _sentence(403, refusal)(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                    (b"cross-origin-resource-policy", b"same-origin"),
                    (b"cache-control", b"no-store"),
                ]
            await send(message)

        await self.app(scope, receive, guarded)

    def refusal(self, headers: dict[str, str]) -> str | None:
        host = headers.get("host", "")
        name = host_name(host)
        if name is None or ("*" not in self.hosts and name not in self.hosts):
            return f"This server does not answer to the name {host[:80]!r}; open it as it was printed."
        if "*" in self.hosts and not _address(name):
            return f"This server answers to addresses only, not to the name {host[:80]!r}."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests from other sites are refused."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "Requests from other sites are refused."
        return None


def host_name(host: str) -> str | None:
    """The name in a Host header, without port and brackets; None for what is no host."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _address(name: str) -> bool:
    """Whether this is an IP address or the machine itself, which nobody can point elsewhere."""
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _numbered(things: Sequence[T], text: str, what: str) -> T:
    if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) >= len(things):
        raise HTTPException(404, f"There is no {what} {text[:20]!r} here; there are {len(things)}.")
    return things[int(text)]


async def _json(request: Request) -> object:
    """The body, read no further than the limit."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "A question is JSON; send it as application/json.")
    too_large = HTTPException(413, f"The question is too large; at most {MAX_UPLOAD // 1_000_000} MB are taken.")
    announced = request.headers.get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced) > MAX_UPLOAD:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_UPLOAD:
            raise too_large
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The question is not JSON.") from None


def _sentence(status: int, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": text}, status, headers=headers)
