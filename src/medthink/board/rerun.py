"""Re-run of part of a row: the maintainer states a bound, draws random cases, runs them, and records the run.

Sample and bound are written into the history before the run, so neither can be chosen after the fact. A row is
confirmed when, with confidence, at most the bound of *all* its answers would differ in a run like the maintainer's; its
accuracy then cannot differ by more either. Every further attempt on a row needs a stricter confidence, so that repeated
attempts do not help: a row that should fail passes with a total probability of at most 5 %.
"""

import secrets
from pathlib import Path

import msgspec
import numpy as np

from medthink.board.checking import LoadedBenchmark, read_traces
from medthink.board.history import history
from medthink.board.moderation import change_provenance
from medthink.board.submissions import Provenance, SubmissionRecord, find_submission, open_file, read_scores
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError
from medthink.runs.manifest import Manifest
from medthink.scoring.inputs import load_run
from medthink.stats.intervals import finite_upper_bound
from medthink.store.engine import Store, record_event
from medthink.workflow.prediction import Prediction

LEAST_CASES = 60
BOUND = 0.15
_ALPHA = 0.05
_PLANNED, _SETTLED = "rerun planned", "rerun"


class RerunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned re-run: the cases drawn, and the maximum share of answers that may differ."""

    attempt: int
    seed: int
    cases: tuple[int, ...]
    bound: float
    planned_at: str

    @property
    def alpha(self) -> float:
        """The risk of this attempt: half of the previous one's, so that the total stays below 5 %."""
        return _ALPHA * 0.5**self.attempt


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a re-run.

    Of `cases` run again, `same` have the submitted answer; `right` and `right_again` are right in the submission and in
    the run. `most` is the upper limit of the share of all answers that differ, at `confidence`.
    """

    attempt: int
    cases: int
    same: int
    right: int
    right_again: int
    most: float
    confidence: float
    bound: float
    entered_at: str

    @property
    def is_within(self) -> bool:
        """Whether the row is confirmed."""
        return self.most <= self.bound


def plan_rerun(store: Store, token: str, *, cases: int = LEAST_CASES, bound: float = BOUND, actor: str) -> RerunPlan:
    """State the bound and draw random cases; an open plan is left unchanged."""
    found = _rerunnable(store, token)
    plans, settled = _past(store, found)
    if len(plans) > settled:
        return plans[-1]
    scores = read_scores(store, found.id)
    assert scores is not None
    known = [case.case for case in scores.cases]
    if cases < min(LEAST_CASES, len(known)):
        raise UsageError(f"{cases} cases are too few to confirm a row", remedy=f"draw at least {LEAST_CASES}")
    if not 0 < bound < 0.5:
        raise UsageError(f"the bound is {bound}", remedy="give the share of answers that may differ, such as 0.15")
    seed = secrets.randbits(62)
    drawn = np.random.default_rng(seed).choice(np.array(sorted(known)), size=min(cases, len(known)), replace=False)
    plan = RerunPlan(
        attempt=settled + 1,
        seed=seed,
        cases=tuple(sorted(int(case) for case in drawn)),
        bound=bound,
        planned_at=now_utc(),
    )
    with store.write() as connection:
        record_event(connection, found.id, actor, _PLANNED, msgspec.to_builtins(plan))
    return plan


def record_rerun(store: Store, token: str, run: Path, held: LoadedBenchmark, *, actor: str) -> Rerun:
    """Compare a run of the planned cases with the submission: a row that it confirms is `rerun`, any other `traced`."""
    found = _rerunnable(store, token)
    plans, settled = _past(store, found)
    if len(plans) == settled:
        raise UsageError("no sample is drawn for this submission", remedy="run medthink board rerun TOKEN to draw one")
    plan = plans[-1]
    material = load_run(run, held.split.path)
    assert material.manifest is not None
    _refuse_other(found, traced_manifest(store, found), material.manifest, plan)
    outcome = _compare(store, found, plan, material.predictions)
    with store.write() as connection:
        record_event(connection, found.id, actor, _SETTLED, msgspec.to_builtins(outcome))
        level: Provenance = "rerun" if outcome.is_within else "traced"
        if level != found.provenance:
            change_provenance(connection, found, level, actor=actor, why=describe_rerun(outcome))
    return outcome


def describe_rerun(rerun: Rerun) -> str:
    """The outcome in a sentence."""
    return (
        f"{rerun.same} of {rerun.cases} answers the same when run again; with {rerun.confidence * 100:.4g} % "
        f"confidence at most {rerun.most * 100:.1f} % of all answers differ ({rerun.bound * 100:.3g} % were allowed)"
    )


def traced_manifest(store: Store, submission: SubmissionRecord) -> Manifest:
    """The manifest that a submission's traces carry."""
    with open_file(store, submission) as path:
        manifest = read_traces(path).manifest
    assert manifest is not None
    return manifest


