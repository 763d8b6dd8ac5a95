"""Finding and fetching: own folder first, checksums everywhere, mirrors in order, and words when nothing helps."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.core.errors import ConfigError, DataError, UnknownNameError
from regard.data.cache import cache_folder
from regard.data.download import DataFile, find_or_fetch
from regard.data.multi30k import LANGUAGES, MIRRORS, TESTS, TRAIN, VALID, data_file, multi30k_paths

TEXT = b"un\ndeux\n"
PACKED = gzip.compress(TEXT, mtime=0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


FILE = DataFile("raw/train.fr.gz", sha256(PACKED), sha256(TEXT))


class FakeWeb:
    """Serves what it was given, and remembers every address it was asked for."""

    def __init__(self, **pages: bytes) -> None:
        self.pages = pages
        self.asked: list[str] = []

    def __call__(self, url: str, path: Path, digest: str) -> None:
        self.asked.append(url)
        content = self.pages.get(url.split("/")[2])
        if content is None:
            raise OSError("name or service not known\n" * 50)
        if sha256(content) != digest:
            raise ValueError("the hash does not match")
        path.write_bytes(content)


def test_mirrors_are_tried_in_order_until_one_is_right(cache: Path) -> None:
    web = FakeWeb(b=b"a login page", c=PACKED, d=PACKED)
    mirrors = ["https://a/x", "https://b/x/", "https://c/x", "https://d/x"]
    (path,) = find_or_fetch("set", [FILE], mirrors, fetch=web)
    assert web.asked == [f"https://{host}/x/raw/train.fr.gz" for host in "abc"]
    assert path == cache / "set" / "raw" / "train.fr.gz"
    assert path.read_bytes() == PACKED
    assert find_or_fetch("set", [FILE], mirrors, fetch=web) == [path]
    assert len(web.asked) == 3


def test_the_users_mirror_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_MIRROR", "http://own/sets/")
    web = FakeWeb(own=PACKED)
    find_or_fetch("set", [FILE], ["https://a"], fetch=web)
    assert web.asked == ["http://own/sets/set/raw/train.fr.gz"]


def test_a_damaged_cached_file_is_fetched_again(cache: Path) -> None:
    web = FakeWeb(a=PACKED)
    (path,) = find_or_fetch("set", [FILE], ["https://a"], fetch=web)
    path.write_bytes(PACKED[:-1])
    find_or_fetch("set", [FILE], ["https://a"], fetch=web)
    assert path.read_bytes() == PACKED


@pytest.mark.parametrize(
    ("relative", "content"),
    [("raw/train.fr.gz", PACKED), ("train.fr.gz", PACKED), ("raw/train.fr", TEXT), ("train.fr", TEXT)],
)
def test_the_users_folder_is_found_in_each_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: str, content: bytes
) -> None:
    path = tmp_path / "data" / "set" / relative
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "data"))
    web = FakeWeb()
    assert find_or_fetch("set", [FILE], ["https://a"], fetch=web) == [path]
    assert web.asked == []


def test_a_wrong_file_in_the_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.fr.gz").write_bytes(b"something else")
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=rf"set/train\.fr\.gz is not the published file.*{sha256(PACKED)}"):
        find_or_fetch("set", [FILE], ["https://a"], fetch=FakeWeb(a=PACKED))


def test_a_data_folder_without_the_file_does_not_stop_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    web = FakeWeb(a=PACKED)
    assert find_or_fetch("set", [FILE], ["https://a"], fetch=web)[0].read_bytes() == PACKED


def test_without_a_network_it_says_what_was_tried_and_what_to_do() -> None:
    with pytest.raises(DataError) as caught:
        find_or_fetch("set", [FILE], ["https://a/x", "https://b/y"], fetch=FakeWeb(b=b"a login page"))
    sentence = str(caught.value)
    for part in (
        "https://a/x/raw/train.fr.gz: name",
        "https://b/y/raw/train.fr.gz: the hash",
        "REGARD_DATA",
        "REGARD_MIRROR",
    ):
        assert part in sentence
    assert "train.fr.gz by hand" in sentence
    assert len(max(sentence.splitlines(), key=len)) < 500


def test_a_cache_that_cannot_be_made_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="REGARD_CACHE"):
        cache_folder("set")


def test_without_a_named_cache_the_platforms_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "regard" in str(cache_folder("set"))


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "www"
    root.mkdir()
    handler = functools.partial(QuietHandler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def test_a_real_download_from_a_server(server: str, tmp_path: Path, cache: Path) -> None:
    for folder, content in (("wrong", PACKED[:-2]), ("right", PACKED)):
        (tmp_path / "www" / folder / "raw").mkdir(parents=True)
        (tmp_path / "www" / folder / "raw" / "train.fr.gz").write_bytes(content)
    mirrors = [f"{server}/missing", f"{server}/wrong", f"{server}/right"]
    (path,) = find_or_fetch("set", [FILE], mirrors)
    assert path.read_bytes() == PACKED
    assert [file.name for file in path.parent.iterdir()] == ["train.fr.gz"]
    (cache / "set" / "raw" / "train.fr.gz").unlink()
    with pytest.raises(DataError, match=r"missing/raw/train\.fr\.gz: 404(.|\n)*wrong/raw/train\.fr\.gz: SHA256 hash"):
        find_or_fetch("set", [FILE], mirrors[:2])


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(DataError, match="could not be fetched"):
        find_or_fetch("set", [FILE], ["http://127.0.0.1:9"])


def test_multi30k_has_every_language_and_its_digests_are_well_formed() -> None:
    files = [data_file(part, language) for part in (TRAIN, VALID, TESTS[0]) for language in LANGUAGES]
    assert len({file.sha256 for file in files} | {file.unpacked_sha256 for file in files}) == 2 * len(files)
    assert all(len(digest or "") == 64 for file in files for digest in (file.sha256, file.unpacked_sha256))
    assert data_file("train", "cs").path == "raw/train.cs.gz"


def test_multi30k_asks_its_mirrors_for_the_pinned_commit() -> None:
    web = FakeWeb()
    with pytest.raises(DataError, match="multi30k"):
        multi30k_paths(TRAIN, "en", "de", fetch=web)
    assert web.asked == [f"{mirror}/raw/train.en.gz" for mirror in MIRRORS]
    assert [mirror.split("/")[2] for mirror in MIRRORS] == ["raw.githubusercontent.com", "cdn.jsdelivr.net"]


def test_multi30k_names_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="'en'"):
        data_file(TRAIN, "eng")
    with pytest.raises(
        UnknownNameError, match=r"no cs part of Multi30k called 'test_2017_flickr'.*Known: test_2016_flickr"
    ):
        data_file("test_2017_flickr", "cs")
    with pytest.raises(ConfigError, match="both 'en'"):
        multi30k_paths(TRAIN, "en", "en")
