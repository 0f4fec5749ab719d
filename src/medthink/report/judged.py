"""Judges' verdicts on the runs, by kind and judge, with unjudged items."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from medthink.cases.slices import slice_cases
from medthink.core.digest import seed_from
from medthink.core.markup import Markup, Table, fold_section, tag
from medthink.judge.exam.results import EXAMS_FILE, ExamResult, read_results
from medthink.judge.judged import JUDGEMENTS_FILE, JudgedScores, load_judged, score_judged
from medthink.judge.judgement import JudgeConfig, name_judges
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.preference import other_number
from medthink.judge.scores import JudgeConfigScores
from medthink.readers.agreement import RunAgreement, read_agreement
from medthink.report.figures.judged import discussion_drawing, profile_drawing
from medthink.report.figures.style import FigureSpec, figure_markup
from medthink.report.judged_tables import (
    JudgeRow,
    coverage_table,
    edits_table,
    exams_table,
    judge_bias_table,
    judge_rows,
    kind_tables,
    shortfall_lines,
    slices_table,
)
from medthink.report.runs import ReportRun
from medthink.report.tables import table_markup
from medthink.runs.run import Run
from medthink.scoring.scores import rate_text, value_text
from medthink.stats import Game, bradley_terry
from medthink.stats.estimate import rank_range, rate_cell

_COLUMNS = ("Judge", "Run", "Rank", "Beats an average run", "Pairs")
_RANKS = (
    "Two runs are separated by the cases in which both were judged, each counting once; ranks are ranges, as for "
    "accuracy. “Beats an average run” is that of the Bradley–Terry model over the runs of the table."
)


def ranks_tables(judged: "Sequence[JudgedReportRun]") -> dict[str, Table]:
    """Every judge's ranking of the runs that it compared, by heading; runs not joined by a chain of pairs apart."""
    parts: list[list[tuple[str, ...]]] = []
    for judge, name in _judges(judged).items():
        for number, rows in enumerate(_rank(judge, name, judged)):
            parts += [[]] * (number == len(parts))
            parts[number] = [*parts[number], *rows]
    return {
        f"Preference ranks, not compared with those above ({number})" if number else "Preference ranks": Table(
            _COLUMNS, tuple(rows), frozenset({2, 3, 4}), frozenset({0})
        )
        for number, rows in enumerate(parts)
    }


def _judges(judged: "Sequence[JudgedReportRun]") -> dict[JudgeConfig, str]:
    """The judges that compared runs, in the order of their distinct names; two may have one label."""
    labels = {one.seat: one.label for run in judged for one in run.scores["preference"] if one.contests}
    return dict(sorted(name_judges(labels).items(), key=lambda named: named[1]))


def _rank(judge: JudgeConfig, name: str, judged: "Sequence[JudgedReportRun]") -> Iterator[list[tuple[str, ...]]]:
    names: dict[int, str] = {}
    said: dict[tuple[int, int, int], list[float]] = {}
    own = {other_number(Run.open(run.entry.path).manifest.digest()): run for run in judged}
    for number, run in own.items():
        for one in (one for one in run.scores["preference"] if one.seat == judge):
            for other, contest in one.contests.items():
                names |= {number: run.entry.label, other: own[other].entry.label if other in own else contest.against}
                for case, score in contest.scores.items():
                    # A pair may have been judged from the side of either run: that is one game all the same.
                    is_first = number < other
                    pair = (number, other, case) if is_first else (other, number, case)
                    said.setdefault(pair, []).append(score if is_first else 1 - score)
    games = [Game(a, b, sum(scores) / len(scores), case) for (a, b, case), scores in sorted(said.items())]
    rng = np.random.default_rng(seed_from("preference", *sorted({game.case for game in games})))
    for part in bradley_terry(games, rng=rng):
        yield [
            (
                name,
                names[one.contestant],
                rank_range(one.rank, one.worst_rank),
                rate_cell(one.beats_average),
                f"{one.games:,}",
            )
            for one in part
        ]


_WIRING = (
    "A judge marked “smoke test” is the embedded one: it only shows that judging works; its verdicts say "
    "nothing about the run."
)
_AGREEMENT = (
    "Every number depends on its judge. Next to each is κ (with quadratic weights for 0–2 scores) between the "
    "judge and the readers' majority, or each reader, with its interval and the number of units both judged. "
    "If one label prevails, κ is misleading, and AC1 is given too. The exam shows the share of known errors in expert "
    "sentences that the judge finds, and the share of true sentences it accepts; the numbers of a judge below "
    "the floor are grey, and in no figure."
)
# Kinds that have a figure, the drawing function, and the heading.
_DRAWINGS: dict[str, tuple[str, Callable[[JudgeRow[Any], int], FigureSpec]]] = {
    "steps": ("Types of error", profile_drawing),
    "discussion": ("Sections and dimensions", discussion_drawing),
}


