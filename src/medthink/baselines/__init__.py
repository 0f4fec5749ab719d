"""Embedded readers: they answer a prompt's structure instead of its text, need no network and cost nothing."""

from typing import TYPE_CHECKING, get_args

from medthink.baselines.inputs import Inputs
from medthink.core.errors import UsageError
from medthink.core.suggest import suggest

if TYPE_CHECKING:
    from medthink.baselines.reader import Reader
    from medthink.cases.benchmark import Benchmark

NAMES = (
    "random",
    "majority",
    "longest",
    "guesser",
    *(f"guesser:{inputs}" for inputs in get_args(Inputs)),
    "retrieval",
)


def open_reader(name: str, benchmark: "Benchmark") -> "Reader":
    """The reader of that name; one that learns does so from the benchmark's train split when it is first asked."""
    if name not in NAMES:
        known = f"known: {', '.join(f'baseline/{it}' for it in NAMES)}"
        raise UsageError(f"no such baseline: {name}", remedy=suggest(name, NAMES, known))
    match name.partition(":"):
        case ["guesser", _, inputs]:
            from medthink.baselines.guessing import guesser_reader

            return guesser_reader(inputs or "options", benchmark)
        case ["retrieval", _, _]:
            from medthink.baselines.retrieval import retrieval_reader

            return retrieval_reader(benchmark)
        case _:
            from medthink.baselines.rules import rule_reader

            return rule_reader(name, benchmark)
