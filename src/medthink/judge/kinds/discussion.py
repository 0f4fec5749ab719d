"""Teaching discussions, judged sentence by sentence and for their education value."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from medthink.cases.sections import SECTIONS
from medthink.core.digest import digest_value
from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import (
    Aspect,
    JudgedItem,
    JudgedTexts,
    JudgeKind,
    Labels,
    ReaderColumn,
    common_scores,
    match_ids,
    refuse_no_reason,
)
from medthink.judge.kinds.rule_verdict import RuleVerdict, rule_on_findings
from medthink.judge.rubric import (
    DIMENSIONS,
    SCORES,
    SENTENCE_LABELS,
    ZEROS,
    Dimension,
    Score,
    SentenceLabel,
    Support,
    Zero,
)
from medthink.judge.scores import (
    JudgeConfigScores,
    Rights,
    ScoreCell,
    ScoreTable,
    Units,
    clustered_mean,
    clustered_rate,
    hedged_units,
    majority_label,
)
from medthink.judge.units import UnitSet, UnitSource
from medthink.models.request import Schema
from medthink.stats import Measured
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
from medthink.workflow.sentences import split_sentences

_SECTION_OF: dict[Dimension, str] = {
    "disease_definition": "background",
    "clinical_manifestation": "clinical_perspective",
    "imaging_findings": "imaging_perspective",
    "diagnostic_reasoning": "clinical_significance",
    "transferable_learning": "teaching_points",
}
_LABEL_OF: dict[Support, SentenceLabel] = {
    "supported": "correct",
    "contradicted": "incorrect",
    "not described": "not described",
    "unverifiable": "unverifiable",
}
_SCORE_WORDS = tuple(map(str, SCORES))


class SentenceVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a sentence of a discussion is true."""

    label: SentenceLabel


class EducationVerdict(UnitVerdict, frozen=True, kw_only=True):
    """A discussion's education value in one dimension; `zero` says why a score is 0.

    The verdict of a panel has the `ballots` that it was made from: all of them count.
    """

    dimension: Dimension
    score: Score
    zero: Zero | None = None
    ballots: tuple["EducationVerdict", ...] = ()


class DimensionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One score of a reply."""

    dimension: Dimension
    reason: str
    score: Score
    zero: Literal[Zero, "not applicable"]


class DiscussionForm(ReplyForm, frozen=True):
    """One verdict per sentence, and one score per dimension."""

    verdicts: tuple[SentenceVerdict, ...]
    education: tuple[DimensionForm, ...]


class DiscussionScores(JudgeConfigScores, frozen=True, kw_only=True):
    """The scores of a run's discussions from one judge; scores of a dimension run from 0 to 2, the total to 10."""

    sentences: int
    hedged: Measured
    labels: dict[str, Measured]
    by_section: dict[str, dict[str, Measured]]
    missing_sections: dict[str, int]
    education: dict[Dimension, Measured]
    levels: dict[Dimension, dict[int, int]]
    zeros: dict[Dimension, dict[str, int]]
    total: Measured


