"""Judge a run from Python, and score what the judges said."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from medthink.cases.slices import slice_cases
from medthink.judge.evidence import Sight
from medthink.judge.judged import JudgedScores, load_judged, score_judged
from medthink.judge.session import JudgeOrder, judge_run
from medthink.models.request import Effort
from medthink.runs.run import RunOrPath, path_of

if TYPE_CHECKING:
    from medthink.models.transport import Transport


class JudgeOptions(TypedDict, total=False):
    """How the judges are asked: the fields of a `JudgeOrder`."""

    what: tuple[str, ...] | None
    sees: tuple[Sight, ...]
    repeats: int
    splitter: str | None
    allow_self: bool
    retry_unjudged: bool
    against: tuple[Path, ...]
    effort: Effort | None
    temperature: float | None
    max_tokens: int | None
    use_schema: bool
    benchmark: Path | None
    base_urls: tuple[str, ...]
    prices: Path | None
    max_usd: float | None
    max_calls: int | None
    preflight: bool
    batch: bool
    wait: bool


def judge_and_score(
    run: RunOrPath,
    judges: str | Sequence[str],
    *,
    transport: "Transport | None" = None,
    **options: Unpack[JudgeOptions],
) -> JudgedScores:
    """Judge a run, or continue where an earlier session stopped, and score all of its judgements.

    If `max_usd` or `max_calls` stopped the judges, whatever they did not reach counts as unjudged.
    """
    names = (judges,) if isinstance(judges, str) else tuple(judges)
    order = JudgeOrder(run=path_of(run), judges=names, **options)
    session = judge_run(order, transport=transport)
    cases = session.run.cases(order.benchmark)
    return score_judged(load_judged(order.run, cases), slice_cases(cases.values()))
