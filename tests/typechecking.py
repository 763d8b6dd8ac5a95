"""What the tests' import hook does with every signature of `regard`: shapes and dtypes are checked, the rest is mypy's.

A hint that names no array is left unchecked. Tests may so hand in stand-ins (for a progress bar, a model), and beartype
never meets what it cannot check at run time: protocols, `Self`, names that only exist later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its array hints checked, or the function itself where it has none."""
    hints = {name: hint for name, hint in function.__annotations__.items() if _names_an_array(hint)}
    if not hints:
        return function
    function.__annotations__ = hints
    return beartype(function)


def _names_an_array(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(_names_an_array(part) for part in get_args(hint))
