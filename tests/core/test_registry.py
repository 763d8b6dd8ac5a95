"""Names that users choose."""

from __future__ import annotations

import types

import pytest

from regard.core.errors import ConfigError, UnknownNameError
from regard.core.registry import Registry


@pytest.fixture
def animals() -> Registry[type]:
    registry: Registry[type] = Registry("animal", hint="Others live elsewhere.")

    @registry.register("zebra")
    class Zebra:
        pass

    @registry.register("ant")
    class Ant:
        pass

    return registry


def test_entries_keep_their_order(animals: Registry[type]) -> None:
    assert list(animals) == ["zebra", "ant"]
    assert [name for name, _ in animals.items()] == ["zebra", "ant"]
    assert len(animals) == 2
    assert "ant" in animals
    assert "bee" not in animals
    assert animals["ant"].__name__ == "Ant"


def test_an_unknown_name_is_answered_with_the_nearest(animals: Registry[type]) -> None:
    with pytest.raises(
        UnknownNameError, match=r"no animal called 'zebar'\. Did you mean 'zebra'.*Known: ant, zebra\. Oth"
    ):
        animals["zebar"]


def test_a_name_cannot_be_taken_by_another(animals: Registry[type]) -> None:
    class Amoeba:
        pass

    with pytest.raises(ConfigError, match=r"Two things want to be the animal 'ant': .*Ant and .*Amoeba"):
        animals.register("ant")(Amoeba)
    assert animals["ant"].__name__ == "Ant"


def test_the_same_file_may_be_imported_twice() -> None:
    registry: Registry[type] = Registry("animal")
    source = "class Bee: pass\nregistry.register('bee')(Bee)"
    for _ in range(2):
        module = types.ModuleType("bees")
        module.__dict__["registry"] = registry
        exec(source, module.__dict__)
    assert registry["bee"] is module.__dict__["Bee"], "the newest one counts"


def test_a_removed_name_is_free(animals: Registry[type]) -> None:
    animals.remove("ant")
    assert "ant" not in animals
    animals.register("ant")(int)
    assert animals["ant"] is int


def test_the_decorator_hands_back_what_it_got() -> None:
    registry: Registry[object] = Registry("thing")
    thing = object()
    assert registry.register("thing")(thing) is thing
