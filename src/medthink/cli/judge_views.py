"""What `medthink judge` shows: the scores of the judgements."""

from collections.abc import Iterable

from medthink.cli.show import console, say, table
from medthink.judge.coverage import Coverage
from medthink.judge.exam.results import EXAMS_FILE, read_results
from medthink.judge.judged import JudgedRun, JudgedScores
from medthink.judge.kinds import KINDS
from medthink.judge.scores import ScoreCell, ScoreTable, SeatScores
from medthink.readers.agreement import read_agreement
from medthink.report.seated import Seated, seat_scores
from medthink.scoring.scores import number, percent


def show_scores(scores: JudgedScores, run: JudgedRun) -> None:
    """Print the tables of every seat, kind by kind, with what is known about the judge."""
    agreements = read_agreement(run.path)
    is_outdated = agreements is not None and agreements.is_outdated(run.judgements)
    exams = read_results(run.path / EXAMS_FILE)
    for what, found in scores.kinds.items():
        seats = seat_scores("", found, None if is_outdated else agreements, is_outdated=is_outdated, exams=exams)
        for seat in seats:
            _show_seat(what, seat)
    for what, share in scores.disagreement.items():
        console().print(f"Pairs of judges that differ on a unit of {what}: {percent(share)}")


def show_outdated(run: JudgedRun) -> None:
    """Warn if the agreement was measured on earlier judgements than the run's current ones."""
    agreement = read_agreement(run.path)
    if agreement is not None and agreement.is_outdated(run.judgements):
        say("agreement.json was made from earlier judgements: run medthink agree again", stderr=True)


def _show_seat(what: str, seat: Seated[SeatScores]) -> None:
    scores = seat.scores
    title = f"{KINDS[what].plural.capitalize()} · {scores.label}"
    out = console()
    if not scores.coverage.judged:
        # Nothing was judged, so there is no score to show: only why.
        out.print(table(title, ("", ""), list(_coverage(scores.coverage))))
        out.print()
        return
    first, *others = KINDS[what].tables(scores)
    rows = [
        ("agreement with readers", seat.agreement(*first.aspects)),
        ("judge's exam", seat.exam(what)),
        *_coverage(scores.coverage),
        *_ties(scores.ties),
        *((name, _text(cell)) for name, cell in first.rows[0].items()),
    ]
    out.print(table(title, ("", ""), rows))
    for one in others:
        _show_table(one)
    out.print()


def _show_table(one: ScoreTable) -> None:
    if not one.rows:
        return
    if len(one.rows) == 1:
        rows = [(name, _text(cell)) for name, cell in one.rows[0].items()]
        console().print(table(one.heading, ("", ""), rows))
        return
    cells = [tuple(map(_text, row.values())) for row in one.rows]
    console().print(table(one.heading, tuple(one.rows[0]), cells))


def _text(cell: ScoreCell) -> str:
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    if isinstance(cell.value, str):
        return cell.value
    return percent(cell.value) if cell.digits is None else number(cell.value)


def _coverage(coverage: Coverage) -> Iterable[tuple[str, str]]:
    state = "" if coverage.is_complete else " – INCOMPLETE, not to be published"
    yield "judged", f"{coverage.judged} of {coverage.due}, {percent(coverage.share)}{state}"
    if coverage.unjudged or coverage.missing:
        yield "unjudged", _counts(coverage.unjudged | ({"not asked yet": coverage.missing} if coverage.missing else {}))
    if coverage.absent:
        yield "nothing to judge", str(coverage.absent)
    if coverage.fallback_splits:
        yield "cut by sentences instead", str(coverage.fallback_splits)


def _ties(count: int) -> Iterable[tuple[str, str]]:
    if count:
        yield "units without a majority", str(count)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"