def _rerunnable(store: Store, token: str) -> SubmissionRecord:
    found = find_submission(store, token)
    if found is None:
        raise UsageError(f"no submission {token}", remedy="check its token")
    if found.status not in ("scored", "published"):
        raise UsageError(f"the submission {token} is {found.status}", remedy="only published rows can be re-run")
    if found.provenance == "scored":
        raise UsageError(
            "this row has no confirmed traces, so the condition to re-run it under is unknown",
            remedy="ask for a file made by medthink submission pack",
        )
    if found.provenance == "ledger":
        raise UsageError("this row was already run here, with its ledger", remedy="there is nothing more to verify")
    return found


def _past(store: Store, submission: SubmissionRecord) -> tuple[list[RerunPlan], int]:
    """Every plan so far, and how many of them are settled."""
    events = history(store, submission.id)
    plans = [msgspec.convert(event["detail"], RerunPlan) for event in events if event["what"] == _PLANNED]
    return plans, sum(event["what"] == _SETTLED for event in events)


def _refuse_other(found: SubmissionRecord, submitted: Manifest, again: Manifest, plan: RerunPlan) -> None:
    """Raise UsageError, naming the field, unless the run is the one that was planned."""
    pairs = {
        "benchmark": (submitted.fingerprint, again.fingerprint),
        "model": (submitted.model, again.model),
        "task": (submitted.task, again.task),
        "condition": (submitted.condition.label(), again.condition.label()),
        "prompts": (submitted.prompts, again.prompts),
    }
    differing = [name for name, (theirs, ours) in pairs.items() if theirs != ours]
    if submitted.condition != again.condition:
        differing.append("condition")
    if differing:
        shown = "; ".join(f"{name} was {pairs[name][0]}, is {pairs[name][1]}" for name in dict.fromkeys(differing))
        raise UsageError(
            f"this run is not {found.model} run again: {shown}",
            remedy="use exactly the command that medthink board rerun printed",
        )
    if again.selection.cases != plan.cases:
        raise UsageError(
            "the run does not cover exactly the cases drawn",
            remedy="use exactly the command that medthink board rerun printed",
        )
    if again.created_at < plan.planned_at:
        raise UsageError(
            f"the run was started at {again.created_at}, before its cases were drawn", remedy="run the cases again"
        )  # fmt: skip


def _compare(store: Store, found: SubmissionRecord, plan: RerunPlan, predictions: list[Prediction]) -> Rerun:
    first = {one.case: one for one in predictions if one.sample == 0}
    missing = len(set(plan.cases) - set(first))
    if missing:
        raise UsageError(
            f"the run has no answer to {missing} of the {len(plan.cases)} cases drawn",
            remedy="run the same command again until no case is left",
        )
    failed = sum(one.state == "failed" for one in first.values())
    if failed:
        raise UsageError(
            f"{failed} of the cases failed, so they have no answer",
            remedy="run the same command again until no case fails",
        )
    scores = read_scores(store, found.id)
    assert scores is not None
    before = {case.case: case for case in scores.cases if case.case in first}
    differing = sum(first[case].prediction != one.letters[0] for case, one in before.items())
    return Rerun(
        attempt=plan.attempt,
        cases=len(first),
        same=len(first) - differing,
        right=sum(one.letters[0] == one.gold for one in before.values()),
        right_again=sum(first[case].prediction == one.gold for case, one in before.items()),
        most=finite_upper_bound(differing, sample=len(first), whole=len(scores.cases), alpha=plan.alpha),
        confidence=1 - plan.alpha,
        bound=plan.bound,
        entered_at=now_utc(),
    )
