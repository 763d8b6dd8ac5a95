"""A cache of its own for every test, a way to call the command, and tiny trained runs to use."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import main
from regard.data.embedded import generate
from regard.recipes import RunConfig, recipes
from regard.recipes.run import train
from regard.training import RunFolder

TINY = ("--model.width", "16", "--data.num-sentences", "60", "--training.max-steps", "2")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1, f"not exactly one line: {self.out!r}"
        return json.loads(self.out)


Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    for name in ("REGARD_DATA", "REGARD_MIRROR", "REGARD_DEBUG", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def regard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls the command in this process."""

    def call(*argv: object, stdin: str | bytes = "") -> Result:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        capsys.readouterr()
        code = main([str(argument) for argument in argv])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


_LITTLE = {
    "translation": {"num_sentences": 60, "seed": 33},  # with the words of the sentences that tests translate
    "classification": {"num_pictures": 40, "size": 32, "batch_size": 10},
}


def tiny(name: str, **training: Any) -> RunConfig:
    """A recipe with a model that trains in a moment."""
    config: RunConfig = recipes[name]()
    sizes = {"width": 16, "embedding_width": 8, "feed_forward_width": 16, "max_length": 64}
    kept = {field: size for field, size in sizes.items() if field in type(config.model).model_fields}
    return config.model_copy(
        update={
            "model": config.model.model_copy(update=kept),
            "data": config.data.model_copy(update=_LITTLE[config.task.kind]),
            "training": config.training.model_copy(
                update={"max_steps": 2, "precision": "float32", "tensorboard": False, **training}
            ),
        }
    )


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny runs of some recipes; not to be changed."""
    root = tmp_path_factory.mktemp("trained")
    runs = {}
    for name in ("rnnsearch", "cho", "transformer", "vit-shapes", "resnet-cifar10"):
        config = tiny(name)
        if config.task.kind == "classification":  # none is downloaded
            config = config.model_copy(update={"data": config.data.model_copy(update={"source": "shapes"})})
        folder = RunFolder.create_at(root / name, name, config.model_dump(mode="json"))
        train(config, folder)
        runs[name] = folder.path
    return runs


@pytest.fixture
def run(trained: dict[str, Path]) -> Path:
    return trained["rnnsearch"]


@pytest.fixture
def own_run(trained: dict[str, Path], tmp_path: Path) -> Path:
    """A copy that a test may damage; at another place, too."""
    return Path(shutil.copytree(trained["rnnsearch"], tmp_path / "moved"))


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    """Parallel text as a user has it."""
    path = tmp_path / "pairs.tsv"
    pairs = generate(60, seed=3, split="train")
    path.write_text("".join(f"{pair.source_text}\t{pair.target_text}\n" for pair in pairs), encoding="utf-8")
    return path


COSINE = '''
import torch.nn.functional as F

from regard.attention import ScoreAttention, mechanisms


@mechanisms.register("cosine_of_a_test")
class Cosine(ScoreAttention):
    """Cosine of query and key."""

    def scores(self, queries, keys):
        return 10 * F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-1, -2)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Any:
    """A user's file with a mechanism, which is forgotten afterwards."""
    from regard.attention import mechanisms

    path = tmp_path / "mine.py"
    path.write_text(COSINE, encoding="utf-8")
    yield path
    if "cosine_of_a_test" in mechanisms:
        mechanisms.remove("cosine_of_a_test")
