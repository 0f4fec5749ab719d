"""A split that is shipped in two forms: the one that is not read must say the same."""

from collections.abc import Iterator

from medthink.cases.benchmark import Benchmark
from medthink.cases.check.report import DataProblem, Finding, place
from medthink.cases.layout import other_forms
from medthink.cases.rows import row_from_case
from medthink.cases.tables import CaseTable
from medthink.core.digest import digest_value
from medthink.core.errors import DataError


def check_forms(benchmark: Benchmark) -> Iterator[DataProblem]:
    """Compare every split with its other form, case by case and field by field."""
    for table, other in other_forms(benchmark.path, benchmark.tables):
        try:
            yield from _compare(benchmark, table, other)
        except DataError as error:
            yield place(Finding("forms-differ", error.field, f"{other.path.name}: {error.problem}"), split=table.split)


def _compare(benchmark: Benchmark, table: CaseTable, other: CaseTable) -> Iterator[DataProblem]:
    ours, theirs = _digests(benchmark, table), _digests(benchmark, other)
    for number in sorted(ours.keys() | theirs.keys()):
        if number not in theirs or number not in ours:
            where, lacking = (table, other) if number in ours else (other, table)
            detail = f"in {where.path.name}, not in {lacking.path.name}"
            yield place(Finding("forms-differ", "title", detail), split=table.split, case=number)
            continue
        for field in sorted(ours[number].keys() | theirs[number].keys()):
            if ours[number].get(field) != theirs[number].get(field):
                detail = f"not the same in {table.path.name} and {other.path.name}"
                yield place(Finding("forms-differ", field, detail), split=table.split, case=number)


def _digests(benchmark: Benchmark, table: CaseTable) -> dict[int, dict[str, str]]:
    """The digest of every field, by case: two whole splits would be long to hold."""
    part = Benchmark(benchmark.path, (table,), benchmark.images)
    return {
        case.id: {field: digest_value(value)[:16] for field, value in row_from_case(case).items()}
        for case in part.rows_or_errors()
        if not isinstance(case, DataError)
    }
