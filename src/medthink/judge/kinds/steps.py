"""The reasoning towards an answer, judged step by step."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from medthink.judge import cells
from medthink.judge.ballots import majority
from medthink.judge.coverage import Units
from medthink.judge.evidence import Evidence
from medthink.judge.forms import (
    TEXT,
    Fault,
    ReplyForm,
    check_grounds,
    first_fault,
    form_schema,
    list_of,
    match_ids,
    object_of,
    one_of,
    read_form,
)
from medthink.judge.judgement import Judgement
from medthink.judge.kinds.kind import Aspect, Column, Item, JudgeKind, Label, Labels, Texts, common_scores
from medthink.judge.kinds.ruling import rule_on_findings, rule_on_options
from medthink.judge.kinds.step_scores import StepScores, StepVerdict, score_steps, step_slice_cells, step_tables
from medthink.judge.rubric import ERROR_TYPES, MAX_STEPS, SUPPORTS, ErrorType, Rubric, Support
from medthink.judge.scores import Rights, ScoreCell, ScoreTable
from medthink.judge.units import UnitSet
from medthink.models.request import Schema
from medthink.runs.prediction import Prediction

RATIONALE = "rationale"


class StepsForm(ReplyForm, frozen=True):
    """One verdict per step."""

    verdicts: tuple[StepVerdict, ...]


class StepsKind(JudgeKind[StepVerdict, StepScores]):
    """The rationale, cut into steps."""

    name = "steps"
    plural = "steps"
    tasks = ("answer", "twi")
    max_units = MAX_STEPS
    is_cut_by_model = True
    leading = "support"
    aspects = (
        Aspect(name="factual", categories=(True, False), is_main=True, wrong=False),
        Aspect(name="support", categories=SUPPORTS),
        Aspect(name="critical", categories=(True, False)),
        *(Aspect(name=f"error: {name.replace('_', ' ')}", categories=(True, False)) for name in ERROR_TYPES),
    )
    columns = (
        Column("factual", (*SUPPORTS, cells.UNSURE)),
        Column("critical", ("yes", "no", cells.UNSURE)),
        Column("error_types"),
    )

    def texts(self, prediction: Prediction) -> Texts:
        """The rationale."""
        return Texts({RATIONALE: prediction.prediction_rationale or ""})

    def items(self, units: UnitSet) -> tuple[Item, ...]:
        """Every step."""
        return tuple(Item(id=unit.id, form="step", part=unit.part, text=unit.text) for unit in units.units)

    def meanings(self, rubric: Rubric) -> dict[str, str]:
        """Support, what is critical, and the types of error."""
        return {
            "support": rubric.describe_support(),
            "critical": rubric.critical,
            "error_types": rubric.describe_error_types(),
        }

    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:
        """One verdict per step; the reason comes first, so that it is given before the verdict."""
        verdict = object_of(
            id=one_of(units.ids),
            reason=TEXT,
            rests_on=list_of(one_of(rests_on)),
            factual=one_of(SUPPORTS),
            critical={"type": "boolean"},
            error_types=list_of(one_of(ERROR_TYPES)),
        )
        return form_schema(self.name, call, verdicts=list_of(verdict))

    def read_reply(
        self, text: str, call: str, units: UnitSet, rests_on: Sequence[str]
    ) -> tuple[StepVerdict, ...] | Fault:
        """One verdict per step, none of which contradicts itself."""
        form = read_form(text, StepsForm, call)
        matched = form if isinstance(form, Fault) else match_ids(form.verdicts, units.ids)
        if isinstance(matched, Fault):
            return matched
        return first_fault(_check(verdict, rests_on) for verdict in matched) or matched

    def read_stored(self, row: Mapping[str, Any]) -> tuple[StepVerdict, ...]:
        """Verdicts; earlier releases called them steps."""
        return msgspec.convert(row.get("verdicts") or row.get("steps") or (), tuple[StepVerdict, ...])

    def judge_by_rule(self, units: UnitSet, evidence: Evidence) -> dict[str, Any]:
        """Compare options named and findings stated with the reference."""
        rulings = [rule_on_options(unit, evidence) or rule_on_findings(unit, evidence) for unit in units.units]
        verdicts = [
            StepVerdict(
                id=unit.id,
                factual=ruling.support,
                critical=ruling.is_about_options or ruling.support == "contradicted",
                error_types=(ruling.error,) if ruling.error else (),
                reason=ruling.reason,
                rests_on=(ruling.rests_on,),
            )
            for unit, ruling in zip(units.units, rulings, strict=True)
        ]
        return {"verdicts": verdicts}

    def vote(self, ballots: Sequence[StepVerdict]) -> StepVerdict | None:
        """The majority on factual and on critical; types are those of the judges in the majority."""
        factual = majority([ballot.factual for ballot in ballots])
        critical = majority([ballot.critical for ballot in ballots])
        if factual is None or critical is None:
            return None
        agreeing = [ballot for ballot in ballots if ballot.factual == factual]
        return StepVerdict(
            id=ballots[0].id,
            factual=factual,
            critical=critical,
            error_types=_vote_types(agreeing),
            reason=agreeing[0].reason,
            rests_on=agreeing[0].rests_on,
        )

    def labels(self, verdict: StepVerdict) -> Labels:
        """Every aspect that a verdict speaks of."""
        plain: dict[str, Label | None] = {
            "factual": not verdict.is_error,
            "support": verdict.factual,
            "critical": verdict.critical,
        }
        return plain | _type_labels(verdict.error_types)

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:  # noqa: ARG002
        """Factual in three words or as yes and no, critical, and error types."""
        factual, support = cells.read_factual(row.get("factual", ""))
        types = _name_types(factual, support, cells.read_types(row.get("error_types", "")))
        plain: dict[str, Label | None] = {
            "factual": factual,
            "support": support,
            "critical": cells.read_truth("critical", row.get("critical", "")),
        }
        return plain | _type_labels(types)

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> StepScores:
        """The error profile, soundness and first errors."""
        return score_steps([(row, self.given(row)) for row in rows], common_scores(rows, units), rights)

    def tables(self, scores: StepScores) -> tuple[ScoreTable, ...]:
        """Wrong steps, soundness, first errors and types of error."""
        return step_tables(scores)

    def slice_cells(self, scores: StepScores) -> dict[str, ScoreCell]:
        """What is wrong, which types of error, and how sound the reasons are."""
        return step_slice_cells(scores)


def _check(verdict: StepVerdict, rests_on: Sequence[str]) -> Fault | None:
    """Why a verdict contradicts itself or points nowhere; None if it does not."""
    if verdict.factual == "supported" and verdict.error_types:
        return Fault("contradictory", f"{verdict.id} is supported and has error types")
    if verdict.factual == "contradicted" and not verdict.error_types:
        return Fault("contradictory", f"{verdict.id} is contradicted and has no error type")
    if len(set(verdict.error_types)) < len(verdict.error_types):
        return Fault("wrong_form", f"{verdict.id} names an error type twice")
    return check_grounds(verdict, verdict.rests_on, rests_on)


def _vote_types(agreeing: Sequence[StepVerdict]) -> tuple[ErrorType, ...]:
    """The types that most name; where no type is named by most, the one named most often, so that none is lost."""
    counts = Counter(error for ballot in agreeing for error in ballot.error_types)
    common = [error for error, count in counts.items() if 2 * count > len(agreeing)]
    likeliest = sorted(counts, key=lambda error: (-counts[error], ERROR_TYPES.index(error)))[:1]
    return tuple(sorted(common or likeliest, key=ERROR_TYPES.index))


def _type_labels(named: Sequence[ErrorType] | None) -> dict[str, Label | None]:
    """Whether each type was named; unknown where a rater named none of a wrong step."""
    return {f"error: {name.replace('_', ' ')}": None if named is None else name in named for name in ERROR_TYPES}


def _name_types(
    factual: bool | None, support: Support | None, types: tuple[ErrorType, ...]
) -> tuple[ErrorType, ...] | None:
    """The types that were named, or None where that is not known: a step that is wrong must have one."""
    if factual and types:
        raise ValueError("factual, and yet with error types")
    if factual is None:
        return None
    # Readers are asked for types of contradicted steps only: of an unsupported one, none is an answer.
    return types if types or factual or support == "unsupported" else None
