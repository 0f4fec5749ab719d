"""Checks of splits: unidentified discussion sections, two file formats that differ, uneven letters and lengths."""

from collections import Counter
from collections.abc import Iterator
from math import exp, lgamma, log

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import LETTERS, Case
from medthink.cases.check.report import DataProblem, FoundDefect, locate
from medthink.cases.files.layout import other_forms
from medthink.cases.files.rows import row_from_case
from medthink.cases.files.tables import CaseTable
from medthink.cases.sections import has_headings
from medthink.core.digest import digest_value
from medthink.core.errors import DataError
from medthink.core.numbers import as_percent


class HeadingTally:
    """Counts, for one split, the discussions without any section heading."""

    def __init__(self) -> None:
        self.discussions = 0
        self.plain = 0

    def add(self, case: Case) -> None:
        """Count a case; an empty discussion has its own problem and is not counted."""
        text = case.reference.discussion
        if text.strip():
            self.discussions += 1
            self.plain += not has_headings(text)

    def findings(self) -> Iterator[FoundDefect]:
        """A problem if some discussions have no heading."""
        if self.plain:
            detail = f"{self.plain:,} of {self.discussions:,} discussions have no section heading"
            yield FoundDefect("discussion-unsectioned", "discussion", detail)


def check_forms(benchmark: Benchmark) -> Iterator[DataProblem]:
    """Compare every split with its copy in the other file format, case by case and field by field."""
    for table, other in other_forms(benchmark.path, benchmark.tables):
        try:
            yield from _compare(benchmark, table, other)
        except DataError as error:
            yield locate(
                FoundDefect("forms-differ", error.field, f"{other.path.name}: {error.problem}"), split=table.split
            )


def _compare(benchmark: Benchmark, table: CaseTable, other: CaseTable) -> Iterator[DataProblem]:
    ours, theirs = _digests(benchmark, table), _digests(benchmark, other)
    for number in sorted(ours.keys() | theirs.keys()):
        if number not in theirs or number not in ours:
            where, lacking = (table, other) if number in ours else (other, table)
            detail = f"in {where.path.name}, not in {lacking.path.name}"
            yield locate(FoundDefect("forms-differ", "title", detail), split=table.split, case=number)
            continue
        for field in sorted(ours[number].keys() | theirs[number].keys()):
            if ours[number].get(field) != theirs[number].get(field):
                detail = f"not the same in {table.path.name} and {other.path.name}"
                yield locate(FoundDefect("forms-differ", field, detail), split=table.split, case=number)


def _digests(benchmark: Benchmark, table: CaseTable) -> dict[int, dict[str, str]]:
    """The digest of every field, by case: two complete splits would take too much memory."""
    part = Benchmark(benchmark.path, (table,), benchmark.images)
    return {
        case.id: {field: digest_value(value)[:16] for field, value in row_from_case(case).items()}
        for case in part.rows_or_errors()
        if not isinstance(case, DataError)
    }


P_LIMIT = 0.01
_CHANCE = 1 / len(LETTERS)


class ShortcutTally:
    """Counts, for one split, how often each letter and how often the longest option is right."""

    def __init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.cases = 0
        self.longest = 0
        self.only_longest = 0

    def add(self, case: Case) -> None:
        """Count a case; one without a valid answer has its own problem and is not counted."""
        options, answer = case.question.options, case.reference.answer
        if answer not in options or len(options) < 2:
            return
        self.cases += 1
        self.letters[answer] += 1
        lengths = [*map(len, options.values())]
        length = len(options[answer])
        if length == max(lengths):
            self.longest += 1
            self.only_longest += lengths.count(length) == 1

    def findings(self) -> Iterator[FoundDefect]:
        """Problems for what chance does not explain."""
        if not self.cases:
            return
        letter, count = max(self.letters.items(), key=lambda pair: (pair[1], pair[0]))
        p = min(1.0, len(LETTERS) * binomial_tail(count, self.cases, _CHANCE))
        if p < P_LIMIT:
            share = f"{as_percent(count / self.cases)}; even: 20.0 %"
            detail = f"{letter} is right in {count} of {self.cases} ({share}), p = {p:.2g}"
            yield FoundDefect("letters-skewed", "correct_answer", detail)
        p = binomial_tail(self.only_longest, self.cases, _CHANCE)
        if p < P_LIMIT:
            detail = (
                f"longest alone in {self.only_longest} of {self.cases} ({as_percent(self.only_longest / self.cases)}), "
                f"ties included {self.longest} ({as_percent(self.longest / self.cases)}; even: 20.0 %), p = {p:.2g}"
            )
            yield FoundDefect("longest-option-right", "options", detail)


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """The probability of at least this many successes."""
    if successes <= 0:
        return 1.0
    base = lgamma(trials + 1)
    return min(
        1.0,
        sum(
            exp(base - lgamma(k + 1) - lgamma(trials - k + 1) + k * log(chance) + (trials - k) * log(1 - chance))
            for k in range(successes, trials + 1)
        ),
    )
