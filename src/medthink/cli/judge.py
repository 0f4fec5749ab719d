"""`medthink judge`: the reasoning, the discussions and the findings of a run, judged by models."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.cli.batch_flags import say_jobs
from medthink.cli.judge_flags import asking_flags, judges_flag, read_kinds, read_terms, read_transport, sight_flags
from medthink.cli.lazy import ParentCommand
from medthink.cli.show import print_json, say
from medthink.core.errors import Declined, OutsideError, PartlyFailed
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from medthink.judge.session import JudgeOrder, JudgeSession


@click.command(cls=ParentCommand, modules={"exam": "medthink.cli.judge_exam"})
@click.argument("run", type=click.Path(path_type=Path))
@judges_flag
@click.option("--what", metavar="LIST", help="Kinds of judging, separated by commas; default: those of the task.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Judge which discussion is better, this run's or that of RUN; may be repeated.",
)
@sight_flags
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many times to ask every judge.",
)
@click.option(
    "--splitter",
    metavar="SPEC",
    help="Who cuts rationales into steps: a model (by default the first judge), or `sentences`.",
)
@click.option(
    "--retry-unjudged", is_flag=True, help="Ask again for what is unjudged, such as replies in the wrong form."
)
@click.option("--allow-self", is_flag=True, help="Let a model judge itself.")
@click.option("--data", "benchmark", type=click.Path(path_type=Path), help="The benchmark, if it has moved.")
@asking_flags
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def judge(as_json: bool, **flags: Any) -> None:
    """Judge the steps, discussions or findings of RUN.

    Run the same command again to continue: nothing is judged twice. Judges of earlier sessions stay.
    baseline/rules is embedded: a smoke test, whose verdicts never rank a run.

    \b
    Example: medthink judge runs/retrieval --judge baseline/rules
    Example: medthink judge runs/qwen --judge openai/gpt-5.2 --judge google/gemini-3-pro --images --repeat 2
    """
    from medthink.cli.live import follow
    from medthink.judge.bench import BATCHES
    from medthink.judge.session import judge_run

    transport = read_transport(flags)
    order = _read_order(flags)
    with follow(order.run) as progress:
        session = judge_run(order, transport=transport, listener=progress)
    for warning in session.warnings:
        say(f"Caution: {warning}", stderr=True)
    _show(session, order, as_json=as_json)
    say_jobs(session.jobs, order.run / BATCHES)
    if session.stopped_by is not None:
        raise session.stopped_by
    own = [one for one in session.judgements if one.judge in order.judges and one.setting == order.setting]
    # Absent texts and texts with too many units were never sent to a judge.
    asked = [one for one in own if one.state != "absent" and one.why != "too_many"]
    if asked and all(one.why in ("failed", "unsplit") for one in asked):
        raise OutsideError(f"no judge answered: {asked[0].detail}", remedy="fix that, then run the same command again")
    if asked and all(one.state == "unjudged" for one in asked):
        raise Declined(
            f"none of the judge's replies could be used: {asked[0].detail}",
            remedy="choose another judge, or try again with --retry-unjudged",
        )
    if failed := [one for one in asked if one.why in ("failed", "unsplit")]:
        raise PartlyFailed(
            f"{len(failed)} of {len(asked)} judgements failed, such as case {failed[0].case}: {failed[0].detail}",
            remedy="fix that, then run the same command again: it asks only for what is missing",
        )


def _show(session: "JudgeSession", order: "JudgeOrder", *, as_json: bool) -> None:
    from medthink.cases.slices import slice_cases
    from medthink.cli.judge_views import show_outdated, show_scores
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
        say(f"{count_of(session.calls_made, 'call')} made in this session; judgements: {path / 'judgements.jsonl'}")
    show_outdated(judged)
    doubts = session.image_doubts
    if doubts.doubtful:
        say(
            f"Caution: {doubts.doubtful} of {doubts.replies} replies count too few input tokens for their images: "
            "the server may ignore images",
            stderr=True,
        )


def _read_order(flags: dict[str, Any]) -> "JudgeOrder":
    from medthink.judge.session import JudgeOrder

    return JudgeOrder(what=read_kinds(flags.pop("what")), **read_terms(flags), **flags)
