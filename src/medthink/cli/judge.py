"""`medthink judge`: reasoning, discussions and findings of a run, judged by models."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.flags import (
    RUN,
    Decorated,
    Flag,
    ListOption,
    condition_flag,
    data_flag,
    dry_run_flag,
    json_flag,
    judges_flag,
    put,
    quiet_flag,
    read_terms,
    read_transport,
    repeats_flag,
    say_jobs,
    sending_flags,
    verbose_flag,
)
from medthink.cli.output import console, print_json, print_line, print_table, show_estimate
from medthink.core.errors import Declined, OutsideError, PartlyFailed, UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.judge.judged import JudgedRun, JudgedScores
    from medthink.judge.judgement import Sight
    from medthink.judge.scores import Coverage, JudgeConfigScores, ScoreCell, ScoreTable
    from medthink.judge.session import JudgeSession, JudgeSpec
    from medthink.report.judged_tables import JudgeRow

kinds_flag = Flag(
    "--kinds", cls=ListOption, metavar="KIND,…",
    help="Kinds of judging; by default those of the run's task, in an exam steps, omissions and preference.",
)  # fmt: skip
_HEARING = (
    Flag(
        "--with-images/--without-images", "with_images", default=None,
        help="Whether the judge is shown the images too; default: every judge but the embedded one.",
    ),
    Flag(
        "--evidence", cls=ListOption, metavar="PART,…",
        help="What the judge sees; any of: history, options, captions, findings, discussion, diagnosis; default: all.",
    ),
    *map(condition_flag, ("effort", "temperature", "max_tokens", "use_schema")),
)  # fmt: skip


def hearing_flags(command: Decorated) -> Decorated:
    """Add the flags that say what a judge sees and how it is asked."""
    return put(_HEARING, command)


def read_hearing(flags: dict[str, Any]) -> dict[str, Any]:
    """The fields of `AskingSettings`, taken out of the flags."""
    schema = flags.pop("schema")
    return {
        "sees": _read_sight(flags.pop("evidence"), flags.pop("with_images")),
        "use_schema": schema is None or schema,
        **read_terms(flags),
        **{name: flags.pop(name) for name in ("judges", "effort", "temperature", "max_tokens")},
    }


def _read_sight(evidence: Sequence[str], with_images: bool | None) -> "tuple[Sight, ...] | None":
    """What every judge sees; None leaves it to each judge's default."""
    from medthink.judge.judgement import DEFAULT_SIGHT, in_order, parse_sight

    if not evidence and with_images is None:
        return None
    seen = parse_sight(",".join(evidence)) if evidence else DEFAULT_SIGHT
    return in_order({*seen, *(["images"] if with_images else [])})


def read_kinds(words: Sequence[str]) -> tuple[str, ...] | None:
    """The kinds of judging given, or None; UsageError for unknown ones."""

    from medthink.judge.kinds import KINDS

    if unknown := [word for word in words if word not in KINDS]:
        raise UsageError(f"cannot judge {', '.join(unknown)}", remedy=f"known: {', '.join(KINDS)}")
    return tuple(dict.fromkeys(words)) or None


@click.command()
@click.argument("run", type=RUN)
@judges_flag
@kinds_flag
@click.option(
    "--against", cls=ListOption, type=RUN, metavar="RUN",
    help="Also judge which discussion is better, this run's or RUN's; may be repeated.",
)  # fmt: skip
@repeats_flag
@click.option(
    "--segmenter", metavar="SPEC",
    help="The splitter of rationales into steps: a model (default: the first judge), or `sentences`.",
)  # fmt: skip
@click.option(
    "--retry-unjudged",
    is_flag=True,
    help="Ask again about everything left unjudged, for example because a reply could not be read.",
)
@click.option("--allow-self", is_flag=True, help="Allow a model to judge its own run.")
@data_flag
@hearing_flags
@sending_flags
@dry_run_flag
@quiet_flag
@verbose_flag
@json_flag
def judge(as_json: bool, dry_run: bool, **flags: Any) -> None:
    """Judge the steps, discussions or findings of RUN.

    Run the same command again to continue: nothing is judged twice. Judges of earlier sessions stay.
    baseline/rules is embedded: a smoke test, whose verdicts never rank a run.

    \b
    Example: medthink judge runs/retrieval --judge baseline/rules
    Example: medthink judge runs/qwen --judge openai/gpt-5.2 --judge google/gemini-3-pro --repeats 2
    """
    from medthink.cli.output import follow
    from medthink.judge.asking import BATCHES
    from medthink.judge.session import judge_run, rehearse_judging

    transport = read_transport(flags)
    order = _read_order(flags)
    if dry_run:
        made = rehearse_judging(order, transport=transport)
        show_estimate(f"{order.run} · {', '.join(order.judges)}", made, as_json=as_json)
        return
    with follow(order.run) as progress:
        session = judge_run(order, transport=transport, listener=progress)
    for warning in session.warnings:
        print_line(f"Caution: {warning}", stderr=True)
    _show(session, order, as_json=as_json)
    say_jobs(session.jobs, order.run / BATCHES)
    if session.stopped_by is not None:
        raise session.stopped_by
    own = [
        one for one in session.judgements if one.judge in order.judges and one.setting == order.setting_of(one.judge)
    ]
    # Absent texts and texts with too many units were never sent to a judge.
    asked = [one for one in own if one.state != "absent" and one.why != "too_many"]
    if asked and all(one.why in ("failed", "unsplit") for one in asked):
        raise OutsideError(
            f"no judge answered: {asked[0].detail}", remedy="fix the cause, then run the same command again"
        )
    if asked and all(one.state == "unjudged" for one in asked):
        raise Declined(
            f"none of the judge's replies could be used: {asked[0].detail}",
            remedy="choose another judge, or try again with --retry-unjudged",
        )
    if failed := [one for one in asked if one.why in ("failed", "unsplit")]:
        raise PartlyFailed(
            f"{len(failed)} of {len(asked)} judgements failed, such as case {failed[0].case}: {failed[0].detail}",
            remedy="fix the cause, then run the same command again: it only makes the missing calls",
        )


