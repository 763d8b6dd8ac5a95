from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

import regard
from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.config import DataConfig
from regard.data.corpus import load_corpus
from regard.data.embedded import DECK_PAIR
from regard.recipes import RunConfig, recipes
from regard.recipes.config import read_run_config
from regard.recipes.demo import Demo, _turned_round
from regard.recipes.run import open_run, prepare, reached, train, write_config
from regard.recipes.translating import TranslationRun as Run
from regard.recipes.translating import is_unknown, with_files
from regard.training import RunFolder

SENTENCE = "The cat sleeps ."


@pytest.fixture(scope="module")
def config() -> RunConfig:
    full: RunConfig = recipes["rnnsearch"]()
    return full.model_copy(
        update={
            "model": full.model.model_copy(update={"width": 16, "embedding_width": 8}),
            "data": full.data.model_copy(update={"num_sentences": 60}),
            "training": full.training.model_copy(
                update={"max_steps": 3, "validate_every": 0.2, "average_last": 2, "tensorboard": False}
            ),
        }
    )


@pytest.fixture(scope="module")
def run(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = RunFolder.create_at(tmp_path_factory.mktemp("run") / "here", "rnnsearch", config.model_dump(mode="json"))
    return train(config, folder)[0]


def test_opened_it_translates_the_same(run: Run) -> None:
    assert open_run(run.folder.path).translate([SENTENCE]) == run.translate([SENTENCE])


@pytest.mark.parametrize("weights", ["best", "averaged", "last", "auto"])
def test_all_weights_can_be_opened(run: Run, weights: str) -> None:
    assert open_run(run.folder.path, weights).translate([SENTENCE])


def test_weights_that_are_not_there_are_named(run: Run) -> None:
    with pytest.raises(CheckpointError, match="averaged, step-"):
        open_run(run.folder.path, "wrost")


def test_a_look_has_a_row_for_each_target_word(run: Run) -> None:
    look = run.look(SENTENCE)
    assert look.translation.weights is not None
    assert look.translation.weights.shape == (len(look.target_words), len(look.source_words))
    assert look.source_words == ("The", "cat", "sleeps", ".", "<eos>")
    assert look.recording.outputs["translation"] == look.translation.text
    assert look.translation.text == run.translate([SENTENCE])[0].text


def test_a_look_at_words_the_model_does_not_know(run: Run) -> None:
    assert run.look("The zzz sleeps .").source_words == ("The", "zzz", "sleeps", ".", "<eos>")
    with pytest.raises(DataError, match="knows no word"):
        run.look("zzz")


def test_measuring_is_repeatable(run: Run) -> None:
    first, second = run.evaluate("valid"), run.evaluate("valid")
    assert {**first, "seconds": 0, "tokens_per_second": 0} == {**second, "seconds": 0, "tokens_per_second": 0}


def test_a_config_that_cannot_be_built_is_found_before_the_data_are_read(config: RunConfig) -> None:
    missing = DataConfig(source="files", train="nowhere.tsv")
    wrong = config.model_copy(update={"data": missing, "model": config.model.model_copy(update={"width": 17})})
    with pytest.raises(ConfigError, match="even"):
        prepare(wrong)


def test_another_budget_is_written_back(run: Run, config: RunConfig, tmp_path: Path) -> None:
    folder = RunFolder.create_at(tmp_path / "here", "rnnsearch", config.model_dump(mode="json"))
    created = folder.read_header()["created"]
    longer = config.model_copy(update={"training": config.training.model_copy(update={"max_steps": 5})})
    write_config(folder, longer)
    assert read_run_config(folder.config) == longer
    assert folder.read_header()["created"] == created


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (DataConfig(train="a.tsv"), "files"),
        (DataConfig(source="multi30k", test="test_2017_flickr"), "multi30k"),
        (DataConfig(source="multi30k", test="a.tsv"), "files"),
        (DataConfig(source="multi30k", train="a.tsv", test="test_2017_flickr"), "files"),
        (DataConfig(), "embedded"),
    ],
)
def test_files_that_are_named_are_meant(data: DataConfig, source: str) -> None:
    assert with_files(data).source == source


def test_what_is_expected() -> None:
    expected = {"bleu": 30.0, "aer": 0.15, "chrf": 50.0}
    assert reached({"bleu": 30.0, "aer": 0.2}, expected) == {"bleu": True, "aer": False}


def test_unknown_sentences() -> None:
    assert is_unknown([1, 1])
    assert not is_unknown([1, 7])
    assert not is_unknown([])


def test_the_demo_draws_sentences_that_turn_round(config: RunConfig) -> None:
    test = load_corpus(config.data).test
    chosen = _turned_round(test, 3)
    assert len(set(chosen)) == 3
    first = test.alignment(chosen[0]).sure
    assert any(a[0] < b[0] and a[1] > b[1] for a in first for b in first)


def test_the_demo_knows_the_deck_sentence_when_it_sees_it(run: Run) -> None:
    look = run.look(DECK_PAIR.source_text)
    demo = Demo(run, run, {}, {}, look, [], [])
    assert not demo.deck_right
    perfect = dataclasses.replace(look.translation, text=DECK_PAIR.target_text, links=DECK_PAIR.sure)
    demo = dataclasses.replace(demo, deck=dataclasses.replace(look, translation=perfect))
    assert demo.deck_right
    assert demo.deck_reversal


@pytest.mark.parametrize("name", ["rnnsearch", "vit-shapes"])
def test_a_training_can_be_filmed(name: str, tmp_path: Path) -> None:
    """The frames show the same examples, the last one as the trained model sees them."""
    full: RunConfig = recipes[name]()
    little = {"num_sentences": 60} if name == "rnnsearch" else {"num_pictures": 40, "size": 32, "batch_size": 10}
    sizes = {"width": 16, "embedding_width": 8} if name == "rnnsearch" else {"width": 16, "feed_forward_width": 16}
    config = full.model_copy(
        update={
            "model": full.model.model_copy(update=sizes),
            "data": full.data.model_copy(update=little),
            "training": full.training.model_copy(
                update={"max_steps": 3, "record_every": 1, "precision": "float32", "tensorboard": False}
            ),
        }
    )
    folder = RunFolder.create_at(tmp_path / "run", name, config.model_dump(mode="json"))
    run = train(config, folder)[0]
    frames = dict(regard.film(run))
    assert list(frames) == [0, 1, 2, 3]
    first, last = frames[0], frames[3]
    assert first.addresses == last.addresses
    assert first.axes == last.axes
    assert last.outputs["loss"] != first.outputs["loss"]
    shown = prepare(config, resume=folder).record(open_run(folder.path, "last").model)
    for address in last:
        torch.testing.assert_close(last[address].weights(), shown[address].weights(), rtol=0, atol=1e-4)


def test_a_training_without_attention_cannot_be_filmed(config: RunConfig, tmp_path: Path) -> None:
    deaf = recipes["cho"]()
    deaf = deaf.model_copy(
        update={"data": config.data, "training": config.training.model_copy(update={"record_every": 2})}
    )
    folder = RunFolder.create_at(tmp_path / "run", "cho", deaf.model_dump(mode="json"))
    with pytest.raises(ConfigError, match="has no attention"):
        train(deaf, folder)
