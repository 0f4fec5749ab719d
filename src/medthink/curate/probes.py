"""Probes: whether a case can be solved without its images, or without its history, by models and trained guessers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from medthink.baselines.guessing import cross_validated
from medthink.cases.case import Case
from medthink.core.digest import digest_file
from medthink.core.errors import DataError, MedThinkError
from medthink.runs.budget import Budget
from medthink.runs.calls import Common
from medthink.runs.loop import run_to_end
from medthink.runs.selection import Selection
from medthink.runs.session import work_on
from medthink.runs.siblings import Siblings
from medthink.runs.spec import RunSpec
from medthink.workflow.condition import Condition

ProbeView = Literal["options", "question", "image", "one-image"]
GuesserView = Literal["options", "question", "images"]
FEWEST_FOR_GUESSERS = 50
_FOLDS = 5

CONDITIONS: dict[ProbeView, Condition] = {
    "options": Condition(show_history=False, image_share=0.0),
    "question": Condition(image_share=0.0),
    "image": Condition(show_history=False),
    # Any share above 0 shows at least one image.
    "one-image": Condition(show_history=False, image_share=0.001, image_choice="spread"),
}


class ProbeOutcome(msgspec.Struct, frozen=True):
    """The outcome of one probe: the cases it solved, and why it has no answer for others.

    `not_run` says why the probe could not be tried at all.
    """

    name: str
    solved: frozenset[int] = frozenset()
    unknown: Mapping[int, str] = {}
    not_run: str = ""


class ProbeEndpoint(NamedTuple):
    """Where models are reached, and what they may cost."""

    base_urls: tuple[str, ...] = ()
    max_usd: float | None = None
    max_calls: int | None = None
    concurrency: int = 16


def run_model_probe(
    model: str, view: ProbeView, cases: Path, keys: dict[int, str], *, out: Path, endpoint: ProbeEndpoint
) -> tuple[ProbeOutcome, MedThinkError | None]:
    """Run a model over the cases in one view; returns its answers by case number, and what stopped it, if anything.

    The run is stored under the digest of the cases; calls of runs over earlier states are not repeated.
    """
    from medthink.models.limits import Pace
    from medthink.models.transport import Transport

    name = re.sub(r"[^\w.-]+", "-", f"{model} {view}")
    own = out / digest_file(cases)[:12] / name
    spec = RunSpec(
        benchmark=cases,
        model=model,
        out=own,
        condition=CONDITIONS[view],
        selection=Selection(split=cases.stem),
        base_urls=endpoint.base_urls,
    )
    siblings = Siblings(run for run in sorted(out.glob(f"*/{name}")) if run != own)
    common = Common(Budget(max_usd=endpoint.max_usd, max_calls=endpoint.max_calls), siblings)
    try:
        transport = Transport(pace=Pace(concurrency=endpoint.concurrency))
        session = run_to_end(work_on(spec, transport=transport, common=common))
    finally:
        siblings.close()
    answers = {one.case: one for one in session.run.predictions()}
    solved = frozenset(case for case, letter in keys.items() if case in answers and answers[case].prediction == letter)
    unknown = {
        case: answers[case].state if case in answers else "failed"
        for case in keys
        if case not in answers or answers[case].prediction is None
    }
    return ProbeOutcome(f"{model} on {view}", solved, unknown), session.stopped_by


def run_guesser_probe(
    view: GuesserView, read: Callable[[], Iterable[Case]], *, repeats: int, sure: float, seed: int
) -> ProbeOutcome:
    """A guesser trained on the other cases: solved cases are named with this certainty, averaged over repeats."""
    cases = list(read())
    name = f"guesser on {view}"
    if len(cases) < FEWEST_FOR_GUESSERS:
        return ProbeOutcome(name, not_run=f"{len(cases)} cases are too few to train on")
    right: dict[int, float] = dict.fromkeys((case.id for case in cases), 0.0)
    letters = {case.id: case.reference.answer for case in cases}
    try:
        for repeat in range(repeats):
            for guess in cross_validated(cases, view, folds=_FOLDS, seed=seed + repeat):
                right[guess.case_id] += guess.probabilities[letters[guess.case_id]] / repeats
    except DataError as error:
        return ProbeOutcome(name, not_run=f"{error.place}: {error.problem}")
    return ProbeOutcome(name, frozenset(case for case, share in right.items() if share >= sure))


def judge_case(case: int, probes: Sequence[ProbeOutcome], needed: int) -> Literal["solved", "unsolved", "unknown"]:
    """Whether enough probes solved the case; unknown if those without an answer could make the difference."""
    solved = sum(case in probe.solved for probe in probes)
    unknown = sum(case in probe.unknown for probe in probes)
    if solved >= needed:
        return "solved"
    return "unknown" if solved + unknown >= needed else "unsolved"
