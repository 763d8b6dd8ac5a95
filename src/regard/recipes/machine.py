"""What a result was measured on: the machine without its name, and the code without its place."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


def describe_machine() -> dict[str, Any]:
    """Processor, threads, memory and versions."""
    return {
        "cpu": processor_name(),
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "regard": version("regard"),
    }


def processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Of this process, where the system can tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def forget_peak_memory() -> None:
    """So that the next peak is the next training's own; only Linux can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def describe_commit() -> str | None:
    """The commit of the code, with "+dirty" where the working tree has changes; None where it is no checkout."""
    root = Path(__file__).resolve().parent
    # An installed package may lie inside somebody else's checkout, which says nothing about it.
    tracked = _git(root, "ls-files", "--error-unmatch", Path(__file__).name)
    commit = _git(root, "rev-parse", "HEAD")
    if tracked is None or commit is None:
        return None
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return commit + ("+dirty" if changes else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
