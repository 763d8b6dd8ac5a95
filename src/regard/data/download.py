"""Finding the files of a public data set on this machine, or fetching them once, checked either way.

Looked for, in this order: the folder that `REGARD_DATA` names (where a machine keeps its data sets), the cache, the
user's own mirror `REGARD_MIRROR` (a web address below which the same paths are found), and the public mirrors. Every
file is known by the SHA-256 of its bytes, so a mirror need not be trusted and a half-finished download is seen.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.core.errors import DataError
from regard.data.cache import cache_folder, file_digest

Fetch = Callable[[str, Path, str], None]
"""Brings an address to a path and raises where the bytes do not have the SHA-256."""

_SECONDS_WITHOUT_ANSWER = 30


@dataclass(frozen=True)
class DataFile:
    """A file as it is published: its path below a mirror's root, and the SHA-256 of its bytes.

    `unpacked_sha256` belongs to the same file after `gunzip`, for machines that keep it so.
    """

    path: str
    sha256: str
    unpacked_sha256: str | None = None

    def local_forms(self) -> list[tuple[str, str]]:
        """The paths under which the file may lie in a data folder, each with the checksum it must have."""
        plain = self.path.rpartition("/")[2]
        forms = [(self.path, self.sha256), (plain, self.sha256)]
        if self.unpacked_sha256 is not None:
            forms += [(path.removesuffix(".gz"), self.unpacked_sha256) for path, _ in forms]
        return list(dict.fromkeys(forms))


def find_or_fetch(
    dataset: str, files: Iterable[DataFile], mirrors: Iterable[str], *, fetch: Fetch | None = None
) -> list[Path]:
    """A checked local file for each of `files`, in their order.

    `dataset` is the folder's name below `REGARD_DATA`, the cache and `REGARD_MIRROR`; `mirrors` are addresses that
    stand for that folder. `fetch` replaces the download, for tests and for stores that are not on the web.
    """
    own = os.environ.get("REGARD_MIRROR")
    addresses = [f"{own.rstrip('/')}/{dataset}"] if own else []
    addresses += [mirror.rstrip("/") for mirror in mirrors]
    return [_find(dataset, file) or _fetch_one(dataset, file, addresses, fetch or _download) for file in files]


def _find(dataset: str, file: DataFile) -> Path | None:
    """The file below `REGARD_DATA`; one that is there but is not what was published is refused, not passed over."""
    root = os.environ.get("REGARD_DATA")
    if not root:
        return None
    folder = Path(root).expanduser() / dataset
    for relative, digest in file.local_forms():
        path = folder / relative
        if path.is_file():
            found = file_digest(path)
            if found != digest:
                raise DataError(
                    f"{path} is not the published file: its SHA-256 is {found}, not {digest}. Replace it, or remove it "
                    "so that it is downloaded."
                )
            return path
    return None


def _fetch_one(dataset: str, file: DataFile, addresses: list[str], fetch: Fetch) -> Path:
    path = cache_folder(dataset) / file.path
    if path.is_file() and file_digest(path) == file.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for address in addresses:
        url = f"{address}/{file.path}"
        try:
            fetch(url, path, file.sha256)
        except (OSError, ValueError) as error:  # no network, no such page, or other bytes than published
            failures.append(f"\n  {url}: {_short(error)}")
        else:
            return path
    raise DataError(
        f"The {dataset} data are not on this machine and could not be fetched. Tried:{''.join(failures)}\n"
        f"Put {file.path.rpartition('/')[2]} by hand into a folder {dataset}/ and name the folder above it in the "
        f"environment variable REGARD_DATA, or place the file at {path}, or name a mirror in REGARD_MIRROR."
    )


def _download(url: str, path: Path, sha256: str) -> None:
    """With pooch: into a temporary file, checked, and only then under its name."""
    import pooch  # here, because it costs a fifth of a second that a machine with the data should not pay

    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(timeout=_SECONDS_WITHOUT_ANSWER, progressbar=sys.stderr.isatty())
    pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent, downloader=downloader)


def _short(error: Exception) -> str:
    """One line of what is often a page of nested exceptions."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else f"{text[:157]}..."
