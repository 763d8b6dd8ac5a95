"""`regard doctor`: what this machine has and can do, and whether Regard works on it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import torch

import regard
from regard.cli.options import Shared, parse
from regard.cli.output import show, show_json, size, table
from regard.core.errors import RegardError
from regard.data.cache import cache_folder
from regard.data.multi30k import LANGUAGES, TESTS, TRAIN, VALID, data_file
from regard.models.rnnsearch import RNNSearch, RNNSearchConfig
from regard.recipes.machine import describe_machine
from regard.recording.cost import memory_free
from regard.tasks.decoding import DecodingConfig, decode
from regard.training.precision import has_native_bfloat16

DESCRIPTION = """Shows versions, processor, memory, disk and data, measures how fast matrices are multiplied, and
checks that a small model trains, decodes and is recorded. Exits with 1 where something that is
needed does not work.

examples:
  regard doctor
  regard doctor --json"""

MEASURED_SECONDS = 0.3
LITTLE_DISK = 1e9


@dataclass(frozen=True)
class DoctorOptions(Shared):
    """Nothing of its own."""


def run(argv: list[str]) -> int:
    options, _ = parse(DoctorOptions, argv, prog="doctor", description=DESCRIPTION)
    native = has_native_bfloat16(torch.device("cpu"))
    cache, cache_problem = _cache()
    problems = [*_packages_missing(), *([cache_problem] if cache_problem else []), *_self_check()]
    found: dict[str, Any] = {
        **describe_machine(),
        "bfloat16": native,
        "gflops": {kind: _matmul_gflops(kind) for kind in ("float32", "bfloat16")},
        "memory_free": memory_free(),
        "disk_free": shutil.disk_usage(cache or Path.cwd()).free,
        "REGARD_DATA": os.environ.get("REGARD_DATA"),
        "cache": str(cache) if cache else None,
        "datasets": {"embedded": "generated", "multi30k": _multi30k()},
        "extras": _extras(),
        "problems": problems,
        "advice": _advice(native, cache),
    }
    if options.json:
        show_json(found)
    else:
        _show(found)
    return 1 if problems else 0


def _show(found: dict[str, Any]) -> None:
    gflops = found["gflops"]
    memory = "" if found["memory_free"] is None else f", {size(found['memory_free'])} of it free"
    extras = ", ".join(f"{name} {'yes' if there else 'no'}" for name, there in found["extras"].items())
    rows = [
        ("regard", f"{found['regard']}, in {Path(regard.__path__[0])}"),
        ("python", f"{found['python']}, {sys.executable}"),
        ("torch", f"{found['torch']}, {found['threads']} threads"),
        ("processor", f"{found['cpu']}, {found['cores']} cores"),
        ("gpu", found["gpu"] or "none"),
        ("matrix products", f"{gflops['float32']:,.0f} GFLOP/s in float32, {gflops['bfloat16']:,.0f} in bfloat16"),
        ("bfloat16", "native: trainings use it" if found["bfloat16"] else "emulated: trainings use float32"),
        ("memory", f"{found['memory_gb']:.1f} GB{memory}"),
        ("disk", f"{size(found['disk_free'])} free where the cache is"),
        ("REGARD_DATA", found["REGARD_DATA"] or "not set"),
        ("cache", found["cache"] or "cannot be used"),
        ("multi30k", found["datasets"]["multi30k"]),
        ("extras", extras),
    ]
    show(table(rows))
    show()
    for sentence in found["advice"]:
        show(f"note: {sentence}")
    for sentence in found["problems"]:
        show(f"PROBLEM: {sentence}")
    if not found["problems"]:
        show("A small model was trained, decoded and recorded, and its attention sums to one: all is well.")


def _matmul_gflops(kind: str, side: int = 1024) -> float:
    """The fastest of as many products of square matrices as fit into a fraction of a second."""
    left, right = (torch.randn(side, side).to(getattr(torch, kind)) for _ in range(2))
    best, until = float("inf"), time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < until:
        started = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - started)
    return round(2 * side**3 / best / 1e9, 1) if best < float("inf") else 0.0


def _self_check() -> list[str]:
    """Records a tiny model: every row of its attention has to sum to one, and a step of training has to help."""

    def check() -> str | None:
        generator = torch.Generator().manual_seed(0)
        model = RNNSearch(RNNSearchConfig(width=8, embedding_width=8, alignment_width=8, dropout_rate=0.0), 13, 11)
        source, target = (torch.randint(4, size, (2, 5), generator=generator) for size in (13, 11))
        with torch.no_grad(), regard.record(model) as recording:
            model(source, target)
        for address in recording:
            sums = recording[address].weights().sum(-1)
            if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
                return f"the attention of {address} does not sum to one; torch computes wrongly on this machine"
        decode(model, source, DecodingConfig(beam_width=2, max_length=5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(2):
            output = model(source, target)
            loss = torch.nn.functional.cross_entropy(output.readout(output.features).flatten(0, 1), target.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return None if losses[1] < losses[0] else "a step of training does not lower the loss"

    return _problems("the self-check", check)


def _problems(what: str, check: Callable[[], str | None]) -> list[str]:
    try:
        problem = check()
    except (RegardError, RuntimeError, OSError, ImportError) as error:
        problem = f"{type(error).__name__}: {error}"
    return [f"{what} failed: {problem}."] if problem else []


def _packages_missing() -> list[str]:
    """Of what Regard needs to run, by its own metadata."""
    missing = []
    for requirement in requires("regard") or []:
        if "extra ==" in requirement:
            continue
        name = _name_of(requirement)
        if not _installed(name):
            missing.append(f"The package {name} is not installed ({requirement}).")
    return missing


def _extras() -> dict[str, bool]:
    """For each optional group whether all its packages are there."""
    groups: dict[str, bool] = {}
    for requirement in requires("regard") or []:
        if "extra ==" in requirement:
            group = requirement.rpartition("extra ==")[2].strip(" '\"")
            groups[group] = groups.get(group, True) and _installed(_name_of(requirement))
    return groups


def _name_of(requirement: str) -> str:
    letters = [letter if letter.isalnum() or letter in "-_." else " " for letter in requirement]
    return "".join(letters).split()[0]


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _cache() -> tuple[Path | None, str | None]:
    try:
        folder = cache_folder()
    except RegardError as error:
        return None, str(error)
    if not os.access(folder, os.W_OK):
        return folder, f"The cache folder {folder} cannot be written to; name another one in REGARD_CACHE."
    return folder, None


def _multi30k() -> str:
    """Which files are on this machine, by their names only: nothing is read or fetched."""
    folders = [Path(os.environ["REGARD_DATA"]).expanduser()] if os.environ.get("REGARD_DATA") else []
    cache, _ = _cache()
    folders += [cache] if cache else []
    wanted = [data_file(part, language) for part in (TRAIN, VALID, TESTS[0]) for language in LANGUAGES]
    there = [
        file
        for file in wanted
        if any((folder / "multi30k" / path).is_file() for folder in folders for path, _ in file.local_forms())
    ]
    if len(there) == len(wanted):
        return "found on this machine"
    return f"{len(there)} of {len(wanted)} files are on this machine; the others are fetched when they are needed"


def _advice(native: bool, cache: Path | None) -> list[str]:
    advice = []
    if not native:
        advice.append("This processor has no bfloat16 instructions, so trainings take about twice as long.")
    if shutil.disk_usage(cache or Path.cwd()).free < LITTLE_DISK:
        advice.append("There is less than 1 GB of disk left; checkpoints may not fit.")
    return advice
