"""Export: the benchmark's folder, with its data card and figures, checked like any other benchmark."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from msgspec import to_builtins
from msgspec.structs import replace

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.check import check_benchmark
from medthink.cases.files.export import export_benchmark
from medthink.cases.files.layout import find_tables
from medthink.cases.files.rows import row_from_case
from medthink.cases.images.stores import FolderImages
from medthink.cases.statistics import compute_statistics
from medthink.core.errors import DataError, Declined
from medthink.core.files import write_atomic
from medthink.core.jsonio import encode_json, read_json, write_json
from medthink.core.numbers import as_rate
from medthink.curate.ask import StageModel
from medthink.curate.data_card import HIDDEN, CardFacts, draw_funnel, write_card
from medthink.curate.decision import StageResult, pass_case
from medthink.curate.draft import Draft
from medthink.curate.plan import StageSummary, WorkFolder
from medthink.curate.rulings import CaseRulings, Rulings, read_journal
from medthink.curate.settings import ExportSettings
from medthink.curate.sources.release import SOURCE_ID
from medthink.curate.stage import Drafts, Stage
from medthink.curate.stages.textonly import FEWEST_FOR_GUESSERS
from medthink.stats.estimate import Estimate
from medthink.stats.intervals import wilson

_LONGEST_LIST = 20


class ExportStage(Stage[ExportSettings]):
    """Writes the benchmark from the drafts."""

    name = "export"
    follows_release = True

    def survey(self, drafts: Drafts) -> None:  # noqa: ARG002
        """Check the output folder, then start counting."""
        self._report: dict[str, Any] = {"benchmark": str(self._out)}
        self._licences: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._told: Counter[str] = Counter()

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """Include every case, without its notes."""
        self._licences[draft.notes.licence] += 1
        self._sources[draft.notes.source] += 1
        self._told["captions"] += bool(draft.notes.marks.get("leaks", {}).get("captions"))
        self._told["published"] += self.context.release.case_of(draft) is not None
        return pass_case(draft, by="rule export")

    def finish(self, drafts: Drafts) -> None:
        """Write, check, describe."""
        with TemporaryDirectory(dir=self.context.work, prefix=".export-") as staging:
            splits = _write_splits(drafts(), Path(staging))
            if not splits:
                return
            tables = find_tables(Path(staging))
            benchmark = Benchmark(Path(staging), tables, FolderImages(self.context.folder))
            fresh = self._out.with_name(f".{self._out.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            exported = export_benchmark(benchmark, fresh, format=self.settings.format)
        self._report |= {"cases": exported.cases, "images": exported.images}
        self._describe(Benchmark.open(fresh), fresh)
        # The earlier build is replaced once the new one is complete.
        if self._out.exists():
            shutil.rmtree(self._out)
        fresh.replace(self._out)

    def is_written(self) -> bool:
        """Whether the benchmark's folder still has its card, every text as it was written, and every image."""
        try:
            texts = read_json(self._out / _MARK)["texts"]
            benchmark = Benchmark.open(self._out)
            is_same = texts == benchmark.text_fingerprint() and (self._out / _CARD).is_file()
            return is_same and all(one.store.has(one.path) for case in benchmark for one in case.question.images)
        except (DataError, KeyError, TypeError):
            return False

    @cached_property
    def _out(self) -> Path:
        """The benchmark's folder; one with anything but an earlier build is refused, and the release itself."""
        out = self.context.path(self.settings.out) if self.settings.out else self.context.work / "benchmark"
        release = self.context.release.path
        if release is not None and release.resolve() == out.resolve():
            raise DataError("this is the release that the build follows", file=out, remedy="copy the release elsewhere")
        if out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
            raise DataError(
                "the folder already exists and contains other files",
                file=out,
                remedy="name a folder that does not exist",
            )
        return out

    def _describe(self, benchmark: Benchmark, out: Path) -> None:
        from medthink.cases.statistics_figure import draw_statistics

        work = WorkFolder(self.context.work)
        stages = list(work.read_summaries().values())
        statistics = compute_statistics(benchmark)
        checked = check_benchmark(benchmark)
        draw_statistics(statistics, out / "statistics.svg")
        if stages:
            draw_funnel(stages, out / "funnel.svg")
        told = [_without_paths(one) for one in stages]
        write_json(out / _MARK, {"stages": told, "texts": benchmark.text_fingerprint()})
        facts = CardFacts(
            name=self.settings.title,
            stages=stages,
            statistics=statistics,
            licences=dict(self._licences.most_common()),
            sources=dict(self._sources.most_common(_LONGEST_LIST)),
            probes=_probe(benchmark),
            problems=checked.counts,
            errors=Rulings(read_journal(work.path)).errors(),
            notes=self._notes(),
            fingerprint=benchmark.fingerprint(),
        )
        write_atomic(out / _CARD, [write_card(facts).encode()])
        self._report |= {"data check": f"{len(checked.errors)} errors, {len(checked.warnings)} warnings"}
        if checked.errors:
            remedy = f"medthink data check {self._out} lists them"
            self.stopped_by = Declined(f"the benchmark has errors: {len(checked.errors):,}", remedy=remedy)

    def _notes(self) -> list[str]:
        captions = self._told["captions"]
        words = "cases a caption names the diagnosis: with expert captions shown, reading is enough to solve them"
        notes = [f"In {captions:,} {words}."] if captions else []
        if published := len(self.context.release.cases):
            notes.append(
                f"It follows a release of {published:,} cases, {self._told['published']:,} of which are in it."
            )
        return notes

    def report(self) -> dict[str, Any]:
        """The benchmark's folder, and the result of the check."""
        return self._report

    def inputs(self) -> Any:
        """The summaries of all stages and the reviews, which the card describes."""
        work = WorkFolder(self.context.work)
        checks = [(one.stage, one.checked, one.wrong) for one in Rulings(read_journal(work.path)).errors()]
        return [[one.key for one in work.read_summaries().values() if one.stage != self.name], checks]


