"""What judges said of the runs: steps, discussions and findings, seat by seat, with what is not judged beside it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medthink.judge.judged import JudgedScores, load_judged, score_judged
from medthink.judge.judgement import JUDGEMENTS_FILE
from medthink.judge.scores import Coverage, Discussions, Findings, StepScores
from medthink.report.entries import Entry
from medthink.report.markup import Markup, tag
from medthink.report.tables import Table, table_markup
from medthink.scoring.scores import percent
from medthink.stats.estimate import Estimate, Measured

_WIRING = "A seat marked “wiring check” is the embedded judge: it shows that the path works and judges nobody."


class Judged(NamedTuple):
    """A judged run with its scores."""

    entry: Entry
    scores: JudgedScores


def score_judgements(entries: Sequence[Entry]) -> list[Judged]:
    """The runs that have been judged, with what their judgements add up to."""
    found = (entry for entry in entries if (entry.path / JUDGEMENTS_FILE).is_file())
    return [Judged(entry, score_judged(load_judged(entry.path, entry.material.cases), {})) for entry in found]


def judged_markup(judged: Sequence[Judged]) -> Iterator[Markup]:
    """A table for each kind of thing judged."""
    tables = (
        ("Steps of the reasoning", _steps_table(judged)),
        ("Discussions", _discussions_table(judged)),
        ("Findings and summaries", _findings_table(judged)),
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


def _coverage(coverage: Coverage) -> str:
    return f"{coverage.judged:,} of {coverage.due:,}{'' if coverage.is_complete else ' (incomplete)'}"


def _mean(measured: Measured) -> str:
    if isinstance(measured, Estimate):
        return f"{measured.value:.1f} ({measured.low:.1f}–{measured.high:.1f})"
    return "–" if measured.value is None else f"{measured.value:.1f} (no interval)"
