"""Other names of a diagnosis known to the rules: those it states itself, and those in a small table."""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from medthink.curate.names import head_of, name_key, other_names, without_brackets

_TABLE = Path(__file__).parent / "data" / "aliases.toml"


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    """The table, by the key of every name that is no abbreviation."""
    groups = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["groups"]
    return {name_key(name): tuple(names) for names in groups for name in names if not is_abbreviation(name)}


def is_abbreviation(name: str) -> bool:
    """Whether a name is capitals, which are only matched as capitals."""
    first = name.split()[0]
    return sum(map(str.isupper, first)) >= 2 and len(first) <= 7


def known_aliases(name: str) -> tuple[str, ...]:
    """Every other name known to the rules, those stated in the name first."""
    stated = other_names(name)
    forms = (name, without_brackets(name), head_of(name), *stated)
    listed = [one for form in forms for one in _groups().get(name_key(form), ())]
    return distinct_names([*stated, *listed], apart_from=[name])


def distinct_names(names: Iterable[str], *, apart_from: Iterable[str] = ()) -> tuple[str, ...]:
    """The names in their order, without repeats and without those to exclude."""
    taken = set(map(name_key, apart_from))
    found: list[str] = []
    for name in names:
        if (key := name_key(name)) and key not in taken:
            taken.add(key)
            found.append(name)
    return tuple(found)