class DiscussionKind(JudgeKind[SentenceVerdict | EducationVerdict, DiscussionScores]):
    """A teaching discussion of six sections."""

    name = "discussion"
    plural = "discussions"
    title = "Discussion"
    about = "Teaching discussions"
    rubric = ("factual", "education")
    tasks = ("discussion",)
    leading = "sentence"
    true_label = "correct"
    exam_part = "imaging_perspective"
    aspects = (
        Aspect(name="sentence", categories=SENTENCE_LABELS, is_main=True, wrong="incorrect"),
        Aspect(name="education", categories=SCORES, is_main=True, is_ordered=True),
        Aspect(name="reason for 0", categories=ZEROS),
    )
    columns = (
        ReaderColumn("label", (*SENTENCE_LABELS, kind.UNSURE)),
        ReaderColumn("score", _SCORE_WORDS),
        ReaderColumn("zero", ZEROS),
    )
    forms: ClassVar[Mapping[str, str]] = {
        "sentence": "label (correct = supported, incorrect = contradicted, not described, unverifiable)",
        "education": "score (0, 1 or 2) of the whole discussion; for a 0 also zero (absent or wrong)",
    }

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The six sections."""
        texts = prediction.discussion or {}
        missing = tuple(name for name in SECTIONS if texts and not split_sentences(texts.get(name, "")))
        return JudgedTexts({name: texts.get(name, "") for name in SECTIONS}, missing)

    def items(self, units: UnitSet) -> tuple[JudgedItem, ...]:
        """Every sentence, and the five dimensions of the whole."""
        sentences = tuple(
            JudgedItem(id=unit.id, form="sentence", part=unit.part, text=unit.text) for unit in units.units
        )
        if units.state != "ok":
            return sentences
        dimensions = (
            JudgedItem(
                id=education_id(units.ids, name),
                form="education",
                part=name,
                text=f"{name.replace('_', ' ')} of the whole discussion (0, 1 or 2)",
            )
            for name in DIMENSIONS
        )
        return (*sentences, *dimensions)

    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:  # noqa: ARG002
        """One verdict per sentence, and one score per dimension."""
        verdict = object_of(id=one_of(units.ids), reason=TEXT, label=one_of(SENTENCE_LABELS))
        zero = one_of((*ZEROS, "not applicable"))
        education = object_of(dimension=one_of(DIMENSIONS), reason=TEXT, score={"type": "integer"}, zero=zero)
        return form_schema(self.name, call, verdicts=list_of(verdict), education=list_of(education))

    def read_reply(
        self,
        text: str,
        call: str,
        units: UnitSet,
        rests_on: Sequence[str],  # noqa: ARG002
    ) -> tuple[SentenceVerdict | EducationVerdict, ...] | ReplyFault:
        """One verdict per sentence and one score per dimension; both are required."""
        form = read_form(text, DiscussionForm, call)
        if isinstance(form, ReplyFault):
            return form
        sentences = match_ids(form.verdicts, units.ids)
        if isinstance(sentences, ReplyFault):
            return sentences
        education = match_dimensions(form.education, units.ids)
        return education if isinstance(education, ReplyFault) else (*sentences, *education)

    def read_stored(self, rows: Sequence[Mapping[str, Any]]) -> tuple[SentenceVerdict | EducationVerdict, ...]:
        """Sentences, which have a label, and scores."""
        return tuple(
            msgspec.convert(row, SentenceVerdict) if "label" in row else msgspec.convert(row, EducationVerdict)
            for row in rows
        )

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:  # noqa: ARG002
        """Compare every sentence with the expert's findings, and check whether each dimension's section is present."""
        rulings = {unit.id: rule_on_findings(unit, evidence) for unit in units.units}
        verdicts = [
            SentenceVerdict(id=key, label=_LABEL_OF[ruling.support], reason=ruling.reason)
            for key, ruling in rulings.items()
        ]
        return {"verdicts": verdicts, "education": [_score_by_rule(name, units, rulings) for name in DIMENSIONS]}

    def vote(self, ballots: Sequence[SentenceVerdict | EducationVerdict]) -> SentenceVerdict | EducationVerdict | None:
        """The majority label; for scores, which lie on a scale, every ballot."""
        scores = tuple(one for one in ballots if isinstance(one, EducationVerdict))
        if scores:
            return msgspec.structs.replace(scores[0], ballots=scores)
        sentences = [one for one in ballots if isinstance(one, SentenceVerdict)]
        label = majority_label([one.label for one in sentences])
        return next((one for one in sentences if one.label == label), None)

    def labels(self, verdict: SentenceVerdict | EducationVerdict) -> Labels:
        """A sentence's label, or a dimension's score."""
        if isinstance(verdict, EducationVerdict):
            return {"education": verdict.score, "reason for 0": verdict.zero}
        return {"sentence": verdict.label}

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:
        """A label for a sentence, 0, 1 or 2 for a dimension."""
        if form == "education":
            word = kind.read_label("score", row.get("score", ""), _SCORE_WORDS)
            zero = kind.read_label("zero", row.get("zero", ""), ZEROS)
            if zero is not None and word != "0":
                raise kind.ContradictoryCells(f"zero: {zero}, but the score is not 0")
            return {"education": None if word is None else int(word), "reason for 0": zero}
        return {"sentence": kind.read_label("label", row.get("label", ""), SENTENCE_LABELS)}

    def columns_of(self, form: str) -> tuple[ReaderColumn, ...]:
        """A label for a sentence; a score, and the reason for a 0, for a dimension."""
        label, *education = self.columns
        return tuple(education) if form == "education" else (label,)

    def gaps(self, form: str, row: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence's label; a dimension's score, and the reason for a 0."""
        if form != "education":
            return () if row.get("label", "").strip() else ("label",)
        score = row.get("score", "").strip()
        if not score:
            return ("score",)
        return ("zero",) if score == "0" and not row.get("zero", "").strip() else ()

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> DiscussionScores:  # noqa: ARG002
        """Sentence correctness by section, and education value by dimension."""
        parts = {unit.id: unit.part for one in units.values() for unit in one.units}
        given = [(row, one) for row in rows for one in self.given(row)]
        hedged = hedged_units(units, self.name)
        labelled = [(row.case, parts[one.id], one.label) for row, one in given if isinstance(one, SentenceVerdict)]
        education = [(row, one) for row, given in ((row, self.given(row)) for row in rows) for one in _votes(given)]
        scores = [(row.case, one.dimension, one.score) for row, one in education]
        zeros = [(one.dimension, one.zero) for _, one in education if one.zero]
        totals = [(row.case, total) for row in rows if (total := self._total(row)) is not None]
        missing = Counter(part for one in units.values() for part in one.missing)
        return DiscussionScores(
            **common_scores(rows, units),
            sentences=len(labelled),
            hedged=clustered_rate(
                (row.case, one.id in hedged) for row, one in given if isinstance(one, SentenceVerdict)
            ),
            labels={
                word: clustered_rate((case, label == word) for case, _, label in labelled) for word in SENTENCE_LABELS
            },
            by_section={name: _section(labelled, name) for name in SECTIONS},
            missing_sections={name: missing[name] for name in SECTIONS},
            education={
                name: clustered_mean(((c, score) for c, one, score in scores if one == name), within=(0, 2))
                for name in DIMENSIONS
            },
            levels={name: _count_levels(score for _, one, score in scores if one == name) for name in DIMENSIONS},
            zeros={name: dict(Counter(str(why) for one, why in zeros if one == name)) for name in DIMENSIONS},
            total=clustered_mean(totals, within=(0, 10)),
        )

    def _total(self, row: Judgement) -> float | None:
        """The sum of the dimensions, each the mean of its votes."""
        votes = _votes(self.given(row))
        return len(DIMENSIONS) * sum(one.score for one in votes) / len(votes) if votes else None

    def tables(self, scores: DiscussionScores) -> tuple[ScoreTable, ...]:
        """Correctness of the sentences and education value; the report shows the details as a figure."""
        row = {
            "Sentences": ScoreCell(scores.sentences),
            "Correct": ScoreCell(scores.labels["correct"]),
            "Incorrect": ScoreCell(scores.labels["incorrect"]),
            "Not described": ScoreCell(scores.labels["not described"]),
            "Hedged": ScoreCell(scores.hedged),
            "Education value (0–10)": ScoreCell(scores.total, 1),
        }
        dimensions = tuple(
            {"dimension (0–2)": ScoreCell(name.replace("_", " ")), "mean": ScoreCell(mean, 2)}
            | {why: ScoreCell(scores.zeros[name].get(why, 0)) for why in ZEROS}
            for name, mean in scores.education.items()
        )
        sections = tuple(
            {
                "section": ScoreCell(name.replace("_", " ")),
                **{label: ScoreCell(by[label]) for label in SENTENCE_LABELS},
                "missing": ScoreCell(scores.missing_sections[name]),
            }
            for name, by in scores.by_section.items()
        )
        aspects = ("sentence", "education")
        return (
            ScoreTable(heading="Discussions", aspects=aspects, rows=(row,)),
            ScoreTable(heading="Education value", aspects=("education",), rows=dimensions, in_report=False),
            ScoreTable(heading="Sentences by section", aspects=("sentence",), rows=sections, in_report=False),
        )

    def slice_cells(self, scores: DiscussionScores) -> dict[str, ScoreCell]:
        """Sentences by label and section, education by dimension."""
        return {
            "Correct": ScoreCell(scores.labels["correct"]),
            "Incorrect": ScoreCell(scores.labels["incorrect"]),
            "Not described": ScoreCell(scores.labels["not described"]),
            "Hedged": ScoreCell(scores.hedged),
            **{
                f"Correct: {name.replace('_', ' ')}": ScoreCell(by["correct"]) for name, by in scores.by_section.items()
            },
            **{f"{name.replace('_', ' ')} (0–2)": ScoreCell(mean, 2) for name, mean in scores.education.items()},
            "Education value (0–10)": ScoreCell(scores.total, 1),
        }


