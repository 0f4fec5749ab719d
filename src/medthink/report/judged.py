"""What judges said of the runs: steps, discussions and findings, seat by seat, with what is not judged beside it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medthink.judge.agreeing import Agreements, judge_validity
from medthink.judge.agreement_of_run import read_agreement
from medthink.judge.judged import JudgedScores, load_judged, score_judged
from medthink.judge.judgement import JUDGEMENTS_FILE
from medthink.judge.scores import Coverage, Discussions, Findings, StepScores
from medthink.report.entries import Entry
from medthink.report.markup import Markup, tag
from medthink.report.tables import Table, table_markup
from medthink.scoring.scores import number, percent
from medthink.stats.estimate import Estimate, Measured

_WIRING = "A seat marked “wiring check” is the embedded judge: it shows that the path works and judges nobody."


class Judged(NamedTuple):
    """A judged run with its scores, and how far its judges agree with readers where that was measured."""

    entry: Entry
    scores: JudgedScores
    agreements: Agreements | None


def score_judgements(entries: Sequence[Entry]) -> list[Judged]:
    """The runs that have been judged, with what their judgements add up to."""
    found = (entry for entry in entries if (entry.path / JUDGEMENTS_FILE).is_file())
    return [
        Judged(
            entry,
            score_judged(load_judged(entry.path, entry.material.cases), {}),
            read_agreement(entry.path),
        )
        for entry in found
    ]


def judged_markup(judged: Sequence[Judged]) -> Iterator[Markup]:
    """A table for each kind of thing judged."""
    tables = (
        ("Steps of the reasoning", _steps_table(judged)),
        ("Discussions", _discussions_table(judged)),
        ("Findings and summaries", _findings_table(judged)),
        ("How far the judges agree with readers", _agreement_table(judged)),
    )
    for heading, table in tables:
        if table.rows:
            yield tag("h3", heading)
            yield table_markup(table, name=f"{heading}, judged")
    if any(one.is_wiring_check for run in judged for one in _seats(run.scores)):
        yield tag("p", _WIRING, class_="soft")


def _seats(scores: JudgedScores) -> tuple[StepScores | Discussions | Findings, ...]:
    return (*scores.steps, *scores.discussions, *scores.findings)


def _steps_table(judged: Sequence[Judged]) -> Table:
    rows = tuple(
        (
            run.entry.label,
            one.label,
            _coverage(one.coverage),
            f"{one.steps:,}",
            percent(one.errors),
            percent(one.critical_errors),
            percent(one.sound_if_right.every_step),
        )
        for run in judged
        for one in run.scores.steps
    )
    columns = ("Run", "Judge", "Judged", "Steps", "Wrong steps", "Wrong critical steps", "Right answers, sound reasons")
    return Table(columns, rows, frozenset(range(2, len(columns))))


def _discussions_table(judged: Sequence[Judged]) -> Table:
    rows = tuple(
        (
            run.entry.label,
            one.label,
            _coverage(one.coverage),
            f"{one.sentences:,}",
            percent(one.labels["correct"]),
            percent(one.labels["incorrect"]),
            _mean(one.total),
        )
        for run in judged
        for one in run.scores.discussions
    )
    columns = ("Run", "Judge", "Judged", "Sentences", "Correct", "Incorrect", "Education value (0–10)")
    return Table(columns, rows, frozenset(range(2, len(columns))))


def _findings_table(judged: Sequence[Judged]) -> Table:
    rows = tuple(
        (
            run.entry.label,
            one.label,
            _coverage(one.coverage),
            f"{one.statements:,}",
            percent(one.images["supported"]),
            percent(one.images["contradicted"]),
            percent(one.summary["supported"]),
        )
        for run in judged
        for one in run.scores.findings
    )
    columns = ("Run", "Judge", "Judged", "Statements", "Images: supported", "contradicted", "Summary: supported")
    return Table(columns, rows, frozenset(range(2, len(columns))))


def _agreement_table(judged: Sequence[Judged]) -> Table:
    rows = []
    for run, agreements in ((run, run.agreements) for run in judged if run.agreements):
        judges = dict.fromkeys(pair.b for pair in agreements.pairs if pair.kind == "reader–judge")
        for pair in (pair for judge in judges for pair in judge_validity(agreements, judge)):
            found = pair.nominal
            cells = (percent(found.percent), number(found.kappa), number(found.ac1))
            rows.append((run.entry.label, pair.b, pair.a, pair.aspect, f"{found.n:,}", *cells))
    columns = ("Run", "Judge", "Readers", "On", "n", "Same label", "κ", "AC1")
    return Table(columns, tuple(rows), frozenset(range(4, len(columns))))


def _coverage(coverage: Coverage) -> str:
    return f"{coverage.judged:,} of {coverage.due:,}{'' if coverage.is_complete else ' (incomplete)'}"


def _mean(measured: Measured) -> str:
    if isinstance(measured, Estimate):
        return f"{measured.value:.1f} ({measured.low:.1f}–{measured.high:.1f})"
    return "–" if measured.value is None else f"{measured.value:.1f} (no interval)"
