"""What judges said of the runs: steps, discussions and findings, seat by seat, with what is not judged beside it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medthink.core.markup import Markup, fold, tag
from medthink.judge.agreements import Agreements, hide_readers, judge_validity, read_agreement
from medthink.judge.judged import JudgedScores, load_judged, score_judged
from medthink.judge.judgement import JUDGEMENTS_FILE, name_seats
from medthink.judge.panel import PANEL
from medthink.judge.scores import Discussions, Findings, StepScores
from medthink.report.entries import Entry
from medthink.report.figures.judged import discussion_drawing, profile_drawing
from medthink.report.figures.style import Drawing, figure_markup
from medthink.report.judged_tables import (
    coverage_table,
    discussion_slices_table,
    discussions_table,
    finding_slices_table,
    findings_table,
    first_errors_table,
    soundness_table,
    step_slices_table,
    steps_table,
)
from medthink.report.seated import Scored, Seated, share
from medthink.report.tables import Table, table_markup
from medthink.scoring.scores import number, percent
from medthink.scoring.slices import slice_values

_WIRING = "A seat marked “wiring check” is the embedded judge: it shows that the path works and judges nobody."
_AGREEMENT = (
    "A number is worth as much as its judge. Beside each stands κ (of 0–2 scores, weighted by squares) of the judge "
    "with what most readers say, or with each reader, its interval, and the number of units that both judged. "
    "Where one label prevails κ misleads, and AC1 is given too."
)
_SOUND = (
    "An answer may be right for the wrong reasons. A rationale is sound when no step is wrong; an answer without a "
    "rationale is not sound, and what is unjudged is left out."
)


class Judged(NamedTuple):
    """A judged run with its scores, and how far its judges agree with readers where that was measured.

    `is_outdated` says that it was measured of other judgements than these.
    """

    entry: Entry
    scores: JudgedScores
    agreements: Agreements | None
    is_outdated: bool


class _Seats(NamedTuple):
    steps: list[Seated[StepScores]]
    discussions: list[Seated[Discussions]]
    findings: list[Seated[Findings]]


def score_judgements(entries: Sequence[Entry]) -> list[Judged]:
    """The runs that have been judged, with what their judgements add up to, slice by slice too."""
    found = (entry for entry in entries if (entry.path / JUDGEMENTS_FILE).is_file())
    return [_open(entry) for entry in found]


def judged_markup(judged: Sequence[Judged]) -> Iterator[Markup]:
    """Steps, discussions and findings, then what was not judged and how far judges agree with readers."""
    seats = _Seats(
        steps=[seated for run in judged for seated in _seat(run, run.scores.steps)],
        discussions=[seated for run in judged for seated in _seat(run, run.scores.discussions)],
        findings=[seated for run in judged for seated in _seat(run, run.scores.findings)],
    )
    if any(seated.scores.is_wiring_check for kind in seats for seated in kind):
        yield tag("p", _WIRING, class_="soft")
    yield tag("p", _AGREEMENT, class_="soft")
    if seats.steps:
        yield from _steps_markup(seats.steps)
    if seats.discussions:
        yield from _discussions_markup(seats.discussions)
    if seats.findings:
        yield from _headed("Findings and summaries", findings_table(seats.findings))
        yield from _folds((one.title, finding_slices_table(one)) for one in seats.findings)
    yield from _headed("Judged and unjudged", _coverage(seats))
    yield from _headed("Judges among themselves", _disagreement_table(judged))
    yield from _headed("How far the judges agree with readers", _agreement_table(judged))


def _open(entry: Entry) -> Judged:
    slices = {number: slice_values(case) for number, case in entry.material.cases.items()}
    run = load_judged(entry.path, entry.material.cases)
    agreements = read_agreement(entry.path)
    if agreements is not None and agreements.is_outdated(run.judgements):
        return Judged(entry, score_judged(run, slices), None, is_outdated=True)
    return Judged(entry, score_judged(run, slices), agreements and hide_readers(agreements), is_outdated=False)


def _seat(run: Judged, found: Sequence[Scored]) -> list[Seated[Scored]]:
    """The seats under the names by which `medthink agree` knows them: of those that came to a verdict."""
    names = name_seats(one.seat for one in found if one.coverage.judged and one.seat.judge != PANEL)
    return [
        Seated(run.entry.label, names.get(one.seat, one.label), one, run.agreements, run.is_outdated) for one in found
    ]


def _steps_markup(seats: list[Seated[StepScores]]) -> Iterator[Markup]:
    yield from _headed("Steps of the reasoning", steps_table(seats))
    yield from _headed("Right for the right reasons", soundness_table(seats))
    yield tag("p", _SOUND, class_="soft")
    yield from _headed("Where reasoning first goes wrong", first_errors_table(seats))
    yield tag("h3", "Types of error")
    yield _figures(profile_drawing(one, place) for place, one in enumerate(seats, 1) if one.scores.steps)
    yield from _folds((one.title, step_slices_table(one)) for one in seats)


def _discussions_markup(seats: list[Seated[Discussions]]) -> Iterator[Markup]:
    yield from _headed("Discussions", discussions_table(seats))
    yield _figures(discussion_drawing(one, place) for place, one in enumerate(seats, 1) if one.scores.sentences)
    yield from _folds((one.title, discussion_slices_table(one)) for one in seats)


def _headed(heading: str, table: Table) -> Iterator[Markup]:
    if table.rows:
        yield tag("h3", heading)
        yield table_markup(table, name=f"{heading}, judged")


def _figures(drawings: Iterator[Drawing]) -> Markup:
    return tag("div", *(figure_markup(drawing, prefix="judged") for drawing in drawings), class_="figures")


def _folds(slices: Iterator[tuple[str, Table]]) -> Iterator[Markup]:
    for title, table in slices:
        if table.rows:
            yield fold(f"By slice: {title}", table_markup(table, name=f"By slice: {title}"))


def _coverage(seats: _Seats) -> Table:
    return coverage_table(
        [
            *(("steps", one) for one in seats.steps),
            *(("discussions", one) for one in seats.discussions),
            *(("findings", one) for one in seats.findings),
        ]
    )


def _disagreement_table(judged: Sequence[Judged]) -> Table:
    rows = tuple(
        (run.entry.label, what, share(measured)) for run in judged for what, measured in run.scores.disagreement.items()
    )
    return Table(("Run", "Of", "Pairs of judges that differ over a unit"), rows, frozenset({2}))


def _agreement_table(judged: Sequence[Judged]) -> Table:
    rows = []
    for run, agreements in ((run, run.agreements) for run in judged if run.agreements):
        judges = dict.fromkeys(pair.b for pair in agreements.pairs if pair.kind == "reader–judge")
        for pair in (pair for judge in judges for pair in judge_validity(agreements, judge)):
            found = pair.nominal
            cells = (percent(found.percent), number(found.kappa), number(found.ac1))
            rows.append((run.entry.label, pair.b, pair.a, pair.aspect, f"{found.n:,}", *cells))
    columns = ("Run", "Judge", "Readers", "On", "n", "Same label", "κ", "AC1")
    return Table(columns, tuple(rows), frozenset(range(4, len(columns))), frozenset({1}))
