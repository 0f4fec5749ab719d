"""Pages of studies for their coordinator: the list, the effort of a plan, and the state of a study."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from medthink.core.numbers import as_percent, these_readers
from medthink.readers.agreement import RunAgreement
from medthink.readers.studies.plan import StudyForecast, StudyPlan
from medthink.readers.studies.results import BaselineAccuracy, DriftPart, ReaderProgress
from medthink.readers.studies.setup import Study
from medthink.stats.estimate import mean_cell, rate_cell

# Agreement between readers comes first.
_ORDER = ("reader–reader", "reader–itself", "reader–judge", "judge–judge", "judge–itself")


class RunChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A run that can be read; `problem` says if it cannot be read yet."""

    name: str
    path: str
    model: str
    task: str
    problem: str = ""


_TOKEN = re.compile(r"[\w-]{12}")


class StudyForm(msgspec.Struct, kw_only=True):
    """The form for setting up a study."""

    name: str = ""
    runs: str | list[str] = []
    kinds: str | list[str] = []
    readers: str = ""
    per_case: str = "2"
    cases: str = ""
    modality: str = ""
    again: str = "10"
    planted: str = "5"
    seed: str = "0"
    needs_training: str = ""
    really: str = ""
    token: str = ""

    def __post_init__(self) -> None:
        # One ticked box arrives as a string, several as a list.
        self.runs = [self.runs] if isinstance(self.runs, str) else self.runs
        self.kinds = [self.kinds] if isinstance(self.kinds, str) else self.kinds
        self.token = self.token if _TOKEN.fullmatch(self.token) else ""


class SetUpPage(msgspec.Struct, frozen=True, kw_only=True):
    """The form and, once filled in, the expected effort of the study."""

    form: StudyForm
    runs: tuple[RunChoice, ...]
    kinds: tuple[tuple[str, str], ...]
    modalities: tuple[str, ...]
    problem: str = ""
    forecast: StudyForecast | None = None


class StudyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A study in the list."""

    token: str
    name: str
    made_at: str
    done: int
    total: int
    is_closed: bool


class StudiesPage(msgspec.Struct, frozen=True, kw_only=True):
    """All studies."""

    studies: tuple[StudyRow, ...]


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of a study: progress, pace and planted checks."""

    name: str
    alias: str
    done: int
    total: int
    hours: str
    pace: str
    planted: str
    is_trained: bool
    is_adjudicator: bool


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of two raters on one aspect."""

    raters: str
    kind: str
    aspect: str
    n: int
    agreement: str
    kappa: str
    ac1: str


class StudyPage(msgspec.Struct, frozen=True, kw_only=True):
    """One study for its coordinator."""

    token: str
    name: str
    plan: StudyPlan
    made_at: str
    closed_at: str
    readers: tuple[ReaderRow, ...]
    pairs: tuple[tuple[str, tuple[PairRow, ...]], ...]
    drift: tuple[tuple[str, int, int, str, str], ...]
    baseline: tuple[tuple[str, str], ...]
    disputes: int
    settled: int
    free: tuple[tuple[int, str, str], ...]
    is_still_read: bool = False
    links: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    notice: str = ""
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def make_study_page(
    study: Study,
    progress: Sequence[ReaderProgress],
    agreement: Mapping[str, RunAgreement],
    *,
    drift: Sequence[DriftPart],
    baseline: BaselineAccuracy | None,
    disputes: tuple[int, int],
    free: Sequence[tuple[int, str, str]],
    is_still_read: bool = False,
) -> StudyPage:
    """The current state of the study; `disputes` counts all and the resolved ones."""
    checks = {one.reader: rate_cell(one.right) for found in agreement.values() for one in found.checks}
    return StudyPage(
        token=study.token,
        name=study.plan.name,
        plan=study.plan,
        made_at=study.made_at[:10],
        closed_at=(study.closed_at or "")[:10],
        readers=tuple(_reader_row(one, checks) for one in progress),
        pairs=tuple((run, tuple(_pair_rows(found))) for run, found in agreement.items()),
        drift=tuple(
            (one.reader, one.part, one.units, as_percent(one.held_true), f"{one.seconds_per_unit:.0f} s")
            for one in drift
        ),
        baseline=_baseline_rows(baseline) if baseline else (),
        disputes=disputes[0],
        settled=disputes[1],
        free=tuple(free),
        is_still_read=is_still_read,
    )


def _reader_row(one: ReaderProgress, checks: Mapping[str, str]) -> ReaderRow:
    return ReaderRow(
        name=one.reader.name,
        alias=one.reader.alias,
        done=one.done,
        total=one.total,
        hours=f"{one.hours:.1f}",
        pace="–" if one.seconds_per_unit is None else f"{one.seconds_per_unit:.0f} s",
        planted=checks.get(one.reader.name, "–"),
        is_trained=one.reader.trained_at is not None,
        is_adjudicator=one.reader.is_adjudicator,
    )


def _pair_rows(found: RunAgreement) -> list[PairRow]:
    """Only over all cases: slices are in the exported tables."""
    return [
        PairRow(
            raters=f"{pair.a} and {pair.b}",
            kind=pair.kind,
            aspect=pair.aspect,
            n=pair.nominal.n,
            agreement=rate_cell(pair.nominal.percent),
            kappa=mean_cell(pair.nominal.kappa, 2),
            ac1=mean_cell(pair.nominal.ac1, 2),
        )
        for pair in sorted(found.pairs, key=lambda pair: _ORDER.index(pair.kind))
        if not pair.slicing and not pair.is_smoke_test
    ]


def _baseline_rows(found: BaselineAccuracy) -> tuple[tuple[str, str], ...]:
    rows = [(name, rate_cell(measured)) for name, measured in found.readers.items()]
    return (*rows, *(((f"{these_readers(len(rows))} together", rate_cell(found.together)),) if found.together else ()))
