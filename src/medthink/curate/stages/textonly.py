"""Text-only: leaves out cases that models or trained guessers solve without the images, by a stated rule.

The stage runs the probes itself and joins them by case number. A probe without an answer for a case is no evidence: it
leaves the case open if it could have made the difference. Letters are reassigned among the remaining cases.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from medthink.cases.case import Case
from medthink.core.numbers import as_rate
from medthink.curate.asking import StageAsk
from medthink.curate.decision import CALL_FAILED, StageResult, drop, keep, leave_open
from medthink.curate.draft import Draft
from medthink.curate.fairness import deal_letters, lay_out
from medthink.curate.probes import (
    CONDITIONS,
    GuesserView,
    ProbeEndpoint,
    ProbeOutcome,
    ProbeView,
    judge_case,
    run_guesser_probe,
    run_model_probe,
)
from medthink.curate.stage import AtLeastOne, Drafts, NotNegative, Stage, StageSettings, WholeNumber
from medthink.stats.estimate import Estimate
from medthink.stats.intervals import wilson
from medthink.workflow.tasks import prompt_versions


class TextOnlySettings(StageSettings, frozen=True, kw_only=True):
    """Which probes are run, what they are shown, and when a case is out."""

    models: Annotated[
        tuple[str, ...], Meta(description="Models to probe with, as in medthink run; may be repeated.")
    ] = ()
    views: Annotated[
        tuple[ProbeView, ...], Meta(description="What models are shown: options, question, image or one-image.")
    ] = ("question",)
    guessers: Annotated[
        tuple[GuesserView, ...], Meta(description="Trained guessers: options, question or images; none: no guesser.")
    ] = ("options", "question")
    solved_by: Annotated[AtLeastOne | None, Meta(description="Probes that must solve a case for it to go; all.")] = None
    sure: Annotated[float, Meta(description="How sure a guesser must be of the right option.", gt=0, lt=1)] = 0.4
    repeats: Annotated[int, Meta(description="How often guessers are retrained.", ge=1)] = 3
    base_url: Annotated[tuple[str, ...], Meta(description="Address of the models' server; may be repeated.")] = ()
    max_calls: Annotated[WholeNumber | None, Meta(description="Stop a probe after this many calls.")] = None
    max_usd: Annotated[NotNegative | None, Meta(description="Stop a probe before its cost exceeds this.")] = None
    concurrency: Annotated[int, Meta(description="Concurrent calls.", ge=1)] = 16


class TextOnlyStage(Stage[TextOnlySettings]):
    """Probes, a rule, and reassigned letters."""

    name = "textonly"
    settings_type = TextOnlySettings

    def survey(self, drafts: Drafts) -> None:
        """Run every probe, and decide which cases stay and with which letter."""
        keys = {draft.id: draft.case.reference.answer for draft in drafts()}
        self._probes = [*self._guess(drafts), *self._ask_models(keys)]
        self._needed = self.settings.solved_by or len(self._voting)
        self._found = {case: self._judge(case) for case in keys}
        kept = [case for case, found in self._found.items() if found == "unsolved"]
        self._letters = deal_letters(kept, self.context.seed)
        self._count = len(keys)

    @property
    def _voting(self) -> list[ProbeOutcome]:
        """The probes that were run."""
        return [probe for probe in self._probes if not probe.not_run]

    def _judge(self, case: int) -> Literal["solved", "unsolved", "unknown"]:
        return judge_case(case, self._voting, self._needed) if self._voting else "unsolved"

    def _guess(self, drafts: Drafts) -> Iterator[ProbeOutcome]:
        def cases() -> Iterator[Case]:
            return (draft.case for draft in drafts())

        for view in self.settings.guessers:
            yield run_guesser_probe(
                view, cases, repeats=self.settings.repeats, sure=self.settings.sure, seed=self.context.seed
            )

    def _ask_models(self, keys: dict[int, str]) -> Iterator[ProbeOutcome]:
        settings = self.settings
        endpoint = ProbeEndpoint(settings.base_url, settings.max_usd, settings.max_calls, settings.concurrency)
        assert self.context.source is not None
        for model in settings.models:
            for view in settings.views:
                out = self.context.work / "probes"
                probe, stopped = run_model_probe(model, view, self.context.source, keys, out=out, endpoint=endpoint)
                self.stopped_by = self.stopped_by or stopped
                yield probe

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:  # noqa: ARG002
        """Drop the case if enough probes solved it."""
        by = f"rule solved by {self._needed} of {len(self._voting)} probes"
        names = [probe.name for probe in self._voting if draft.id in probe.solved]
        match self._found[draft.id]:
            case "solved":
                return drop("solved-without-looking", by=by, detail="; ".join(names))
            case "unknown":
                silent = {probe.name: probe.unknown[draft.id] for probe in self._voting if draft.id in probe.unknown}
                reason = CALL_FAILED if "failed" in silent.values() else "probe-without-answer"
                detail = "; ".join(f"{name}: {state}" for name, state in silent.items())
                return leave_open(reason, by=by, detail=detail)
        question, reference = draft.case.question, draft.case.reference
        others = [text for letter, text in question.options.items() if letter != reference.answer]
        letter = self._letters[draft.id]
        options = lay_out(draft.id, reference.answer_text, others, letter, self.context.seed)
        made = draft.with_question(options=options).with_reference(answer=letter)
        return keep(made, by=by, detail="; ".join(names))

    def not_covered(self) -> tuple[str, ...]:
        """The probes that were not run."""
        missing = [f"{probe.name}: {probe.not_run}" for probe in self._probes if probe.not_run]
        if not self.settings.models:
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
        views = self.settings.views if self.settings.models else ()
        return {view: prompt_versions("answer", CONDITIONS[view]) for view in views} or None


STAGE = TextOnlyStage
