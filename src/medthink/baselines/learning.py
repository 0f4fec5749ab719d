"""Where readers learn: the train split, once per process and content."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.digest import digest_bytes
from medthink.core.errors import UsageError

Learned = TypeVar("Learned")

_MOST_KEPT = 6
_kept: dict[tuple[str, str], Any] = {}


def learner(benchmark: Benchmark, name: str, fit: Callable[[list[Case]], Learned]) -> Callable[[], Learned]:
    """A function that gives what `fit` makes of the train split: it learns when first called, and once.

    A run that asks nothing, because it is finished or only rehearsed, waits for no training.
    """
    if "train" not in benchmark.splits:
        raise UsageError(
            f"{benchmark.path}: no train split; baseline/{name} learns from the train split",
            remedy="add train.jsonl or train.parquet to the folder, or use baseline/random or baseline/longest",
        )
    return cache(lambda: _learn(benchmark, name, fit))


def is_usable(case: Case) -> bool:
    """Whether a case can be learned from: several options, the right one among them."""
    return len(case.question.options) > 1 and case.reference.answer in case.question.options


def _learn(benchmark: Benchmark, name: str, fit: Callable[[list[Case]], Learned]) -> Learned:
    cases = [case for case in benchmark["train"] if is_usable(case)]
    if not cases:
        raise UsageError(
            f"{benchmark.path}: no case of the train split has its answer among its options",
            remedy="medthink data check says what is wrong",
        )
    key = (name, f"{benchmark.path.resolve()} {_content_of(cases)}")
    if key not in _kept:
        # The oldest goes first: a process that sweeps over benchmarks does not hold them all.
        while len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = fit(cases)
    learned: Learned = _kept[key]
    return learned


def _content_of(cases: Iterable[Case]) -> str:
    """A digest of all that is learned from; images stand by path, since reading them is the slow part."""
    lines = [
        msgspec.json.encode(
            (
                case.id,
                case.question.history,
                case.question.options,
                [image.path for image in case.question.images],
                case.reference,
            )
        )
        for case in cases
    ]
    return digest_bytes(b"\n".join(lines))
