import errno
import json
import shutil

import pytest
import torch
from safetensors import SafetensorError

from regard.core.errors import CheckpointError
from regard.training import average, checkpoints, load_model_weights
from regard.training.checkpoints import MODEL_FILE, CheckpointStore, checkpoint_name, read_state
from regard.training.weights import gather_model

from .toy import ToyModel, assert_same_weights


def save(store, step, model, **state):
    tensors, aliases = gather_model(model)
    return store.save(checkpoint_name(step), {MODEL_FILE: tensors}, {"step": step, "aliases": aliases, **state})


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints")


def leftovers(store):
    return [path.name for path in store.path.glob(".*")]


def test_what_is_saved_comes_back(store):
    model, other = ToyModel(), ToyModel()
    folder = save(store, 7, model, words=["été", None, 0.1])
    state = load_model_weights(other, folder)
    assert_same_weights(model, other)
    assert (state["step"], state["words"]) == (7, ["été", None, 0.1])
    assert leftovers(store) == []


def test_saving_a_step_again_replaces_it(store):
    save(store, 7, ToyModel())
    model, other = ToyModel(), ToyModel()
    load_model_weights(other, save(store, 7, model))
    assert_same_weights(model, other)
    assert store.names() == [checkpoint_name(7)]
    assert leftovers(store) == []


def damage_by_truncation(folder):
    path = folder / MODEL_FILE
    path.write_bytes(path.read_bytes()[:-3])


def damage_by_one_bit(folder):
    path = folder / MODEL_FILE
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def damage_by_removal(folder):
    (folder / MODEL_FILE).unlink()


def damage_the_state(folder):
    path = folder / "state.json"
    path.write_text(path.read_text().replace('"step": 9', '"step": 8'))


def damage_the_json(folder):
    path = folder / "state.json"
    path.write_text(path.read_text()[:40])


def damage_by_lists(folder):
    (folder / "state.json").write_text("[]")


def remove_the_state(folder):
    (folder / "state.json").unlink()


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (damage_by_truncation, MODEL_FILE),
        (damage_by_one_bit, MODEL_FILE),
        (damage_by_removal, MODEL_FILE),
        (damage_the_state, "state.json"),
        (damage_the_json, "state.json"),
        (damage_by_lists, "state.json"),
        (remove_the_state, "state.json"),
    ],
)
def test_damage_is_found_named_and_answered_with_the_one_before(store, damage, file):
    good = save(store, 5, ToyModel())
    bad = save(store, 9, ToyModel())
    damage(bad)
    with pytest.raises(CheckpointError, match=file):
        load_model_weights(ToyModel(), bad)
    found, complaints = store.newest_good()
    assert found == good
    assert len(complaints) == 1
    assert str(bad / file) in complaints[0]
    damage_by_removal(good)
    with pytest.raises(CheckpointError, match=r"No checkpoint of this run is good.*00000009.*00000005"):
        store.newest_good()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "permissions"),
        (PermissionError(errno.EACCES, "Permission denied"), "permissions"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
    ],
)
@pytest.mark.parametrize("moment", ["save_file", "_flush", "_sealed"])
def test_a_failed_save_says_why_and_leaves_the_checkpoint_before(store, monkeypatch, moment, error, advice):
    model = ToyModel()
    save(store, 5, model)
    store.point("last", checkpoint_name(5))

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, moment, fail)
        with pytest.raises(CheckpointError, match=rf"00000009 could not be written.*{advice}.*00000005, is intact"):
            save(store, 9, ToyModel())
    assert leftovers(store) == []
    assert store.names() == [checkpoint_name(5)]
    other = ToyModel()
    load_model_weights(other, store.find("last"))
    assert_same_weights(model, other)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "checkpoints").write_text("a file in the way")
    with pytest.raises(CheckpointError, match="could not be written"):
        save(CheckpointStore(tmp_path / "checkpoints"), 5, ToyModel())


class Killed(BaseException):
    """Stands for SIGKILL: nobody gets to clean up."""


@pytest.mark.parametrize("moment", ["save_file", "_describe", "_flush"])
def test_a_save_that_is_killed_leaves_nothing_that_counts(store, monkeypatch, moment):
    save(store, 5, ToyModel())

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, moment, die)
        with pytest.raises(Killed):
            save(store, 9, ToyModel())
    assert store.names() == [checkpoint_name(5)]
    assert store.newest_good()[0].name == checkpoint_name(5)
    assert len(leftovers(store)) == 1
    store.prune([checkpoint_name(5)])
    assert leftovers(store) == []
    assert store.names() == [checkpoint_name(5)]


def test_names_are_in_the_order_of_steps(store):
    for step in (200, 3, 100_000_000):
        save(store, step, ToyModel())
    (store.path / "step-of-mine").mkdir()
    assert store.names() == ["step-00000003", "step-00000200", "step-100000000"]


def test_pointers_find_their_checkpoint(store):
    with pytest.raises(CheckpointError, match="nothing has been saved"):
        store.find("last")
    save(store, 3, ToyModel())
    save(store, 5, ToyModel())
    store.point("last", checkpoint_name(5))
    assert store.find("best").name == checkpoint_name(5)
    store.point("best", checkpoint_name(3), loss=0.5)
    assert store.find("best").name == checkpoint_name(3)
    assert store.find(checkpoint_name(3)).name == checkpoint_name(3)
    assert json.loads((store.path / "best.json").read_text())["loss"] == 0.5
    with pytest.raises(CheckpointError, match=r"no averaged checkpoint; there are: step-00000003, step-00000005"):
        store.find("averaged")


@pytest.mark.parametrize("content", ["", "[]", '{"checkpoint": 3}', '{"checkpoint": "../elsewhere"}', "{}"])
def test_a_pointer_that_is_no_pointer_points_nowhere(store, content):
    save(store, 3, ToyModel())
    (store.path / "last.json").write_text(content)
    assert store.pointed("last") is None
    with pytest.raises(CheckpointError, match="no last checkpoint"):
        store.find("last")


def test_another_format_says_who_wrote_it(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "FORMAT_VERSION", 2)
        patch.setattr(checkpoints, "version", lambda _: "9.9.9")
        folder = save(store, 3, ToyModel())
    with pytest.raises(CheckpointError, match=r"written by regard 9.9.9 as checkpoint format 2.*reads format 1"):
        read_state(folder)


def test_checkpoints_can_be_moved(store, tmp_path):
    model, other = ToyModel(), ToyModel()
    folder = save(store, 3, model)
    moved = tmp_path / "elsewhere"
    shutil.move(folder, moved)
    load_model_weights(other, moved)
    assert_same_weights(model, other)


def test_averaging(store):
    models = [ToyModel() for _ in range(3)]
    for model in models:
        model.register_buffer("counter", torch.tensor(0))
    for step, model in enumerate(models):
        model.counter.fill_(step)
    folders = [save(store, step, model) for step, model in enumerate(models)]
    means, aliases = average(folders)
    weights = torch.stack([model.block.linear.weight.detach().double() for model in models])
    assert torch.equal(means["block.linear.weight"], weights.mean(0).float())
    assert means["counter"] == 2
    assert aliases == {"heads.2.weight": "heads.0.weight"}
    same, _ = average(folders[:1])
    assert torch.equal(same["heads.1.bias"], models[0].heads[1].bias)


def test_averaging_refuses_what_does_not_match(store):
    with pytest.raises(CheckpointError, match="no checkpoint"):
        average([])
    with pytest.raises(CheckpointError, match="00000005"):
        average([save(store, 3, ToyModel()), save(store, 5, ToyModel(width=13))])
