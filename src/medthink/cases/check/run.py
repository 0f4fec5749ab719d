"""One pass over the cases, then one over the image files if asked for."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.check.cases import check_case
from medthink.cases.check.image_files import FilledSlot, ImageFileList, check_image_files, check_pixels, slots_of
from medthink.cases.check.report import CheckReport, DataProblem, FoundDefect, locate, sort_problems
from medthink.cases.check.splits import HeadingTally, ShortcutTally, check_forms
from medthink.cases.check.texts import SimilarTextFinder, normalised_words
from medthink.cases.files.tables import prefetch
from medthink.cases.images.stores import LINKS_OUT
from medthink.core.errors import DataError
from medthink.core.numbers import as_percent
from medthink.core.plugins import PortionRunner

CheckProgress = Callable[[str, int], None]
"""Called at every step with what is processed ("cases", "images") and the total number."""

_NOT_LOOKED_AT = ("image-file-missing", "image-path-unsafe", "image-path-repeated")


class _Pass:
    """State that is collected while the cases are read."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.problems: list[DataProblem] = []
        self.cases: list[tuple[str, int]] = []
        self.slots: list[FilledSlot] = []
        self.images = 0
        # Of a part of the cases, or with a row that cannot be read, the others' files would look like nobody's.
        self._knows_all_slots = benchmark.is_whole
        self._files = ImageFileList(benchmark.images)
        self._first_split: dict[int, str] = {}
        self._histories = SimilarTextFinder()
        self._unreadable: dict[tuple[Path, str, str], list[int | None]] = {}
        self._told_links: set[str] = set()
        self._first_history: dict[tuple[str, bytes], int] = {}
        self._tallies: defaultdict[str, ShortcutTally] = defaultdict(ShortcutTally)
        self._headings: defaultdict[str, HeadingTally] = defaultdict(HeadingTally)

    def take_error(self, error: DataError) -> None:
        """Record a row that is not a valid case."""
        self._knows_all_slots = False
        self._unreadable.setdefault((Path(error.file), error.field, error.problem), []).append(error.row)

    def take(self, case: Case, *, with_slots: bool) -> None:
        """Check one case by itself, and add it to the checks across cases."""
        history = normalised_words(case.question.history)
        file_findings = self._files.check(case)
        files = [finding for finding in file_findings if not self._is_told(finding)]
        found = (*check_case(case, history), *files, *self._check_id(case), *self._check_history(case, history))
        for finding in found:
            self.problems.append(locate(finding, split=case.split, case=case.id))
        self.cases.append((case.split, case.id))
        self.images += len(case.question.images)
        self._histories.add(case.split, history)
        self._tallies[case.split].add(case)
        self._headings[case.split].add(case)
        if with_slots:
            absent = {finding.field for finding in file_findings if finding.code in _NOT_LOOKED_AT}
            self.slots.extend(slot for slot in slots_of(case) if slot.field not in absent)

    def finish(self) -> Iterator[DataProblem]:
        """Problems that only show across all cases."""
        yield from self._unreadable_rows()
        if self._knows_all_slots:
            yield from map(locate, self._files.extras())
        for match in self._histories.matches():
            split, number = self.cases[match.second]
            other_split, other = self.cases[match.first]
            detail = f"{as_percent(match.similarity, 0)} the same as {other_split} case {other}"
            finding = FoundDefect("history-duplicate-across-splits", "CLINICAL_HISTORY", detail)
            yield locate(finding, split=split, case=number)
        for tallies in (self._tallies, self._headings):
            for split, tally in tallies.items():
                yield from (locate(finding, split=split) for finding in tally.findings())

    def _unreadable_rows(self) -> Iterator[DataProblem]:
        """Problems of rows that are not valid cases; the same problem in many rows of a file is reported once."""
        for (file, field, problem), rows in self._unreadable.items():
            others = f" (and {len(rows) - 1} more rows)" if len(rows) > 1 else ""
            detail = f"{file.name}:{rows[0]}: {problem}{others}"
            yield locate(FoundDefect("row-unreadable", field, detail), split=file.stem)

    def _is_told(self, finding: FoundDefect) -> bool:
        """Whether this very link was named for another image: a linked folder is one problem, not one for each."""
        is_link = finding.detail.startswith(LINKS_OUT)
        is_told = is_link and finding.detail in self._told_links
        self._told_links |= {finding.detail} if is_link else set()
        return is_told

    def _check_history(self, case: Case, history: bytes) -> tuple[FoundDefect, ...]:
        words = b" ".join(history.split())
        first = self._first_history.setdefault((case.split, words), case.id)
        if first == case.id or not words:
            return ()
        return (FoundDefect("history-duplicate-in-split", "CLINICAL_HISTORY", f"the same as case {first}"),)

    def _check_id(self, case: Case) -> tuple[FoundDefect, ...]:
        if case.id not in self._first_split:
            self._first_split[case.id] = case.split
            return ()
        detail = f"case {case.id} is already in {self._first_split[case.id]}"
        return (FoundDefect("id-duplicate", "title", detail),)


def check_benchmark(
    benchmark: Benchmark,
    *,
    images: bool = False,
    progress: CheckProgress | None = None,
    spread: PortionRunner | None = None,
) -> CheckReport:
    """Find every broken invariant; with `images`, look inside the image files too, on all cores or by `spread`."""
    tell = progress or _tell_nobody
    total = len(benchmark) if progress else 0
    gathered = _Pass(benchmark)
    for found in prefetch(benchmark.rows_or_errors()):
        tell("cases", total)
        if isinstance(found, DataError):
            gathered.take_error(found)
        else:
            gathered.take(found, with_slots=images)
    problems = [*gathered.problems, *gathered.finish(), *check_forms(benchmark)]
    if images:
        count = len(gathered.slots)
        looks = check_image_files(gathered.slots, benchmark.images, spread)
        problems.extend(check_pixels(looks, advance=lambda: tell("images", count)))
    return CheckReport(sort_problems(problems), len(gathered.cases), gathered.images, images)


def _tell_nobody(stage: str, total: int) -> None:
    """Ignore progress."""
