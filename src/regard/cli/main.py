"""`regard`: finds the subcommand, and turns whatever goes wrong into one sentence and an exit code.

Nothing heavy is imported here: `regard --help` must come at once. A subcommand is a module with `run(argv)`.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

from regard.core.errors import RegardError, UnknownNameError

COMMANDS = {
    "list": ("listing", "what can be chosen: recipes, models, mechanisms, tokenizers, data sets ..."),
    "train": ("train", "train a recipe, or go on with a run"),
    "eval": ("evaluate", "measure a trained run: BLEU, chrF, alignment error rate"),
    "predict": ("predict", "translate sentences, with their alignments"),
    "look": ("look", "draw where a trained run looks"),
    "serve": ("serve", "recordings and trained runs in the browser: ask, point, mute heads, compare"),
    "importance": ("importance", "what is lost by muting each head of a trained run"),
    "verdict": ("verdict", "whether where a trained run looks says anything about what it answers"),
    "data": ("data", "what a recipe reads: sizes, lengths, vocabulary, ill-formed lines"),
    "cost": ("cost", "what a recording will take, before it is made"),
    "doctor": ("doctor", "what this machine has and can do, and whether Regard works on it"),
    "demo": ("demo", "in minutes: train with and without attention, compare, draw"),
    "results": ("results", "run what is missing of the published results, and print their table"),
}
"""Name: (module in this package, what it does)."""

HELP = f"""usage: regard COMMAND [options]

Build, train and look inside attention.

commands:
{chr(10).join(f"  {name:<11}{summary}" for name, (_, summary) in COMMANDS.items())}

examples:
  regard demo
  regard train rnnsearch --model.width 256
  regard look RUN "The cat sleeps ."
  regard serve RUN
  regard COMMAND --help

exit codes:
  0    done
  1    something is wrong with the data, a file, a run or this machine; the message says what
  2    the command line or a config is wrong
  130  stopped by Ctrl-C (143: by SIGTERM); a training saves first, and says how to go on

Every command with a result takes --json; standard output then holds nothing but JSON.
REGARD_DEBUG=1 shows the traceback behind an error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except SystemExit as stop:  # the parsers have said what was wrong
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # nobody reads on, as in `regard list | head`; Python must not flush again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (RegardError, OSError) as error:
        if os.environ.get("REGARD_DEBUG"):
            raise
        if os.environ.get("RANK", "0") == "0":
            print(f"regard: error: {_sentence(error)}", file=sys.stderr)
        return error.exit_code if isinstance(error, RegardError) else 1
    return code


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        import regard

        print(f"regard {regard.__version__}")
        return 0
    name, *rest = argv
    if name.startswith("-"):
        raise UnknownNameError("option", name, ("--help", "--version"), "Options of a command stand behind its name.")
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS, "See `regard --help`.")
    return importlib.import_module(f"regard.cli.{COMMANDS[name][0]}").run(rest)


def _sentence(error: Exception) -> str:
    """What the operating system has to say, with the file and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    advice = {
        errno.ENOSPC: "Make room on that disk, or write somewhere else.",
        errno.EDQUOT: "Your share of that disk is used up: make room, or write somewhere else.",
        errno.EACCES: "Change its permissions, or choose another place.",
        errno.EPERM: "Change its permissions, or choose another place.",
        errno.EROFS: "That disk can only be read: choose another place.",
    }
    return f"{where}{error.strerror or error}. {advice.get(error.errno or 0, '')}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
