"""The server refuses what it should with a sentence, keeps answers apart, and serves nothing that was not given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from regard.core.errors import DataError
from regard.explorer import server
from regard.explorer.asking import MAX_EDITS, MAX_TEXT, Queue
from regard.explorer.server import Served, make_app
from regard.recording import Recording

from .conftest import FakeModel, translation

URL = "http://127.0.0.1:8721"
LOOK = "/api/models/0/look"


class Camera(FakeModel):
    reads = "picture"


class Broken(FakeModel):
    def look(self, question):
        if question.text == "expected":
            raise DataError("The model knows no word of this.")
        raise ZeroDivisionError("division by zero")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    served = Served(translation().save(tmp_path / "a.regard"), "a.regard")
    (tmp_path / "secret.txt").write_text("secret")
    with TestClient(make_app([served], [FakeModel(), Camera(), Broken()]), base_url=URL) as client:
        yield client


def test_what_there_is(client: TestClient) -> None:
    found = client.get("/api/contents").json()
    assert found["recordings"] == [{"id": 0, "name": "a.regard"}]
    assert [model["reads"] for model in found["models"]] == ["text", "picture", "text"]
    assert client.get("/").headers["content-type"].startswith("text/html")
    assert "mount" in client.get("/browser/app.js").text
    assert client.get("/browser/app.js").headers["content-type"].startswith("text/javascript")


def test_a_recording_comes_as_it_is(client: TestClient, tmp_path: Path) -> None:
    assert client.get("/api/recordings/0").content == (tmp_path / "a.regard").read_bytes()


def test_an_answer_is_a_recording(client: TestClient, tmp_path: Path) -> None:
    answer = client.post(LOOK, json={"text": "a dog", "edits": [{"address": "encoder.0.self", "edit": "mute"}]})
    (tmp_path / "answer.regard").write_bytes(answer.content)
    assert Recording.load(tmp_path / "answer.regard").outputs["translation"] == "A DOG MUTE"
    lines = client.post("/api/models/0/python", json={"text": "a dog"}).json()["python"]
    assert lines == "ask('a dog', [])"


@pytest.mark.parametrize(
    "path",
    [
        "/secret.txt",
        "/api/recordings/../secret.txt",
        "/api/recordings/..%2Fsecret.txt",
        "/browser/..%2F..%2F__init__.py",
        "/browser/%2Fetc%2Fpasswd",
        "/browser/nothing.js",
        "/api/recordings/1",
        "/api/recordings/-1",
        "/api/recordings/٣",
        "/api/recordings/99999999999999999999",
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.txt", "")
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "question", "status", "said"),
    [
        (LOOK, [], 400, "an object"),
        (LOOK, {}, 400, "give `text`"),
        (LOOK, {"text": "  "}, 400, "give `text`"),
        (LOOK, {"text": 3}, 400, "give `text`"),
        (LOOK, {"text": "a" * (MAX_TEXT + 1)}, 400, "at most 20,000"),
        (LOOK, {"text": "a", "edits": {}}, 400, "list of objects"),
        (LOOK, {"text": "a", "edits": ["mute"]}, 400, "list of objects"),
        (LOOK, {"text": "a", "edits": [{"edit": "mute"}]}, 400, "needs an `address`"),
        (LOOK, {"text": "a", "edits": [{"address": "a", "edit": "mute", "heads": ["1"]}]}, 400, "list of numbers"),
        (LOOK, {"text": "a", "edits": [{"address": "a", "edit": "freeze"}]}, 400, "`like`"),
        (LOOK, {"text": "a", "edits": [{"address": "a", "edit": "mute"}] * (MAX_EDITS + 1)}, 400, "at most 64"),
        ("/api/models/1/look", {"text": "a"}, 400, "give `picture`"),
        ("/api/models/1/look", {"picture": "?"}, 400, "not base64"),
        ("/api/models/2/look", {"text": "expected"}, 422, "knows no word"),
        ("/api/models/2/look", {"text": "surprise"}, 500, "ZeroDivisionError"),
        ("/api/models/3/look", {"text": "a"}, 404, "no model '3'"),
        ("/api/models/0/look/more", {"text": "a"}, 404, "Not Found"),
    ],
)
def test_bad_questions(client: TestClient, path: str, question: object, status: int, said: str) -> None:
    answer = client.post(path, json=question)
    assert answer.status_code == status
    assert said in answer.json()["error"]
    assert client.post(LOOK, json={"text": "and on"}).status_code == 200


def test_bad_bodies(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    json = {"content-type": "application/json"}
    assert client.post(LOOK, content="{", headers=json).status_code == 400
    assert client.post(LOOK, content=b"\xff\xfe\x00", headers=json).status_code == 400
    assert client.post(LOOK, content="[" * 100_000, headers=json).status_code == 400
    assert client.post(LOOK, content='{"text": "a"}', headers={"content-type": "text/plain"}).status_code == 415
    assert client.get(LOOK).status_code == 405
    monkeypatch.setattr(server, "MAX_UPLOAD", 100)
    assert client.post(LOOK, json={"text": "a" * 101}).status_code == 413

    def endless() -> Iterator[bytes]:
        while True:
            yield b"a" * 60

    answer = client.post(LOOK, content=_first(endless(), 50), headers=json)
    assert answer.status_code == 413
    assert "too large" in answer.json()["error"]


def _first(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield next(chunks)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8721"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
        {"host": "[::1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_foreign_names_and_origins_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for answer in (
        client.get("/api/contents", headers=headers),
        client.post(LOOK, json={"text": "a"}, headers=headers),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": URL},
        {"host": "localhost:8721", "origin": "http://localhost:8721"},
        {"host": "[::1]:8721"},
        {"sec-fetch-site": "none"},
    ],
)
def test_our_own_names_are_not(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/contents", headers=headers).status_code == 200


def test_an_open_server_answers_to_addresses_and_no_name(tmp_path: Path) -> None:
    with TestClient(make_app(hosts=("*",)), base_url="http://192.168.7.7:8721") as client:
        assert client.get("/api/contents").status_code == 200
        assert client.get("/api/contents", headers={"host": "evil.example"}).status_code == 403


def test_headers_that_keep_pages_apart(client: TestClient) -> None:
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


class Slow(FakeModel):
    """Answers one question at a time, or fails the test."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.inside = 0

    def look(self, question):
        self.inside += 1
        assert self.inside == 1
        assert self.go.wait(20)
        self.inside -= 1
        return super().look(question)


def test_a_burst_is_queued_and_its_answers_are_not_mixed(tmp_path: Path) -> None:
    model = Slow()
    with (
        TestClient(make_app(models=[model], queue=Queue(5)), base_url=URL) as client,
        ThreadPoolExecutor(16) as burst,
    ):
        asked = [burst.submit(client.post, LOOK, json={"text": f"question {number}"}) for number in range(16)]
        end = time.monotonic() + 20
        while sum(one.done() for one in asked) < 11:
            assert time.monotonic() < end
            time.sleep(0.01)
        model.go.set()
        answers = [one.result(20) for one in asked]
        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [503] * 11
        for number, answer in enumerate(answers):
            if answer.status_code == 503:
                assert "Ask again" in answer.json()["error"]
                assert answer.headers["retry-after"]
            else:
                path = tmp_path / "answer.regard"
                path.write_bytes(answer.content)
                assert Recording.load(path).outputs["translation"] == f"QUESTION {number}"
        assert client.post(LOOK, json={"text": "after"}).status_code == 200


def test_a_recording_that_has_gone_is_said(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "a.regard").unlink()
    answer = client.get("/api/recordings/0")
    assert answer.status_code == 404
    assert str(tmp_path) not in answer.text