def _show(session: "JudgeSession", order: "JudgeSpec", *, as_json: bool) -> None:
    from medthink.cases.slices import slice_cases
    from medthink.judge.judged import load_judged, score_judged

    path = session.run.path
    cases = session.run.cases(order.benchmark)
    sliced = slice_cases(cases.values())
    judged = load_judged(path, cases)
    scores = score_judged(judged, sliced)
    if as_json:
        print_json(scores.plain() | {"run": str(path), "calls_made_now": session.calls_made})
    else:
        show_scores(scores, judged)
        print_line(
            f"{count_of(session.calls_made, 'call')} made in this session; judgements: {path / 'judgements.jsonl'}"
        )
    show_outdated(judged)
    doubts = session.image_doubts
    if doubts.doubtful:
        print_line(
            f"Caution: {doubts.doubtful} of {doubts.replies} replies report too few input tokens for their images: "
            "the server may be ignoring images",
            stderr=True,
        )


def _read_order(flags: dict[str, Any]) -> "JudgeSpec":
    from medthink.judge.session import JudgeSpec

    kinds, data, segmenter = read_kinds(flags.pop("kinds")), flags.pop("data"), flags.pop("segmenter")
    return JudgeSpec(what=kinds, benchmark=data, splitter=segmenter, **read_hearing(flags), **flags)


def show_scores(scores: "JudgedScores", run: "JudgedRun") -> None:
    """Print the tables of every judge, kind by kind, with its agreement and exam."""

    from medthink.judge.exam.results import EXAMS_FILE, read_results
    from medthink.readers.agreement import read_agreement
    from medthink.report.judged_tables import judge_rows
    from medthink.scoring.scores import rate_text

    agreements = read_agreement(run.path)
    is_outdated = agreements is not None and agreements.is_outdated(run.judgements)
    exams = read_results(run.path / EXAMS_FILE)
    for what, found in scores.kinds.items():
        seats = judge_rows("", found, None if is_outdated else agreements, is_outdated=is_outdated, exams=exams)
        for seat in seats:
            _show_seat(what, seat)
    for what, share in scores.disagreement.items():
        console().print(f"Pairs of judges that differ on a unit of {what}: {rate_text(share)}")


def show_outdated(run: "JudgedRun") -> None:
    """Warn if the agreement was measured on earlier judgements than the run's current ones."""

    from medthink.readers.agreement import read_agreement

    agreement = read_agreement(run.path)
    if agreement is not None and agreement.is_outdated(run.judgements):
        print_line("agreement.json was made from earlier judgements: run medthink agreement again", stderr=True)


def _show_seat(what: str, seat: "JudgeRow[JudgeConfigScores]") -> None:
    from medthink.judge.kinds import KINDS

    scores = seat.scores
    title = f"{KINDS[what].plural.capitalize()} · {scores.label}"
    out = console()
    if not scores.coverage.judged:
        # Nothing was judged, so only the reasons are shown.
        out.print(print_table(title, ("", ""), list(_coverage(scores.coverage))))
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
    out.print(print_table(title, ("", ""), rows))
    for one in others:
        _show_table(one)
    out.print()


def _show_table(one: "ScoreTable") -> None:
    if not one.rows:
        return
    if len(one.rows) == 1:
        rows = [(name, _text(cell)) for name, cell in one.rows[0].items()]
        console().print(print_table(one.heading, ("", ""), rows))
        return
    cells = [tuple(map(_text, row.values())) for row in one.rows]
    console().print(print_table(one.heading, tuple(one.rows[0]), cells))


def _text(cell: "ScoreCell") -> str:
    from medthink.scoring.scores import rate_text, value_text

    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    if isinstance(cell.value, str):
        return cell.value
    return rate_text(cell.value) if cell.digits is None else value_text(cell.value)


def _coverage(coverage: "Coverage") -> Iterable[tuple[str, str]]:
    from medthink.scoring.scores import rate_text

    state = "" if coverage.is_complete else " – INCOMPLETE, do not publish"
    yield "judged", f"{coverage.judged} of {coverage.due}, {rate_text(coverage.share)}{state}"
    if coverage.unjudged or coverage.missing:
        yield "unjudged", _counts(coverage.unjudged | ({"not asked yet": coverage.missing} if coverage.missing else {}))
    if coverage.absent:
        yield "nothing to judge", str(coverage.absent)
    if coverage.fallback_splits:
        yield "split into sentences instead", str(coverage.fallback_splits)


def _ties(count: int) -> Iterable[tuple[str, str]]:
    if count:
        yield "units without a majority", str(count)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"
