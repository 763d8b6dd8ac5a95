"""What holds for every test: shapes in signatures are checked, one thread, the same seed.

The import hook has to be in place before anything imports `regard`, so it is the first thing done here. Programs that
a test starts are not touched by it: they run what users run.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from jaxtyping import install_import_hook

install_import_hook("regard", "beartype.beartype")

import pytest  # noqa: E402
