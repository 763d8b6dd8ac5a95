"""Where downloaded and tokenised data are kept, and the keys under which they are found again.

The folder is the one that the environment variable `REGARD_CACHE` names, else the platform's own cache folder.
A key is a hash of everything that the cached thing depends on, so a cache is never stale: it is found or it is not.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from regard.core.errors import DataError


def cache_folder(*parts: str) -> Path:
    """The cache folder, or a folder below it, made when it does not exist."""
    named = os.environ.get("REGARD_CACHE")
    if named:
        root = Path(named).expanduser()
    else:
        import pooch  # here, because it costs a fifth of a second that no other command should pay

        root = Path(pooch.os_cache("regard"))
    folder = root.joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The cache folder {folder} cannot be made ({error.strerror}). "
            "Name a folder that you may write to in the environment variable REGARD_CACHE."
        ) from error
    return folder


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_key(value: Any) -> str:
    """A file name that stands for any JSON value: equal values, equal names."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