class JudgedReportRun(NamedTuple):
    """A judged run with its scores, and its judges' agreement with readers, if measured.

    `is_outdated` says that it was measured on other judgements.
    """

    entry: ReportRun
    scores: JudgedScores
    agreements: RunAgreement | None
    is_outdated: bool
    exams: tuple[ExamResult, ...] = ()


def score_judgements(entries: Sequence[ReportRun]) -> list[JudgedReportRun]:
    """The judged runs with their scores, also by slice."""
    found = (entry for entry in entries if (entry.path / JUDGEMENTS_FILE).is_file())
    return [_open(entry) for entry in found]


def judged_markup(judged: Sequence[JudgedReportRun]) -> Iterator[Markup]:
    """Every kind, then unjudged items and the judges' agreement with readers."""
    kinds = {what: [seated for run in judged for seated in _seat(run, run.scores[what])] for what in KINDS}
    if any(seated.scores.is_smoke_test for seats in kinds.values() for seated in seats):
        yield tag("p", _WIRING, class_="soft")
    yield tag("p", _AGREEMENT, class_="soft")
    for what, seats in kinds.items():
        yield from _kind_markup(what, seats)
    coverage = coverage_table((KINDS[what].plural, one) for what, seats in kinds.items() for one in seats)
    ranks = ranks_tables(judged)
    for heading, table in ranks.items():
        yield from _headed(heading, table)
    if ranks:
        yield tag("p", _RANKS, class_="soft")
    yield from _headed("Judged and unjudged", coverage)
    yield from _headed("Agreement between judges", _disagreement_table(judged))
    yield from _headed("Agreement of judges with readers", _agreement_table(judged))
    yield from _exam_markup({(one.judge, repr(one.setting)): one for run in judged for one in run.exams}.values())


def _exam_markup(results: Iterable[ExamResult]) -> Iterator[Markup]:
    found = list(results)
    yield from _headed("Exams of the judges", exams_table(found))
    yield from (tag("p", line, class_="soft") for line in shortfall_lines(found))
    yield from _headed("Biases of the judges", judge_bias_table(found))
    edits = edits_table(found)
    if edits.rows:
        yield fold_section("Errors found by edit", table_markup(edits, name="Errors found by edit"))


def _open(entry: ReportRun) -> JudgedReportRun:
    slices = slice_cases(entry.material.cases.values())
    run = load_judged(entry.path, entry.material.cases)
    agreements = read_agreement(entry.path)
    is_outdated = agreements is not None and agreements.is_outdated(run.judgements)
    shown = None if agreements is None or is_outdated else agreements.without_names()
    exams = read_results(entry.path / EXAMS_FILE)
    return JudgedReportRun(entry, score_judged(run, slices), shown, is_outdated=is_outdated, exams=exams)


def _seat(run: JudgedReportRun, found: Sequence[JudgeConfigScores]) -> list[JudgeRow[Any]]:
    return judge_rows(run.entry.label, found, run.agreements, is_outdated=run.is_outdated, exams=run.exams)


def _kind_markup(what: str, seats: Sequence[JudgeRow[Any]]) -> Iterator[Markup]:
    for heading, (note, table) in kind_tables(what, seats).items():
        yield from _headed(heading, table)
        if note:
            yield tag("p", note, class_="soft")
    drawn = [
        (place, one)
        for place, one in enumerate(seats, 1)
        if one.scores.coverage.judged and not one.is_below_floor(what)
    ]
    if what in _DRAWINGS and drawn:
        heading, draw = _DRAWINGS[what]
        yield tag("h3", heading)
        drawings = (draw(one, place) for place, one in drawn)
        yield tag("div", *(figure_markup(drawing, prefix="judged") for drawing in drawings), class_="figures")
    for one in seats:
        slices, title = slices_table(what, one), f"By slice: {one.title}"
        if slices.rows:
            yield fold_section(title, table_markup(slices, name=title))


def _headed(heading: str, table: Table) -> Iterator[Markup]:
    if table.rows:
        yield tag("h3", heading)
        yield table_markup(table, name=f"{heading}, judged")


def _disagreement_table(judged: Sequence[JudgedReportRun]) -> Table:
    rows = tuple(
        (run.entry.label, what, rate_cell(measured))
        for run in judged
        for what, measured in run.scores.disagreement.items()
    )
    return Table(("Run", "Of", "Pairs of judges that differ on a unit"), rows, frozenset({2}))


def _agreement_table(judged: Sequence[JudgedReportRun]) -> Table:
    rows = []
    for run, agreements in ((run, run.agreements) for run in judged if run.agreements):
        judges = dict.fromkeys(pair.b for pair in agreements.pairs if pair.kind == "reader–judge")
        for pair in (pair for judge in judges for pair in agreements.validity(judge)):
            found = pair.nominal
            cells = (rate_text(found.percent), value_text(found.kappa), value_text(found.ac1))
            rows.append((run.entry.label, pair.b, pair.a, pair.aspect, f"{found.n:,}", *cells))
    columns = ("Run", "Judge", "Readers", "On", "n", "Same label", "κ", "AC1")
    return Table(columns, tuple(rows), frozenset(range(4, len(columns))), frozenset({1}))
