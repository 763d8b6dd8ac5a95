from __future__ import annotations

import re
from pathlib import Path

import pytest

from regard.cli import options as options_module
from regard.cli.main import COMMANDS
from regard.cli.options import changed, differences, import_plugins
from regard.core.errors import ConfigError
from regard.data.config import DataConfig
from regard.recipes import recipes

from .conftest import Command

SNAPSHOT = Path(__file__).with_name("options.txt")


def _options(help_text: str) -> list[str]:
    """The options that a help text offers; what comes behind them is their metavar and description.

    A long text stands in two columns; descriptions are further from the edge than options.
    """
    offered = re.findall(r"│ ((?:-h, )?--[^│]*)", help_text)
    return sorted({name for line in offered for name in re.findall(r"(?<![\w-])--[a-z][\w.-]*", line.split("  ")[0])})


def test_the_options_are_those_that_were_agreed_on(
    regard: Command, trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options are a promise to scripts: one that goes, or changes its name, is meant to be seen.

    When a change is wanted, replace `options.txt` by what this test says.
    """
    monkeypatch.setenv("COLUMNS", "200")
    run, pictures = str(trained["rnnsearch"]), str(trained["vit-shapes"])
    first = {"eval": run, "predict": run, "look": run, "importance": run, "verdict": run}
    first |= {"train": "rnnsearch", "data": "rnnsearch"}
    calls = [(command, first.get(command)) for command in COMMANDS]
    calls += [(command, pictures) for command in ("eval", "predict", "look")]
    calls += [(command, "vit-shapes") for command in ("train", "data")]
    whole = len(calls)
    calls += [("train", name) for name in ("cho", "sutskever", "luong", "transformer", "cnn-shapes", "swin-shapes")]
    lines = []
    for place, (command, argument) in enumerate(calls):
        arguments = [argument] if argument else []
        shown = " ".join([command, *arguments]).replace(run, "RUN").replace(pictures, "PICTURE_RUN")
        offered = _options(regard(command, *arguments, "--help").out)
        # What is not the model's is the same for every recipe of a task.
        lines += [f"{shown} {name}" for name in offered if place < whole or name.startswith("--model.")]
    assert "\n".join(lines) + "\n" == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("--model.widht", "--model.width"),
        ("--training.max-epoch", "--training.max-epochs"),
        ("--data.num-sentence", "--data.num-sentences"),
        ("--task.decoding.beam-widht", "--task.decoding.beam-width"),
        ("--resum", "--resume"),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(regard: Command, wrong: str, meant: str) -> None:
    result = regard("train", "rnnsearch", wrong, "3")
    assert result.code == 2
    assert wrong in result.err
    assert meant in result.err.split("Perhaps you meant")[1]


def test_a_value_of_another_type(regard: Command) -> None:
    result = regard("train", "rnnsearch", "--model.width", "wide")
    assert result.code == 2
    assert "--model.width" in result.err


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--training.learning-rate", "-1", "training.learning_rate: input should be greater than 0"),
        ("--data.num-sentences", "0", "data.num_sentences: input should be greater than or equal to 1"),
        ("--task.decoding.beam-width", "0", "beam_width is 0, but it has to be at least 1"),
    ],
)
def test_a_value_that_does_not_fit_is_one_line(regard: Command, option: str, value: str, said: str) -> None:
    result = regard("train", "rnnsearch", option, value)
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


def test_dashes_and_underscores_are_the_same(regard: Command) -> None:
    for option in ("--data.num_sentences", "--data.num-sentences"):
        described = regard("data", "rnnsearch", option, "20", "--json").json
        assert described["parts"]["train"]["pairs"] == 20


def test_a_config_survives_its_own_options() -> None:
    config = recipes["transformer"]()
    same = changed(config, {"model": {"width": config.model.width}})
    assert same == config
    assert differences(config, changed(config, {"model": {"width": 32}, "data": {"seed": 5}})) == [
        "model.width",
        "data.seed",
    ]


def test_a_finding_inside_the_model_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"model\.width: input should be a valid integer"):
        changed(recipes["rnnsearch"](), {"model": {"width": "wide"}})


def test_a_section_of_its_own(regard: Command) -> None:
    assert changed(DataConfig(), {"seed": 3}).seed == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "line 1: SyntaxError"),
        ("\n\nimport no_such_module_at_all", "line 3: ModuleNotFoundError"),
        ("def f():\n    raise KeyError('k')\n\nf()", "line 2: KeyError"),
        (
            "from regard.attention import mechanisms\n\n@mechanisms.register('dot')\nclass Mine: pass",
            "Two things want to be the attention mechanism 'dot'",
        ),
    ],
)
def test_a_mistake_in_an_imported_file_names_the_line(regard: Command, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text, encoding="utf-8")
    result = regard("list", "mechanisms", "--import", path)
    assert result.code == 2
    assert said in result.err
    assert str(path) in result.err


def test_an_import_that_is_not_there(regard: Command) -> None:
    result = regard("list", "--import=nowhere.py")
    assert result.code == 2
    assert "nowhere.py" in result.err


def test_a_plugin_that_fails_is_mentioned_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = []

    class Good:
        name, value = "good", "good.module"

        def load(self) -> None:
            loaded.append(self.name)

    class Bad(Good):
        name, value = "bad", "bad.module"

        def load(self) -> None:
            raise ImportError("nothing there")

    monkeypatch.setattr(options_module, "entry_points", lambda group: [Bad(), Good()] * (group == "regard.plugins"))
    import_plugins([])
    assert loaded == ["good"]
    assert "bad.module" in capsys.readouterr().err