_MARK, _CARD = "curation.json", "README.md"


def _without_paths(one: StageSummary) -> dict[str, Any]:
    """A stage's summary for publication: actions and decisions, without paths."""
    settings = {name: value for name, value in one.settings.items() if name not in HIDDEN}
    return {"stage": one.stage, "settings": settings, "counts": to_builtins(one.counts), "not_covered": one.not_covered}


def _write_splits(drafts: Iterator[Draft], folder: Path) -> set[str]:
    """Write the cases by split, without the columns that only curation needs."""
    files: dict[str, BinaryIO] = {}
    with ExitStack() as opened:
        for draft in drafts:
            split = draft.notes.split or "test"
            if split not in files:
                files[split] = opened.enter_context((folder / f"{split}.jsonl").open("wb"))
            files[split].write(encode_json(row_from_case(_published(draft))) + b"\n")
    return set(files)


def _published(draft: Draft) -> Case:
    """The case with the columns that a user of it may need."""
    notes = draft.notes
    names = notes.aliases.get(draft.gold) or notes.aliases.get(notes.diagnosis, ())
    extra = {
        "source": notes.source,
        SOURCE_ID: notes.source_id,
        "licence": notes.licence,
        "answer_aliases": list(names),
    }
    return replace(draft.case, extra=draft.case.extra | {name: value for name, value in extra.items() if value})


def _probe(benchmark: Benchmark) -> dict[str, str]:
    """The accuracy of the longest option, the most frequent letter, and guessers trained on other cases."""
    from medthink.baselines.baseline import longest_letter
    from medthink.baselines.guesser import cross_validated

    cases = list(benchmark)
    if len(cases) < FEWEST_FOR_GUESSERS:
        return {}
    letters = {case.id: case.reference.answer for case in cases}
    guesses = {
        "longest option": {case.id: longest_letter(case.question) for case in cases},
        "guesser on options": {one.case_id: one.letter for one in cross_validated(cases, "options")},
        "guesser on history and options": {one.case_id: one.letter for one in cross_validated(cases, "question")},
    }
    found = {
        name: wilson(sum(letter == letters[case] for case, letter in said.items()), len(said))
        for name, said in guesses.items()
    }
    return {name: as_rate(one.value, one.low, one.high) for name, one in found.items() if isinstance(one, Estimate)}


STAGE = ExportStage
