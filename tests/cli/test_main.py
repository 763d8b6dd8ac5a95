from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from regard.cli import main as main_module
from regard.cli.main import COMMANDS, main
from regard.core.errors import DataError

from .conftest import Command


def _modules_after(code: str) -> set[str]:
    """What is loaded in a fresh interpreter once this code has run."""
    program = f"{code}\nimport sys\nprint('|'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.strip().splitlines()[-1].split("|"))


def test_importing_regard_loads_next_to_nothing() -> None:
    loaded = _modules_after("import regard")
    assert not loaded & {"torch", "numpy", "matplotlib", "pydantic", "tyro", "accelerate", "transformers"}
    assert "regard.plots" not in loaded


def test_using_the_api_loads_no_plots_and_no_extras() -> None:
    loaded = _modules_after("import regard\nregard.record, regard.open_run, regard.mechanisms, regard.__version__")
    assert "torch" in loaded
    assert not loaded & {"matplotlib", "starlette", "transformers", "tensorboard", "accelerate", "tyro"}


def test_help_does_not_load_torch() -> None:
    loaded = _modules_after("from regard.cli.main import main\nassert main(['--help']) == 0")
    assert not loaded & {"torch", "numpy", "pydantic", "tyro"}


def test_help_names_every_command_and_the_exit_codes(regard: Command) -> None:
    result = regard("--help")
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)
    assert "130" in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(regard: Command, command: str) -> None:
    result = regard(command, "--help")
    assert result.code == 0
    assert "examples:" in result.out
    assert f"regard {command}" in result.out


def test_no_command_shows_the_help_and_fails(regard: Command) -> None:
    assert regard().code == 2


def test_version(regard: Command) -> None:
    assert regard("--version").out.startswith("regard ")


def test_a_wrong_command_is_answered_with_the_nearest(regard: Command) -> None:
    result = regard("trian")
    assert result.code == 2
    assert "'train'" in result.err
    assert result.err.startswith("regard: error: ")


def test_an_option_where_a_command_is_meant(regard: Command) -> None:
    result = regard("--hlep")
    assert result.code == 2
    assert "'--help'" in result.err


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(argv: list[str]) -> int:
        raise error

    monkeypatch.setattr(main_module, "_dispatch", fail)


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch, regard: Command) -> None:
    _failing(monkeypatch, KeyboardInterrupt())
    result = regard("list")
    assert (result.code, result.out, result.err) == (130, "", "")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "Make room"), (errno.EROFS, "only be read"), (errno.EACCES, "permissions")],
)
def test_what_the_system_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, regard: Command, number: int, advice: str
) -> None:
    _failing(monkeypatch, OSError(number, "says the system", "some/file"))
    result = regard("list")
    assert result.code == 1
    assert "some/file" in result.err
    assert advice in result.err
    assert result.err.count("\n") == 1


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, DataError("wrong"))
    monkeypatch.setenv("REGARD_DEBUG", "1")
    with pytest.raises(DataError):
        main(["list"])


def test_only_the_first_of_several_processes_speaks(monkeypatch: pytest.MonkeyPatch, regard: Command) -> None:
    _failing(monkeypatch, DataError("wrong"))
    monkeypatch.setenv("RANK", "1")
    result = regard("train")
    assert (result.code, result.err) == (1, "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = "import sys; from regard.cli.main import main; sys.exit(main(['list']))"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert errors == b""
