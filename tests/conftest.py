"""What holds for every test: shapes in signatures are checked, one thread, the same seed.

The import hook has to stand before anything imports `regard`, so it is the first thing done here. Programs that a test
starts are not touched by it: they run what users run.

    pytest --regard-import my_mechanism.py tests/contracts

runs the contracts on what that file registers, as does REGARD_IMPORT=my_mechanism.py (several: separated as in PATH).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

assert not any(name.split(".")[0] == "regard" for name in sys.modules), "regard was imported before it could be checked"
install_import_hook("regard", "typechecking.check")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regard-import",
        action="append",
        default=[],
        metavar="FILE",
        help="import a file that registers mechanisms, positions, cells or models, so that the contracts test them",
    )


def pytest_configure(config: pytest.Config) -> None:
    from_environment = [path for path in os.environ.get("REGARD_IMPORT", "").split(os.pathsep) if path]
    for number, path in enumerate([*config.getoption("--regard-import"), *from_environment]):
        _import_file(Path(path), f"regard_plugin_{number}")


def _import_file(path: Path, name: str) -> None:
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise pytest.UsageError(f"--regard-import: {path} is no Python file")
    sys.modules[name] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)


@pytest.fixture(autouse=True)
def repeatable() -> Iterator[None]:
    """One thread, because small tensors only wait for a second one, and random numbers that do not change."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(20170612)
    yield
    torch.set_num_threads(threads)
