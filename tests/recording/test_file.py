"""The `.regard` file: what is read is what was written, and what is no recording is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from regard.core.errors import RecordingError
from regard.recording import Recording


@pytest.fixture
def path(recording: Recording, tmp_path: Path) -> Path:
    return recording.save(tmp_path / "pair.regard")


def rewritten(path: Path, change) -> Path:
    """The same file with its description changed."""
    with safe_open(path, framework="pt") as opened:
        header = json.loads(opened.metadata()["regard"])
        tensors = {name: opened.get_tensor(name) for name in sorted(opened.keys())}
    change(header, tensors)
    save_file(tensors, path, metadata={"regard": json.dumps(header)})
    return path


def test_round_trip(recording: Recording, path: Path) -> None:
    again = Recording.load(path)
    assert again.addresses == recording.addresses
    assert again.roles == recording.roles
    assert again.axes == recording.axes
    assert again.outputs == recording.outputs
    assert again.nbytes == recording.nbytes
    for address in recording:
        assert again[address].relation.form == recording[address].relation.form
        assert torch.equal(again[address].weights(), recording[address].weights())
        assert torch.equal(again[address].weights(example=1), recording[address].weights(example=1))


def test_it_can_be_read_without_regard(path: Path) -> None:
    with safe_open(path, framework="numpy") as opened:
        header = json.loads(opened.metadata()["regard"])
        assert header["version"] == 1
        assert header["taps"][1]["address"] == "decoder.1.cross"
        assert opened.get_tensor("1/weights").shape == (2, 3, 5, 7)
    assert header["axes"]["source"][1] == {"kind": "text", "tokens": ["the", "cat", "sleeps", "."]}


def test_shared_memory_and_views_are_written_whole(recording: Recording, tmp_path: Path) -> None:
    """Queries that are keys too, and a transposed tensor: safetensors takes neither by itself."""
    relation = recording.relations["decoder.0.attention"]
    assert relation.queries is relation.keys
    view = torch.randn(2, 5, 3, 11).transpose(1, 2)
    recording.relations["decoder.0.attention"] = type(relation)(view, view, 1.0)
    again = Recording.load(recording.save(tmp_path / "views.regard"))
    assert torch.equal(again.relations["decoder.0.attention"].queries, view)


def test_without_axes(recording: Recording, tmp_path: Path) -> None:
    recording.axes.clear()
    again = Recording.load(recording.save(tmp_path / "bare.regard"))
    assert again.axes == {}
    assert again["decoder.0.cross"].weights(example=1).shape == (3, 5, 7)


def test_nothing_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="nothing to save"):
        Recording().save(tmp_path / "empty.regard")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(recording: Recording, path: Path) -> None:
    before = path.read_bytes()
    recording.outputs["model"] = object()
    with pytest.raises(TypeError):
        recording.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_truncated_files(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(RecordingError, match=r"pair\.regard cannot be read as a recording"):
        Recording.load(path)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n" * 9, b'{"version": 1}', b"\x00" * 999])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "picture.regard"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="cannot be read as a recording"):
        Recording.load(path)


def test_other_safetensors(tmp_path: Path) -> None:
    save_file({"weight": torch.ones(3)}, tmp_path / "model.safetensors")
    with pytest.raises(RecordingError, match="a safetensors file, but no recording"):
        Recording.load(tmp_path / "model.safetensors")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "none.regard", tmp_path):
        with pytest.raises(RecordingError, match="There is no recording at"):
            Recording.load(path)


def test_another_version(path: Path) -> None:
    rewritten(path, lambda header, tensors: header.update(version=2))
    with pytest.raises(RecordingError, match="of version 2; this Regard reads version 1"):
        Recording.load(path)


def test_not_json(path: Path) -> None:
    save_file({"0/weights": torch.ones(3)}, path, metadata={"regard": "{"})
    with pytest.raises(RecordingError, match="damaged"):
        Recording.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, tensors: header.pop("version"),
        lambda header, tensors: header.pop("taps"),
        lambda header, tensors: header.update(taps=3),
        lambda header, tensors: header["taps"][0].update(form="cubic"),
        lambda header, tensors: header["taps"][0].pop("queries"),
        lambda header, tensors: header["taps"][0].update(fields={}),
        lambda header, tensors: header.update(axes=[]),
        lambda header, tensors: header["axes"].update(source=["text"]),
        lambda header, tensors: tensors.pop("0/keys"),
        lambda header, tensors: tensors.pop("1/weights"),
    ],
)
def test_a_damaged_description(path: Path, change) -> None:
    with pytest.raises(RecordingError, match="damaged"):
        Recording.load(rewritten(path, change))


def test_an_unknown_axis(path: Path) -> None:
    rewritten(path, lambda header, tensors: header["axes"]["source"][0].update(kind="hexagons"))
    with pytest.raises(RecordingError, match="'hexagons' is not known"):
        Recording.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, tensors: header["axes"]["source"].pop(),
        lambda header, tensors: header["axes"]["source"][0].update(tokens=["x"] * 8),
        lambda header, tensors: header["axes"]["target"][1].update(tokens=["x"] * 6),
    ],
)
def test_axes_that_do_not_fit_the_maps(path: Path, change) -> None:
    with pytest.raises(RecordingError, match="do not fit"):
        Recording.load(rewritten(path, change))
