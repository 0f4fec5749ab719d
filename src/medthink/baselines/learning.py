"""Training on the train split, once per process and content; a case that was trained on is refused."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from medthink.baselines.baseline import unsupported
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.core.digest import digest_bytes
from medthink.core.errors import UsageError

Learned = TypeVar("Learned")
Fit = Callable[[list[Case]], Learned]

_MOST_KEPT = 6
_kept: dict[tuple[str, str], Any] = {}


class Lessons(Generic[Learned]):
    """What a baseline learns from the train split; it is trained at the first question, not before."""

    def __init__(self, benchmark: Benchmark, name: str, fit: Fit[Learned]) -> None:
        if "train" not in benchmark.splits:
            raise UsageError(
                f"{benchmark.path}: no train split, and baseline/{name} learns from the train split",
                remedy="add train.jsonl or train.parquet to the folder, or use baseline/random or baseline/longest",
            )
        self._benchmark = benchmark
        self._name = name
        self._fit = fit
        self._learned: tuple[Learned, frozenset[str]] | None = None

    def recall(self, question: Question) -> Learned:
        """What was learned; raises ModelError for a question that was trained on."""
        if self._learned is None:
            self._learned = self._learn()
        learned, known = self._learned
        if not known.isdisjoint(_marks(question)):
            raise unsupported(self._name, "was trained on this case", remedy="run it on a split other than train")
        return learned

    def _learn(self) -> tuple[Learned, frozenset[str]]:
        cases = [case for case in self._benchmark["train"] if is_usable(case)]
        if not cases:
            raise UsageError(
                f"{self._benchmark.path}: no case of the train split has its answer among its options",
                remedy="medthink data check says what is wrong",
            )
        known = frozenset(mark for case in cases for mark in _marks(case.question))
        return _fit_once(
            (self._name, f"{self._benchmark.path.resolve()} {_content_of(cases)}"), self._fit, cases
        ), known


def is_usable(case: Case) -> bool:
    """Whether a case can be learned from: several options, the right one among them."""
    return len(case.question.options) > 1 and case.reference.answer in case.question.options


def _fit_once(key: tuple[str, str], fit: Fit[Learned], cases: list[Case]) -> Learned:
    if key not in _kept:
        # The oldest goes first: a process that sweeps over benchmarks does not hold them all.
        while len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = fit(cases)
    learned: Learned = _kept[key]
    return learned


def _marks(question: Question) -> Iterable[str]:
    """What identifies a question: its images' paths, and its text where history and options are shown."""
    yield from (image.path for image in question.images)
    if question.history and question.options:
        yield "\n".join([question.history, *sorted(question.options.values())])


def _content_of(cases: Sequence[Case]) -> str:
    """A digest of the training data; images enter by path, because reading them is slow."""
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
