"""What went wrong, where, and what to do: the errors a user is meant to read.

Every error below is raised for something a user did or has (a file, an option, a mask) and carries a
whole sentence. The command line prints that sentence and exits with `exit_code`; programming mistakes
stay ordinary assertions and tracebacks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RegardError(Exception):
    """Base of all errors that are addressed to the user."""

    exit_code = 1


class ConfigError(RegardError):
    """An option or a config file that does not fit; exits like any wrong command line."""

    exit_code = 2


class DataError(RegardError):
    """A data set that is missing, empty, ill-formed or not what its checksum says."""


class CheckpointError(RegardError):
    """A run folder or weights file that is damaged, incomplete or of another version."""


class MaskError(RegardError):
    """An `allow` that does not fit the queries and keys; the message draws it."""


class RecordingError(RegardError):
    """A recording that would be incomplete or cannot be read."""


class EditError(RegardError):
    """An edit that names what a model does not have, that does not fit, or that had no effect."""


class TrainingError(RegardError):
    """A training run that cannot go on, such as one whose loss is not finite."""


class UnknownNameError(ConfigError):
    """A name that a registry does not hold; says which one was probably meant."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        close = nearest(name, known)
        meant = f" Did you mean {close!r}?" if close else ""
        hint = f" {hint}" if hint else ""
        super().__init__(f"There is no {kind} called {name!r}.{meant} Known: {', '.join(known) or 'none'}.{hint}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None where nothing is close."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None
