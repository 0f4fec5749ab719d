"""What `medthink judge exam` shows about a judge."""

from collections.abc import Iterator

from medthink.cli.show import console, table
from medthink.judge.edits import is_counted
from medthink.judge.exam.results import ExamResult, KindMarks, PairMarks
from medthink.judge.judgement import Seat
from medthink.scoring.scores import number, percent

_APART = " (apart)"


def show_result(result: ExamResult) -> None:
    """Print what a judge found and accepted, its biases, and whether it is below the floor."""
    out = console()
    label = Seat(judge=result.judge, setting=result.setting, prompt="").label()
    for what, marks in result.kinds.items():
        out.print(table(f"Exam in {what} · {label}", ("", "share right", "units"), _rows(marks), right=[2]))
        _show_floor(marks.shortfalls())
        out.print()
    if result.pairs is not None:
        out.print(table(f"Exam in preference · {label}", ("", ""), _pair_rows(result.pairs)))
        out.print()


def _show_floor(shortfalls: tuple[str, ...]) -> None:
    out = console()
    if not shortfalls:
        out.print("Above the floor.")
        return
    out.print("BELOW THE FLOOR:")
    for reason in shortfalls:
        out.print(f"  {reason}")


def _rows(marks: KindMarks) -> Iterator[tuple[str, str, str]]:
    yield "sheets judged", f"{marks.judged:,} of {marks.asked:,}", ""
    for name, one in marks.found.items():
        apart = "" if is_counted(name) else _APART
        yield f"finds {name}{apart}", percent(one), f"{one.n:,}"
    yield "finds errors, all counted edits", percent(marks.sensitivity), f"{marks.sensitivity.n:,}"
    for name, one in marks.accepted.items():
        yield f"accepts {name}", percent(one), f"{one.n:,}"
    for name, one in (
        ("same label when asked again", marks.same_again),
        ("same label in reverse order", marks.same_reversed),
    ):
        if one.value is not None:
            yield name, percent(one), f"{one.n:,}"
    if marks.kappa_again.value is not None:
        yield "κ with itself", number(marks.kappa_again), f"{marks.kappa_again.n:,}"


def _pair_rows(marks: PairMarks) -> Iterator[tuple[str, str]]:
    yield "pairs judged in both orders", f"{marks.pairs:,}"
    yield "same preference with the order swapped", percent(marks.same_swapped)
    yield "first position preferred (50 % is fair)", percent(marks.first)
    yield "longer text preferred (50 % is fair)", percent(marks.longer)
    yield "own wording preferred (50 % is fair)", percent(marks.own)
    if marks.own_by_others.value is not None:
        yield "the same wording, by other judges", percent(marks.own_by_others)
