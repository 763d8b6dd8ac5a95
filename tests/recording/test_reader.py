"""The reader without torch: the same rows, and a sentence for whatever a file may claim."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from core.test_relations import all_forms
from regard.core.errors import RecordingError
from regard.core.relations import DenseRelation, DotRelation
from regard.recording import Recording
from regard.recording.reader import read

FORMS = all_forms()


@pytest.fixture(scope="module")
def every_form(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = Recording(dict(FORMS), dict.fromkeys(FORMS, ("a", "b")))
    return recording.save(tmp_path_factory.mktemp("forms") / "every.regard")


@pytest.mark.parametrize("name", list(FORMS))
def test_rows_are_those_of_torch(every_form: Path, name: str) -> None:
    found, relation = read(every_form)[name], Recording.load(every_form).relations[name]
    assert found.shape == relation.shape == FORMS[name].shape
    whole = FORMS[name].weights().numpy()
    assert torch.equal(relation.weights(), FORMS[name].weights())
    for example in range(2):
        np.testing.assert_allclose(found.rows(example=example), whole[example], rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.rows(2, 4, example=example), whole[example, :, 2:4], rtol=0, atol=1e-6)
        assert found.rows(3, 3, example=example).shape == (6, 0, 7)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_numbers(dtype: torch.dtype, tmp_path: Path) -> None:
    queries = torch.randn(1, 2, 5, 3).to(dtype)
    dense = torch.rand(1, 2, 5, 3).to(dtype)
    recording = Recording({"d": DotRelation(queries, queries, 0.3), "w": DenseRelation(dense)})
    recording.roles.update({"d": ("a", "a"), "w": ("a", "b")})
    found = read(recording.save(tmp_path / "half.regard"))
    for address in found:
        wanted = recording.relations[address].weights()[0].numpy()
        np.testing.assert_allclose(found[address].rows(), wanted, rtol=0, atol=1e-6)
    assert torch.equal(Recording.load(tmp_path / "half.regard").relations["w"].weights(), dense.float())


def test_axes_and_outputs(recording: Recording, tmp_path: Path) -> None:
    found = read(recording.save(tmp_path / "pair.regard"))
    assert found.axes["source"][1] == {"kind": "text", "tokens": ["the", "cat", "sleeps", "."]}
    assert found.outputs == {"translation": ["Il dort .", "Été"]}
    assert (found["decoder.0.cross"].queries, found["decoder.0.cross"].keys) == ("target", "source")
    assert found.addresses == recording.addresses
    assert len(found) == 7
    with pytest.raises(RecordingError, match="Nothing was recorded at 'x'"):
        found["x"]
    with pytest.raises(RecordingError, match="no queries 4 to 9 of example 0"):
        found["decoder.0.cross"].rows(4, 9)


def test_other_readers_of_safetensors_can_read_it(every_form: Path) -> None:
    """The official library checks order, alignment and size of what we write."""
    with safe_open(every_form, framework="numpy") as opened:
        assert json.loads(opened.metadata()["regard"])["version"] == 1
        assert opened.get_tensor("0/queries").shape == (2, 6, 5, 11)


def test_torch_is_not_needed(every_form: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['safetensors'] = None\n"
        "from regard.recording.reader import read\n"
        f"print(read({str(every_form)!r})['grouped'].rows(0, 2).sum().round(3))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(FORMS["grouped"].weights()[0, :, :2].sum().item(), abs=2e-3)


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def put_together(path: Path, header: Any, data: bytes) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def refused(path: Path, match: str = "") -> None:
    """By both readers, and without memory for what the file claims."""
    for reader in (read, Recording.load):
        tracemalloc.start()
        with pytest.raises(RecordingError, match=match):
            reader(path)  # type: ignore[operator]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000_000


@pytest.fixture
def small(tmp_path: Path) -> Path:
    recording = Recording({"d": FORMS["dot"], "s": FORMS["sparse"], "g": FORMS["grouped"]})
    recording.roles.update(dict.fromkeys("dsg", ("a", "b")))
    return recording.save(tmp_path / "small.regard")


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda h: h["0/keys"].update(dtype="F4"), "unknown dtype 'F4'"),
        (lambda h: h["0/keys"].update(dtype="I32"), "no floating-point"),
        (lambda h: h["0/keys"].update(shape=[2**40, 2**40, 2**40, 2**40]), "another size than its shape"),
        (lambda h: h["0/keys"].update(shape=[10**30]), "has no shape"),
        (lambda h: h["0/keys"].update(shape=[-2, 6, 7, -11]), "has no shape"),
        (lambda h: h["0/keys"].update(shape=[2, 6, 7, True]), "has no shape"),
        (lambda h: h["0/keys"].update(shape=[2, 6, 7, 11.0]), "has no shape"),
        (lambda h: h["0/keys"].update(shape=[2, 6, 77]), "do not have four axes"),
        (lambda h: h["0/keys"].update(shape=[2, 7, 6, 11]), "cannot share its keys"),
        (lambda h: h["0/keys"].update(data_offsets=[0, 10**9]), "outside the file"),
        (lambda h: h["0/keys"].update(data_offsets=[5, 1]), "outside the file"),
        (lambda h: h["0/keys"].update(data_offsets=h["0/queries"]["data_offsets"]), "another size|begin at"),
        (lambda h: h["0/keys"].update(extra=1), "not described as one"),
        (lambda h: h.update({"0/keys": 3}), "is no object"),
        (lambda h: h.pop("2/query_places"), "begin at|have .* bytes"),
        (lambda h: h.update({"__metadata__": {"regard": 3}}), "not all text"),
        (lambda h: h.update({"__metadata__": {"format": "pt"}}), "no recording of Regard"),
        (lambda h: h.update({"__metadata__": {"regard": "[" * 100_000}}), "no JSON"),
        (lambda h: h.update({"__metadata__": {"regard": '{"version": 1, "version": 1}'}}), "a name twice"),
        (lambda h: h.update({"__metadata__": {"regard": '{"version": NaN}'}}), "holds NaN"),
        (lambda h: h.update({"__metadata__": {"regard": '{"version": 1e999}'}}), "does not say its version"),
    ],
)
def test_what_a_header_may_not_claim(small: Path, change: Change, match: str) -> None:
    header, data = parts(small)
    change(header)
    refused(put_together(small, header, data), match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d["taps"].append(d["taps"][0]), "'d' is there twice"),
        (lambda d: d["taps"][0]["fields"].update(scale="2"), "the scale of the map 'd' is no number"),
        (lambda d: d["taps"][0]["fields"].update(causal=0), "does not say whether it is causal"),
        (lambda d: d["taps"][0]["fields"].update(window=-3), "no number of positions"),
        (lambda d: d["taps"][1]["fields"].update(keys=-1), "how many keys"),
        (lambda d: d["taps"][1]["fields"].update(keys=2**60), "how many keys"),
        (lambda d: d["taps"][2]["fields"]["inner"].update(form="grouped"), "has no form"),
        (lambda d: d["taps"][2]["fields"]["inner"].update(fields=3), "is no object"),
        (lambda d: d["taps"][2].update(form="dense"), "lacks weights"),
        (lambda d: d["taps"][2].update(form=["dot"]), "is incomplete"),
        (lambda d: d.update(axes={"a": 3}), "no list"),
        (lambda d: d.update(outputs=[]), "outputs is no object"),
        (lambda d: d.update(version=7), "of version 7; this Regard reads version 1"),
        (lambda d: d.update(version=True), "does not say its version"),
    ],
)
def test_what_a_description_may_not_claim(small: Path, change: Change, match: str) -> None:
    header, data = parts(small)
    description = json.loads(header["__metadata__"]["regard"])
    change(description)
    header["__metadata__"]["regard"] = json.dumps(description)
    refused(put_together(small, header, data), match)


@pytest.mark.parametrize(
    ("whole", "match"),
    [
        (b"", "0 bytes"),
        (b"1234567", "7 bytes"),
        ((2**63).to_bytes(8, "little") + b"{}", "more than"),
        ((99_999_999).to_bytes(8, "little") + b"{}", "but the file has"),
        ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
        ((9).to_bytes(8, "little") + b'{"a":"\xff"}', "no JSON"),
        ((2).to_bytes(8, "little") + b"{}", "no recording of Regard"),
        ((2).to_bytes(8, "little") + b"{}more", "4 are there"),
        ((18).to_bytes(8, "little") + b'{"a": {}, "a": {}}', "a name twice"),
    ],
)
def test_what_is_no_file_of_ours(tmp_path: Path, whole: bytes, match: str) -> None:
    path = tmp_path / "odd.regard"
    path.write_bytes(whole)
    refused(path, match)


def test_indices_beyond_the_keys(small: Path) -> None:
    header, data = parts(small)
    begin, end = header["1/indices"]["data_offsets"]
    put_together(small, header, data[:begin] + b"\x7f" * (end - begin) + data[end:])
    with pytest.raises(RecordingError, match="names others"):
        read(small)["s"].rows()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_read_or_refused_in_a_sentence(every_form: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Bytes cut off, changed or put in anywhere: never another error, never memory beyond the file."""
    whole = bytearray(every_form.read_bytes())
    header = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, min(len(whole), header) - 1) | st.integers(0, len(whole) - 1))
        match data.draw(st.sampled_from(["cut", "change", "insert", "digit"])):
            case "cut":
                del whole[place : place + data.draw(st.integers(1, 64))]
            case "change":
                whole[place : place + 1] = data.draw(st.binary(min_size=1, max_size=8))
            case "insert":
                whole[place:place] = data.draw(st.binary(min_size=1, max_size=8))
            case _:
                digits = [at for at in range(8, min(len(whole), header)) if chr(whole[at]).isdigit()]
                if digits:
                    whole[data.draw(st.sampled_from(digits))] = ord(data.draw(st.sampled_from("0123456789-.e")))
        if not whole:
            break
    path = tmp_path / "damaged.regard"
    path.write_bytes(bytes(whole))
    try:
        found = read(path)
        for address in found:
            if found[address].shape[3] < 10_000:
                found[address].rows(0, min(1, found[address].shape[2]))
    except RecordingError:
        pass


def test_what_json_cannot_hold_is_not_written(recording: Recording, tmp_path: Path) -> None:
    recording.outputs["score"] = float("nan")
    with pytest.raises(RecordingError, match="not finite"):
        recording.save(tmp_path / "nan.regard")
    assert list(tmp_path.iterdir()) == []
