"""`medthink exam`: whether a judge finds known errors and accepts true sentences."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.flags import (
    RUN,
    count_flag,
    data_flag,
    dry_run_flag,
    json_flag,
    judges_flag,
    out_folder,
    quiet_flag,
    read_transport,
    say_jobs,
    seed_flag,
    sending_flags,
    split_flag,
    verbose_flag,
)
from medthink.cli.judge import hearing_flags, kinds_flag, read_hearing, read_kinds
from medthink.cli.output import console, print_json, print_line, print_table, show_estimate
from medthink.core.errors import Declined, OutsideError, PartlyFailed, UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.judge.exam.results import ExamResult, KindGrades, PairGrades
    from medthink.judge.exam.run import ExamSession, ExamSpec
    from medthink.runs.run import Run


@click.command()
@click.argument("sources", nargs=-1, type=RUN, metavar="[DATA|RUN]...")
@judges_flag
@kinds_flag
@out_folder.but(required=False, default="exam", show_default=True)
@count_flag("texts per kind of edit, as far as the benchmark provides them.  [default: 40]")
@seed_flag.but(default=None)
@split_flag
@data_flag
@hearing_flags
@sending_flags
@dry_run_flag
@quiet_flag
@verbose_flag
@json_flag
def exam(sources: tuple[Path, ...], as_json: bool, dry_run: bool, out: Path, **flags: Any) -> None:
    """Examine judges on expert sentences with known errors.

    The sentences are those of DATA, a benchmark, or of the benchmark of a RUN: some made false by one edit each (side,
    negation, size, unit, position, signal, direction, level, modality, option named, invented or deleted finding), some
    reworded, some untouched. Shown are the errors found and the true sentences accepted, with intervals, and whether
    the judge is biased by order, length or its own wording. The result is stored in FOLDER/results.json and, for every
    RUN given, next to its judgements: reports then show it with each judged number.

    Run the same command again to continue; an exam already in FOLDER needs no DATA. A judge below the floor
    (docs/judging.md) ends with code 1.

    \b
    Example: medthink exam bench/ --judge baseline/rules
    Example: medthink exam runs/qwen --judge openai/gpt-5.2 --max-usd 10
    Example: medthink exam --judge google/gemini-3-pro
    """
    from medthink.cli.output import follow
    from medthink.judge.asking import BATCHES
    from medthink.judge.exam.results import EXAMS_FILE, keep_results
    from medthink.judge.exam.run import rehearse_exam, run_exam

    transport = read_transport(flags)
    order, runs = _read_order(sources, out, flags)
    if dry_run:
        show_estimate(f"exam of {', '.join(order.judges)}", rehearse_exam(order, transport=transport), as_json=as_json)
        return
    _refuse_others(runs, order)
    with follow(out) as progress:
        session = run_exam(order, transport=transport, listener=progress)
    for warning in session.warnings:
        print_line(f"Caution: {warning}", stderr=True)
    for run in runs:
        keep_results(run.path / EXAMS_FILE, session.results)
    _show(session, out, as_json=as_json)
    say_jobs(session.jobs, out / BATCHES)
    _end(session)


def _read_order(sources: Sequence[Path], out: Path, flags: dict[str, Any]) -> "tuple[ExamSpec, list[Run]]":
    from medthink.judge.exam.make import ExamPlan
    from medthink.judge.exam.run import DEFAULT_KINDS, ExamSpec
    from medthink.runs.run import Run

    runs = [Run.open(path) for path in sources if (path / "run.json").is_file()]
    named = [path for path in sources if not (path / "run.json").is_file()]
    moved = flags.pop("data")
    if len(named) > 1:
        raise UsageError(f"an exam is made from one benchmark, not from {len(named)}", remedy="name one DATA")
    benchmark = named[0] if named else runs[0].benchmark_path(moved) if runs else moved
    split = runs[0].manifest.selection.split if runs else flags["split"]
    flags.pop("split")
    given = {"items": flags.pop("count"), "seed": flags.pop("seed")}
    given = {name: value for name, value in given.items() if value is not None}
    plan = ExamPlan(**given) if given else None
    what = read_kinds(flags.pop("kinds")) or DEFAULT_KINDS
    order = ExamSpec(out=out, benchmark=benchmark, split=split, plan=plan, what=what, **read_hearing(flags))
    return order, runs


def _refuse_others(runs: "Sequence[Run]", order: "ExamSpec") -> None:
    """Make or open the exam, and refuse runs of another benchmark before anything is asked."""
    from medthink.judge.exam.run import open_exam

    for run in runs:
        manifest, _, _ = open_exam(order.out, order.benchmark, split=order.split, plan=order.plan)
        if run.manifest.text_fingerprint != manifest.fingerprint:
            raise UsageError(
                f"{run.path} and the exam are from different benchmarks", remedy="name another --out for it"
            )


def _show(session: "ExamSession", out: Path, *, as_json: bool) -> None:
    from msgspec import to_builtins

    if as_json:
        results = [to_builtins(one) | {"shortfalls": to_builtins(one.shortfalls)} for one in session.results]
        print_json({"exam": str(out), "calls_made_now": session.calls_made, "results": results})
        return
    for one in session.results:
        show_result(one)
    print_line(f"{count_of(session.calls_made, 'call')} made in this session; exam: {out}")


def _end(session: "ExamSession") -> None:
    """Exit with the code of the result."""
    if session.stopped_by is not None:
        raise session.stopped_by
    if session.failed and not any(marks.judged for one in session.results for marks in one.kinds.values()):
        raise OutsideError(
            f"no judge answered: {session.failed[0].detail}", remedy="fix the cause, then run the same command again"
        )
    if session.failed:
        raise PartlyFailed(
            f"{len(session.failed)} texts failed, such as case {session.failed[0].case}: {session.failed[0].detail}",
            remedy="fix the cause, then run the same command again: it only makes the missing calls",
        )
    below = [one.judge for one in session.results if one.shortfalls and not one.is_smoke_test]
    if below:
        raise Declined(
            f"below the floor: {', '.join(below)}",
            remedy="its numbers are marked; choose another judge, or change its settings",
        )


_APART = " (apart)"


def show_result(result: "ExamResult") -> None:
    """Print what a judge found and accepted, its biases, and whether it is below the floor."""
    from medthink.judge.judgement import JudgeConfig

    out = console()
    label = JudgeConfig(judge=result.judge, setting=result.setting, prompt="").label()
    for what, marks in result.kinds.items():
        out.print(print_table(f"Exam in {what} · {label}", ("", "share right", "units"), _rows(marks), right=[2]))
        _show_floor(marks.shortfalls())
        out.print()
    if result.pairs is not None:
        out.print(print_table(f"Exam in preference · {label}", ("", ""), _pair_rows(result.pairs)))
        out.print()


def _show_floor(shortfalls: tuple[str, ...]) -> None:
    out = console()
    if not shortfalls:
        out.print("Above the floor.")
        return
    out.print("BELOW THE FLOOR:")
    for reason in shortfalls:
        out.print(f"  {reason}")


def _rows(marks: "KindGrades") -> Iterator[tuple[str, str, str]]:
    from medthink.judge.edits import is_counted
    from medthink.scoring.scores import rate_text, value_text

    yield "sheets judged", f"{marks.judged:,} of {marks.asked:,}", ""
    for name, one in marks.found.items():
        apart = "" if is_counted(name) else _APART
        yield f"finds {name}{apart}", rate_text(one), f"{one.n:,}"
    yield "finds errors, all counted edits", rate_text(marks.sensitivity), f"{marks.sensitivity.n:,}"
    yield f"right: the {marks.guesser_name} guesser", rate_text(marks.guesser), f"{marks.guesser.n:,}"
    for name, one in marks.accepted.items():
        yield f"accepts {name}", rate_text(one), f"{one.n:,}"
    for name, one in (
        ("same label when asked again", marks.same_again),
        ("same label in reverse order", marks.same_reversed),
    ):
        if one.value is not None:
            yield name, rate_text(one), f"{one.n:,}"
    if marks.kappa_again.value is not None:
        yield "κ with itself", value_text(marks.kappa_again), f"{marks.kappa_again.n:,}"


def _pair_rows(marks: "PairGrades") -> Iterator[tuple[str, str]]:
    from medthink.scoring.scores import rate_text

    yield "pairs judged in both orders", f"{marks.pairs:,}"
    yield "same preference with the order swapped", rate_text(marks.same_swapped)
    yield "first position preferred (50 % is fair)", rate_text(marks.first)
    yield "longer text preferred (50 % is fair)", rate_text(marks.longer)
    yield "own wording preferred (50 % is fair)", rate_text(marks.own)
    if marks.own_by_others.value is not None:
        yield "the same wording, by other judges", rate_text(marks.own_by_others)
