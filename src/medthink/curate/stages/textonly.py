"""Text-only: removes cases that enough models or trained guessers solve without the images.

The stage runs the probes itself and joins them by case number. A probe without an answer for a case is no evidence: it
leaves the case open if it could have made the difference. Letters are reassigned among the remaining cases.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from medthink.baselines.guesser import cross_validated
from medthink.cases.case import Case
from medthink.core.digest import digest_file
from medthink.core.errors import DataError, MedThinkError
from medthink.core.numbers import as_rate
from medthink.curate.ask import StageModel
from medthink.curate.decision import CALL_FAILED, StageResult, drop_case, hold_case, pass_case
from medthink.curate.draft import Draft
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import CallSettings, GuesserView, ProbeView, TextOnlySettings
from medthink.curate.stage import Drafts, Stage
from medthink.curate.stages.balance import assign_letters, count_letters, refuse_other_options, with_letter
from medthink.runs.calls.asking import SharedCalls
from medthink.runs.calls.budget import Budget
from medthink.runs.calls.opening import SweepShared
from medthink.runs.engine import run_to_end
from medthink.runs.manifest import CallTerms, RunSpec
from medthink.runs.selection import Selection
from medthink.runs.session import run_session_async
from medthink.stats.estimate import Estimate
from medthink.stats.intervals import wilson
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import prompt_versions

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
    """The outcome of one probe: the cases it solved, and the reasons for missing answers.

    `not_run` says why the probe could not be run at all.
    """

    name: str
    solved: frozenset[int] = frozenset()
    unknown: Mapping[int, str] = {}
    not_run: str = ""


def probe_run(model: str, view: ProbeView, cases: Path, *, out: Path, terms: CallTerms) -> RunSpec:
    """The run of a model over the cases in one view, stored under the digest of the cases."""
    return RunSpec(
        benchmark=cases,
        model=model,
        out=out / digest_file(cases)[:12] / re.sub(r"[^\w.-]+", "-", f"{model} {view}"),
        condition=CONDITIONS[view],
        selection=Selection(split=cases.stem),
        **{field: getattr(terms, field) for field in CallTerms.__struct_fields__},
    )


def run_model_probe(
    model: str,
    view: ProbeView,
    cases: Path,
    keys: dict[int, str],
    *,
    out: Path,
    settings: CallSettings,
    terms: CallTerms,
) -> tuple[ProbeOutcome, MedThinkError | None]:
    """Run a model over the cases in one view; returns its answers by case number, and what stopped it, if anything.

    Calls of runs over earlier states of the cases are not repeated.
    """
    spec = probe_run(model, view, cases, out=out, terms=terms)
    assert spec.out is not None
    siblings = SharedCalls(run for run in sorted(out.glob(f"*/{spec.out.name}")) if run != spec.out)
    common = SweepShared(Budget(max_usd=terms.max_usd, max_calls=terms.max_calls), siblings)
    try:
        session = run_to_end(run_session_async(spec, transport=settings.transport(), common=common))
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


def decide_case(case: int, probes: Sequence[ProbeOutcome], needed: int) -> Literal["solved", "unsolved", "unknown"]:
    """Whether enough probes solved the case; unknown if those without an answer could make the difference."""
    solved = sum(case in probe.solved for probe in probes)
    unknown = sum(case in probe.unknown for probe in probes)
    if solved >= needed:
        return "solved"
    return "unknown" if solved + unknown >= needed else "unsolved"


class TextOnlyStage(Stage[TextOnlySettings]):
    """Probes, a rule, and reassigned letters."""

    name = "textonly"
    looks_at = ("history", "options", "images")
    follows_release = True

    def survey(self, drafts: Drafts) -> None:
        """Run every probe, and decide which cases stay and with which letter."""
        keys: dict[int, str] = {}
        release, known, self._published = self.context.release, set[int](), dict[int, Case]()
        for draft in drafts():
            refuse_other_options(draft)
            keys[draft.id] = draft.case.reference.answer
            known |= set() if release.case_of(draft) is None else {draft.id}
            if (published := release.options_of(draft)) is not None:
                self._published[draft.id] = published
        self._probes = [*self._guess(drafts), *self._ask_models(keys)]
        self._needed = self.settings.min_solved or len(self._voting)
        self._found = {case: "unsolved" if case in known else self._judge(case) for case in keys}
        kept = [case for case, found in self._found.items() if found == "unsolved"]
        new = [case for case in kept if case not in self._published]
        self._letters = assign_letters(new, self.context.seed, count_letters(self._published.values()))
        self._count = len(keys)

    @property
    def _voting(self) -> list[ProbeOutcome]:
        """The probes that were run."""
        return [probe for probe in self._probes if not probe.not_run]

    def _judge(self, case: int) -> Literal["solved", "unsolved", "unknown"]:
        return decide_case(case, self._voting, self._needed) if self._voting else "unsolved"

    def _guess(self, drafts: Drafts) -> Iterator[ProbeOutcome]:
        def cases() -> Iterator[Case]:
            return (draft.case for draft in drafts())

        for view in self.settings.guessers:
            yield run_guesser_probe(
                view, cases, repeats=self.settings.repeats, sure=self.settings.min_probability, seed=self.context.seed
            )

    def probes(self) -> Iterator[RunSpec]:
        """A run of each model in each view."""
        assert self.context.source is not None
        terms, out = self.settings.terms(self.context.plan_folder), self.context.work / "probes"
        for model in self.settings.model:
            for view in self.settings.views:
                yield probe_run(model, view, self.context.source, out=out, terms=terms)

    def _ask_models(self, keys: dict[int, str]) -> Iterator[ProbeOutcome]:
        settings = self.settings
        terms, out = settings.terms(self.context.plan_folder), self.context.work / "probes"
        assert self.context.source is not None
        for model in settings.model:
            for view in settings.views:
                probe, stopped = run_model_probe(
                    model, view, self.context.source, keys, out=out, settings=settings, terms=terms
                )
                self.stopped_by = self.stopped_by or stopped
                yield probe

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """Drop the case if enough probes solved it; a published one stays as it is."""
        by = f"rule solved by {self._needed} of {len(self._voting)} probes"
        names = [probe.name for probe in self._voting if draft.id in probe.solved]
        match self._found[draft.id]:
            case "solved":
                return drop_case("solved-without-looking", by=by, detail="; ".join(names))
            case "unknown":
                silent = {probe.name: probe.unknown[draft.id] for probe in self._voting if draft.id in probe.unknown}
                reason = CALL_FAILED if "failed" in silent.values() else "probe-without-answer"
                detail = "; ".join(f"{name}: {state}" for name, state in silent.items())
                rulings.settle(hold_case(reason, by=by, detail=detail))
        letter = self._letters.get(draft.id, draft.case.reference.answer)
        made = with_letter(draft, letter, self._published.get(draft.id), self.context.seed)
        return pass_case(made, by=by, detail="; ".join(names))

    def not_covered(self) -> tuple[str, ...]:
        """The probes that were not run."""
        missing = [f"{probe.name}: {probe.not_run}" for probe in self._probes if probe.not_run]
        if not self.settings.model:
            missing.append("models that solve cases from the text alone: none was asked")
        return tuple(missing)

    def report(self) -> dict[str, Any]:
        """How often each probe was right."""
        rates = {}
        for probe in self._voting:
            found = wilson(len(probe.solved), self._count - len(probe.unknown))
            rates[probe.name] = as_rate(found.value, found.low, found.high) if isinstance(found, Estimate) else "–"
        return {f"solved by {name}": rate for name, rate in rates.items()}

    def prompts(self) -> Any:
        """The prompts that models are probed with."""
        views = self.settings.views if self.settings.model else ()
        return {view: prompt_versions("answer", CONDITIONS[view]) for view in views} or None


STAGE = TextOnlyStage