def _votes(verdicts: Iterable[SentenceVerdict | EducationVerdict]) -> list[EducationVerdict]:
    """The scores of one judge, or those of all judges of a panel."""
    given = [one for one in verdicts if isinstance(one, EducationVerdict)]
    return [vote for one in given for vote in one.ballots or (one,)]


def education_id(ids: Iterable[str], dimension: str) -> str:
    """The id of one dimension of the discussion that has these sentences."""
    return digest_value(["education", dimension, *ids])[:12]


def match_dimensions(scores: Sequence[DimensionForm], ids: Sequence[str]) -> tuple[EducationVerdict, ...] | ReplyFault:
    """The scores in the order of the dimensions; each needs exactly one."""
    if sorted(score.dimension for score in scores) != sorted(DIMENSIONS):
        return ReplyFault("wrong_ids", "each of the five dimensions needs exactly one score")
    wrong = [one.dimension for one in scores if (one.score == 0) == (one.zero == "not applicable")]
    if wrong:
        return ReplyFault("contradictory", f'{wrong[0]}: "zero" must say absent or wrong for a 0, and only for a 0')
    ordered = sorted(scores, key=lambda score: DIMENSIONS.index(score.dimension))
    return first_fault(refuse_no_reason(one.dimension, one.reason) for one in ordered) or tuple(
        EducationVerdict(
            id=education_id(ids, one.dimension),
            dimension=one.dimension,
            reason=one.reason,
            score=one.score,
            zero=None if one.zero == "not applicable" else one.zero,
        )
        for one in ordered
    )


def _score_by_rule(name: Dimension, units: UnitSet, rulings: Mapping[str, RuleVerdict]) -> DimensionForm:
    section = [rulings[unit.id] for unit in units.units if unit.part == _SECTION_OF[name]]
    if not section:
        return DimensionForm(dimension=name, score=0, zero="absent", reason="its section is missing")
    if any(ruling.support == "supported" for ruling in section):
        return DimensionForm(dimension=name, score=2, zero="not applicable", reason="a finding of its section matches")
    return DimensionForm(dimension=name, score=1, zero="not applicable", reason="the section is present")


def _section(labelled: Sequence[tuple[int, str, str]], name: str) -> dict[str, Measured]:
    inside = [(case, label) for case, part, label in labelled if part == name]
    return {word: clustered_rate((case, label == word) for case, label in inside) for word in SENTENCE_LABELS}


def _count_levels(scores: Iterable[int]) -> dict[int, int]:
    counts = Counter(scores)
    return {level: counts[level] for level in SCORES}
