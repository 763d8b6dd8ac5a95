from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.recipes import recipes
from regard.recipes.results import END, PUBLISHED, START, markdown_table, put_into, read_results

from .conftest import Command, tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small() -> object:
    """A recipe that is trained in a moment, with averaging, and an aim it cannot reach."""

    def recipe() -> object:
        config = tiny("rnnsearch", average_last=2, validate_every=0.2)
        return config.model_copy(update={"recipe": "small", "expected": {"bleu": 99.0}})

    recipes.register("small")(recipe)
    yield recipe
    recipes.remove("small")


def test_made_once_and_kept(regard: Command, small: object) -> None:
    result = regard("results", "small", "--json")
    assert result.code == 0, result.err
    (found,) = result.json["results"]
    assert json.loads(Path("results/small.json").read_text()) == found
    assert found["command"] == "regard results small"
    assert found["steps"] == 2
    assert found["reached"] == {"bleu": False}
    assert found["weights"] in found["validation"]
    assert "averaged" in found["validation"]
    assert found["validation"][found["weights"]]["bleu"] == max(each["bleu"] for each in found["validation"].values())
    assert {"bleu", "bleu_signature", "bleu_by_length", "decoding"} <= set(found["metrics"])
    assert {"cpu", "cores", "threads", "memory_gb", "torch"} <= set(found["machine"])
    written = Path("results/small.json").stat().st_mtime_ns
    again = regard("results", "small")
    assert "already in" in again.err
    assert Path("results/small.json").stat().st_mtime_ns == written


def test_nothing_in_a_result_tells_where_it_was_made(regard: Command, small: object, tmp_path: Path) -> None:
    regard("results", "small")
    text = Path("results/small.json").read_text()
    assert str(tmp_path) not in text
    assert "/home" not in text


def test_a_run_that_is_finished_is_only_measured(regard: Command, small: object) -> None:
    regard("results", "small")
    Path("results/small.json").unlink()
    metrics = Path("runs/small/results/metrics.jsonl").read_bytes()
    result = regard("results", "small")
    assert result.code == 0
    assert "trained already" in result.err
    assert Path("runs/small/results/metrics.jsonl").read_bytes() == metrics


def test_a_run_that_was_stopped_goes_on(regard: Command, small: object) -> None:
    regard("train", "small", "--run", "runs/small/results")
    _edit(Path("runs/small/results/config.json"), "expected", {"bleu": 99.0})
    for path in Path("runs/small/results/checkpoints").glob("averaged/*"):
        path.unlink()
    Path("runs/small/results/checkpoints/averaged").rmdir()
    Path("runs/small/results/checkpoints/best.json").unlink()
    result = regard("results", "small")
    assert result.code == 0, result.err
    assert "going on in" in result.err


def _edit(path: Path, field: str, value: object) -> None:
    header = json.loads(path.read_text())
    header["config"][field] = value
    path.write_text(json.dumps(header))


def test_a_run_of_another_config_is_not_passed_off(regard: Command, small: object) -> None:
    regard("results", "small")
    Path("results/small.json").unlink()
    path = Path("runs/small/results/config.json")
    header = json.loads(path.read_text())
    header["config"]["model"]["dropout_rate"] = 0.25
    path.write_text(json.dumps(header))
    result = regard("results", "small")
    assert result.code == 2
    assert "model.dropout_rate: 0.25, in the recipe" in result.err


def test_a_result_of_another_config_is_not_passed_off(regard: Command, small: object) -> None:
    regard("results", "small")
    path = Path("results/small.json")
    result = json.loads(path.read_text())
    result["config"]["training"]["max_steps"] = 999
    path.write_text(json.dumps(result))
    refused = regard("results", "small")
    assert refused.code == 2
    assert "training.max_steps: 999, in the recipe 2" in refused.err


def test_the_table(regard: Command, small: object) -> None:
    regard("results", "small")
    table = regard("results", "--table").out
    assert table.splitlines()[0].startswith("| recipe | parameters |")
    assert "| small |" in table
    assert "99 (missed)" in table


def test_the_table_goes_into_a_text_between_its_markers(regard: Command, small: object) -> None:
    regard("results", "small")
    text = Path("text.md")
    text.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    table = regard("results", "--table", "--into", text).out
    assert text.read_text() == f"before\n{START}\n{table}{END}\nafter\n"
    text.write_text("no markers")
    refused = regard("results", "--table", "--into", text)
    assert refused.code == 2
    assert START in refused.err
    assert text.read_text() == "no markers"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["transformer-multi30k-ed"], 2, "Did you mean 'transformer-multi30k-de'?"),
        (["--table", "--out", "nowhere"], 1, "no results in nowhere"),
    ],
)
def test_what_cannot_be(regard: Command, arguments: list[str], code: int, said: str) -> None:
    result = regard("results", *arguments)
    assert result.code == code
    assert said in result.err


def test_a_file_that_is_no_result(regard: Command) -> None:
    Path("results").mkdir()
    Path("results/other.json").write_text("{}")
    result = regard("results", "--table")
    assert result.code == 1
    assert "other.json" in result.err


def test_published_recipes_exist() -> None:
    assert set(PUBLISHED) <= set(recipes)


def test_the_table_of_the_readme_is_the_programs() -> None:
    """Where the README has the markers, and results are there."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = read_results(ROOT / "results")
    if START not in readme or not results:
        pytest.skip("the README shows no results yet")
    assert put_into(readme, markdown_table(results)) == readme, "call `regard results --table --into README.md`"
