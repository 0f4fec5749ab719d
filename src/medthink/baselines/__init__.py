"""Embedded baselines: models inside this process that need no network and cost nothing.

They receive a prompt's structure (its kind, question and findings) instead of its text.
"""

from typing import TYPE_CHECKING, Literal, get_args

from medthink.core.errors import UsageError, suggest

if TYPE_CHECKING:
    from medthink.baselines.baseline import Baseline
    from medthink.cases.benchmark import Benchmark

# Which parts of a question a guesser may use besides the options, which it always sees.
Inputs = Literal["options", "question", "images", "all"]

NAMES = (
    "random",
    "majority",
    "longest",
    "guesser",
    *(f"guesser:{inputs}" for inputs in get_args(Inputs)),
    "retrieval",
)


def open_baseline(name: str, benchmark: "Benchmark") -> "Baseline":
    """The baseline of that name; a trained one is trained on the benchmark's train split at the first question."""
    if name not in NAMES:
        known = f"known: {', '.join(f'baseline/{it}' for it in NAMES)}"
        raise UsageError(f"no such baseline: {name}", remedy=suggest(name, NAMES, known))
    match name.partition(":"):
        case ["guesser", _, inputs]:
            from medthink.baselines.guesser import guesser_baseline

            return guesser_baseline(inputs or "options", benchmark)
        case ["retrieval", _, _]:
            from medthink.baselines.retrieval import retrieval_baseline

            return retrieval_baseline(benchmark)
        case _:
            from medthink.baselines.baseline import rule_baseline

            return rule_baseline(name, benchmark)
