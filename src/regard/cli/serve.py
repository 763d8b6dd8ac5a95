"""`regard serve`: the explorer in a browser, with recordings and with trained runs that can be asked."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from regard.cli.live import live_model
from regard.cli.options import Shared, import_plugins, parse
from regard.cli.output import say, show, show_json
from regard.core.errors import ConfigError, RecordingError
from regard.explorer.asking import LiveModel
from regard.explorer.server import Served, make_app
from regard.recipes.run import open_run
from regard.recording import Recording

DESCRIPTION = """Shows recordings and trained runs in a browser. A run answers: type a sentence or drop a picture, see
where the model looks, mute, freeze and swap heads and see what changes. Only this machine can reach the server, unless
--host says otherwise. Ctrl-C ends it.

examples:
  regard serve RUN
  regard serve RUN ANOTHER_RUN cat.regard
  regard serve FOLDER_OF_RECORDINGS --port 8000"""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServeOptions(Shared):
    """What to show, and where."""

    places: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PLACE")]]
    """Run folders, .regard files, and folders of them; files such as step-100.regard are steps of a training."""

    port: int = 8721
    """The port; 0 takes any that is free."""

    host: str = "127.0.0.1"
    """The address to listen on; 0.0.0.0 lets everybody in who can reach this machine."""

    weights: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """best, averaged, last, the name of a checkpoint, or auto, which is best."""


def run(argv: list[str]) -> int:
    import_plugins(argv)
    options, _ = parse(ServeOptions, argv, prog="serve", description=DESCRIPTION)
    recordings, models = found(options.places, options.weights)
    hosts = _LOOPBACK if options.host in _LOOPBACK else ("*",)
    with _listening(options.host, options.port) as opened:
        port = opened.getsockname()[1]
        name = f"[{options.host}]" if ":" in options.host else options.host
        url = f"http://{name}:{port}/"
        if hosts == ("*",):
            say(f"Everybody who can reach this machine's port {port} can see this and ask the models.")

        def started() -> None:
            if options.json:
                show_json({"url": url, "recordings": len(recordings), "models": len(models)})
            else:
                show(f"The explorer is at {url} (Ctrl-C ends it)")

        _serve(make_app(recordings, models, hosts=hosts), opened, started)
    say("The explorer has ended.")
    return 0


def found(places: tuple[Path, ...], weights: str) -> tuple[list[Served], list[LiveModel]]:
    """What is at the places; whatever is wrong with one of them is said before anything is served."""
    if not places:
        raise ConfigError("Name what to show: `regard serve PLACE ...`, run folders or .regard files.")
    recordings: list[Served] = []
    models: list[LiveModel] = []
    for place in places:
        if place.is_file():
            Recording.load(place)
            recordings.append(Served(place.resolve(), place.name))
        elif (place / "config.json").is_file():
            models.append(live_model(open_run(place, weights)))
            recordings += steps(place)
        elif place.is_dir():
            here = steps(place)
            if not here:
                raise RecordingError(f"{place} is no run folder and holds no .regard file.")
            recordings += here
        else:
            raise RecordingError(f"There is no run folder and no recording at {place}.")
    return recordings, models


def steps(folder: Path) -> list[Served]:
    """The recordings of a folder in the order of their steps, then of their names."""
    listed = []
    for path in folder.rglob("*.regard"):
        number = re.fullmatch(r"step-(\d+)", path.stem)
        step = int(number[1]) if number else None
        listed.append(Served(path.resolve(), path.relative_to(folder).as_posix(), step))
    return sorted(listed, key=lambda one: (one.step is None, one.step or 0, one.name))


def _listening(host: str, port: int) -> socket.socket:
    """A socket that is taken before anything is printed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except (OSError, OverflowError) as error:
        opened.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"Port {port} is taken; choose another one with --port, or --port 0 for any that is free."
            ) from None
        raise ConfigError(f"The server cannot listen on {host}, port {port}: {error}.") from None
    return opened


def _serve(app: object, opened: socket.socket, started: Callable[[], None]) -> None:
    """Until Ctrl-C or SIGTERM; answers that are on their way get a few seconds."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="warning",
        timeout_graceful_shutdown=5,
        server_header=False,
        ws="none",
    )
    try:
        Server(config).run(sockets=[opened])
    except KeyboardInterrupt:
        return
