"""The reasoning towards an answer, judged step by step."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import (
    Aspect,
    JudgedItem,
    JudgedTexts,
    JudgeKind,
    Label,
    Labels,
    ReaderColumn,
    check_grounds,
    common_scores,
    match_ids,
)
from medthink.judge.kinds.rule_verdict import RuleVerdict, rule_on_findings, rule_on_options
from medthink.judge.kinds.step_scores import SEVERE, StepScores, StepVerdict, score_steps, step_slice_cells, step_tables
from medthink.judge.rubric import (
    ERROR_TYPES,
    MAX_STEPS,
    SEVERITIES,
    SUPPORTS,
    WEIGHTS,
    ErrorType,
    Severity,
    Support,
    Weight,
)
from medthink.judge.scores import Rights, ScoreCell, ScoreTable, Units, hedged_units, majority_label
from medthink.judge.units import UnitSet, UnitSource
from medthink.models.request import Schema
from medthink.workflow.forms import (
    TEXT,
    ReplyFault,
    ReplyForm,
    first_fault,
    form_schema,
    list_of,
    object_of,
    one_of,
    read_form,
)
from medthink.workflow.prediction import Prediction

RATIONALE = "rationale"
# The published table only distinguishes critical or not.
CRITICAL: tuple[Weight, ...] = ("decisive", "contributory")


_NOT_APPLICABLE = "not applicable"
# Neither supported nor contradicted.
_OPEN: tuple[Support, ...] = ("not described", "unverifiable")


Word = TypeVar("Word", bound=str)


class StepForm(UnitVerdict, frozen=True, kw_only=True):
    """A verdict as a judge writes it; severity and correction are those of a contradicted step."""

    rests_on: tuple[str, ...]
    factual: Support
    weight: Weight
    error_types: tuple[ErrorType, ...]
    severity: Literal[Severity, "not applicable"]
    correction: str


class StepsForm(ReplyForm, frozen=True):
    """One verdict per step."""

    verdicts: tuple[StepForm, ...]


class StepsKind(JudgeKind[StepVerdict, StepScores]):
    """The rationale, segmented into steps."""

    name = "steps"
    plural = "steps"
    title = "Steps"
    about = "Steps of the rationale"
    rubric = ("factual", "weight", "severity", "error types")
    tasks = ("answer", "twi")
    max_units = MAX_STEPS
    is_cut_by_model = True
    shows_answer = True
    leading = "support"
    exam_part = RATIONALE
    aspects = (
        Aspect(name="support", categories=SUPPORTS, is_main=True, wrong="contradicted"),
        Aspect(name="factual", categories=(True, False), wrong=False),
        Aspect(name="critical", categories=(True, False)),
        Aspect(name="weight", categories=WEIGHTS),
        Aspect(name="severity", categories=SEVERITIES, is_ordered=True),
        Aspect(name="could harm", categories=(True, False)),
        *(Aspect(name=f"error: {name.replace('_', ' ')}", categories=(True, False)) for name in ERROR_TYPES),
    )
    columns = (
        ReaderColumn("factual", (*SUPPORTS, kind.UNSURE)),
        ReaderColumn("weight", (*WEIGHTS, kind.UNSURE)),
        ReaderColumn("error_types"),
        ReaderColumn("severity", (*SEVERITIES, kind.UNSURE)),
        ReaderColumn("correction"),
    )
    forms: ClassVar[Mapping[str, str]] = {
        "step": 'factual; weight; and only where factual is "contradicted": error_types (separated by semicolons, '
        "the main one first), severity, correction"
    }

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The rationale."""
        return JudgedTexts({RATIONALE: prediction.prediction_rationale or ""})

    def items(self, units: UnitSet) -> tuple[JudgedItem, ...]:
        """Every step."""
        return tuple(JudgedItem(id=unit.id, form="step", part=unit.part, text=unit.text) for unit in units.units)

    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:
        """One verdict per step; the reason comes first, so that it is given before the verdict."""
        verdict = object_of(
            id=one_of(units.ids),
            reason=TEXT,
            rests_on=list_of(one_of(rests_on)),
            factual=one_of(SUPPORTS),
            weight=one_of(WEIGHTS),
            error_types=list_of(one_of(ERROR_TYPES)),
            severity=one_of((*SEVERITIES, _NOT_APPLICABLE)),
            correction=TEXT,
        )
        return form_schema(self.name, call, verdicts=list_of(verdict))

    def read_reply(
        self, text: str, call: str, units: UnitSet, rests_on: Sequence[str]
    ) -> tuple[StepVerdict, ...] | ReplyFault:
        """One verdict per step, none of which contradicts itself."""
        form = read_form(text, StepsForm, call)
        matched = form if isinstance(form, ReplyFault) else match_ids(form.verdicts, units.ids)
        if isinstance(matched, ReplyFault):
            return matched
        fault = first_fault(_check(verdict, rests_on) for verdict in matched)
        return fault or tuple(map(_take, matched))

    def read_stored(self, rows: Sequence[Mapping[str, Any]]) -> tuple[StepVerdict, ...]:
        """The verdicts unchanged."""
        return msgspec.convert(rows, tuple[StepVerdict, ...])

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:  # noqa: ARG002
        """Compare options named and findings stated with the reference."""
        rulings = [rule_on_options(unit, evidence) or rule_on_findings(unit, evidence) for unit in units.units]
        verdicts = [
            StepForm(
                id=unit.id,
                reason=ruling.reason,
                rests_on=(ruling.rests_on,),
                factual=ruling.support,
                weight=_weigh(ruling),
                error_types=(ruling.error,) if ruling.error else (),
                severity="minor" if ruling.support == "contradicted" else "not applicable",
                correction=f"not: {unit.text}" if ruling.support == "contradicted" else "",
            )
            for unit, ruling in zip(units.units, rulings, strict=True)
        ]
        return {"verdicts": verdicts}

    def vote(self, ballots: Sequence[StepVerdict]) -> StepVerdict:
        """The majority on factual and on critical, the types of those who agree on it, and every ballot."""
        factual = majority_label([ballot.factual for ballot in ballots])
        agreeing = [ballot for ballot in ballots if ballot.factual == factual] or ballots
        return StepVerdict(
            id=ballots[0].id,
            factual=factual,
            critical=majority_label([ballot.critical for ballot in ballots]),
            error_types=_vote_types(agreeing) if factual else (),
            correction=agreeing[0].correction if factual else "",
            reason=agreeing[0].reason,
            rests_on=agreeing[0].rests_on,
            ballots=tuple(ballots),
        )

    def is_tie(self, verdict: StepVerdict) -> bool:
        """Whether there is no majority on what is true."""
        return verdict.factual is None

    def labels(self, verdict: StepVerdict) -> Labels:
        """Every aspect a verdict covers."""
        plain: dict[str, Label | None] = {
            "support": verdict.factual,
            "factual": verdict.factual and verdict.factual == "supported",
            "critical": verdict.critical,
            "weight": verdict.weight,
        }
        return plain | _severity_labels(verdict.severity) | _type_labels(verdict.error_types)

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:  # noqa: ARG002
        """Factual in three words or as yes and no, weight or critical, and for contradicted steps the rest."""
        factual, support = kind.read_factual(row.get("factual", ""))
        types = _name_types(factual, support, kind.read_types(row.get("error_types", "")))
        severity = kind.read_label("severity", row.get("severity", ""), SEVERITIES)
        if severity is not None and (factual or support in _OPEN):
            raise kind.ContradictoryCells(f"{row['factual'].strip()}, but with a severity")
        weight, critical = _read_weight(row)
        plain: dict[str, Label | None] = {
            "support": support,
            "factual": factual,
            "critical": critical,
            "weight": weight,
        }
        return plain | _severity_labels(severity) | _type_labels(types)

    def gaps(self, form: str, row: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002
        """Factual; then weight, unless the reader is unsure; for a contradicted step also type and severity."""
        said = row.get("factual", "").strip()
        due = ["factual", *(["weight"] if said != kind.UNSURE else [])]
        due += ["error_types", "severity"] if said == "contradicted" else []
        return tuple(name for name in due if not row.get(name, "").strip())

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> StepScores:
        """The error profile, soundness and first errors."""
        given = [(row, self.given(row)) for row in rows]
        return score_steps(given, common_scores(rows, units), rights, hedged_units(units, self.name))

    def tables(self, scores: StepScores) -> tuple[ScoreTable, ...]:
        """Wrong steps, soundness, first errors and types of error."""
        return step_tables(scores)

    def slice_cells(self, scores: StepScores) -> dict[str, ScoreCell]:
        """Wrong steps, types of error, and soundness."""
        return step_slice_cells(scores)


def _take(form: StepForm) -> StepVerdict:
    """The verdict kept from a reply."""
    return StepVerdict(
        id=form.id,
        reason=form.reason,
        factual=form.factual,
        weight=form.weight,
        critical=form.weight in CRITICAL,
        error_types=form.error_types,
        severity=None if form.severity == "not applicable" else form.severity,
        correction=form.correction.strip(),
        rests_on=form.rests_on,
    )


def _weigh(ruling: RuleVerdict) -> Weight:
    if ruling.is_about_options:
        return "decisive"
    return "incidental" if ruling.support in _OPEN else "contributory"


def _read_weight(row: Mapping[str, str]) -> tuple[Weight | None, bool | None]:
    """The weight, and whether that is critical; published tables have critical only."""
    weight = kind.read_label("weight", row.get("weight", ""), WEIGHTS)
    critical = kind.read_truth("critical", row.get("critical", ""))
    if weight is None:
        return None, critical
    if critical is not None and critical != (weight in CRITICAL):
        raise kind.ContradictoryCells(f"{weight}, but critical: {row['critical'].strip()}")
    return weight, weight in CRITICAL


def _severity_labels(severity: Severity | None) -> dict[str, Label | None]:
    return {"severity": severity, "could harm": None if severity is None else severity in SEVERE}


def _check(verdict: StepForm, rests_on: Sequence[str]) -> ReplyFault | None:
    """The fault of a verdict that contradicts itself or names unknown evidence; None if it has none."""
    if verdict.factual == "contradicted":
        fault = _check_contradicted(verdict)
    else:
        fault = _check_others(verdict)
    if fault is not None:
        return fault
    if len(set(verdict.error_types)) < len(verdict.error_types):
        return ReplyFault("wrong_form", f"{verdict.id} names an error type twice")
    return check_grounds(verdict, verdict.rests_on, rests_on)


def _check_contradicted(verdict: StepForm) -> ReplyFault | None:
    if not verdict.error_types:
        return ReplyFault("contradictory", f"{verdict.id} is contradicted and has no error type")
    if verdict.severity == _NOT_APPLICABLE:
        return ReplyFault("contradictory", f"{verdict.id} is contradicted and has no severity")
    if not verdict.correction.strip():
        return ReplyFault("contradictory", f"{verdict.id} is contradicted and has no correction")
    return None


def _check_others(verdict: StepForm) -> ReplyFault | None:
    if verdict.error_types:
        return ReplyFault("contradictory", f"{verdict.id} is {verdict.factual} and has error types")
    if verdict.severity != _NOT_APPLICABLE or verdict.correction.strip():
        return ReplyFault("contradictory", f"{verdict.id} is {verdict.factual} and has a severity or correction")
    return None


def _vote_types(agreeing: Sequence[StepVerdict]) -> tuple[ErrorType, ...]:
    """The types a majority names; if there is none, the one named most often, so that no error loses its type."""
    counts = Counter(error for ballot in agreeing for error in ballot.error_types)
    common = [error for error, count in counts.items() if 2 * count > len(agreeing)]
    likeliest = sorted(counts, key=lambda error: (-counts[error], ERROR_TYPES.index(error)))[:1]
    return tuple(sorted(common or likeliest, key=ERROR_TYPES.index))


def _type_labels(named: Sequence[ErrorType] | None) -> dict[str, Label | None]:
    """Whether each type was named; unknown where a rater named none for a wrong step."""
    return {f"error: {name.replace('_', ' ')}": None if named is None else name in named for name in ERROR_TYPES}


def _name_types(
    factual: bool | None, support: Support | None, types: tuple[ErrorType, ...]
) -> tuple[ErrorType, ...] | None:
    """The types that were named, or None if unknown: a wrong step must have one."""
    is_right = factual or support in _OPEN
    if is_right and types:
        raise kind.ContradictoryCells(f"{'factual' if factual else support}, but with error types")
    if factual is None:
        return None
    return types if types or is_right else None
