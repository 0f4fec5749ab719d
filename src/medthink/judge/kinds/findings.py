"""Findings of single images and their summary, judged statement by statement."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import Aspect, JudgedTexts, Labels, ReaderColumn, common_scores
from medthink.judge.kinds.rule_verdict import rule_on_findings
from medthink.judge.kinds.single_label import SingleLabelKind
from medthink.judge.rubric import SUPPORTS, Support
from medthink.judge.scores import JudgeConfigScores, Rights, ScoreCell, ScoreTable, Units, clustered_rate, hedged_units
from medthink.judge.units import UnitSet, UnitSource
from medthink.stats import Measured
from medthink.workflow.prediction import Prediction
from medthink.workflow.sentences import split_sentences

SUMMARY = "summary"


class StatementVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a statement of findings or summary is supported by the expert's words or the images."""

    support: Support
    rests_on: tuple[str, ...]


class FindingScores(JudgeConfigScores, frozen=True, kw_only=True):
    """Scores of findings and summaries from one judge."""

    statements: int
    hedged: Measured
    images: dict[str, Measured]
    summary: dict[str, Measured]


class FindingsKind(SingleLabelKind[StatementVerdict, FindingScores]):
    """The findings of each image, and the summary of all images."""

    name = "findings"
    plural = "findings"
    title = "Findings"
    about = "Findings of each image and their summary"
    rubric = ("factual",)
    leading = "statement"
    exam_part = SUMMARY
    aspects = (Aspect(name="statement", categories=SUPPORTS, is_main=True, wrong="contradicted"),)
    columns = (ReaderColumn("factual", (*SUPPORTS, kind.UNSURE)),)
    forms: ClassVar[Mapping[str, str]] = {"statement": "factual"}
    verdict = StatementVerdict
    field = "support"
    column = "factual"

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The findings of every image, and the summary."""
        steps = prediction.prediction_twi
        if steps is None:
            return JudgedTexts({})
        findings = {f"image {k}": text or "" for k, text in enumerate(steps.step1_per_image_findings or (), start=1)}
        parts = findings | {SUMMARY: steps.step2_integrated_summary or ""}
        return JudgedTexts(parts, tuple(name for name, text in parts.items() if not split_sentences(text)))

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:  # noqa: ARG002
        """Compare every statement with the expert's findings."""
        rulings = {unit.id: rule_on_findings(unit, evidence) for unit in units.units}
        verdicts = [
            StatementVerdict(id=key, support=ruling.support, reason=ruling.reason, rests_on=(ruling.rests_on,))
            for key, ruling in rulings.items()
        ]
        return {"verdicts": verdicts}

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:  # noqa: ARG002
        """Readers must use one of the three words: yes and no are not enough."""
        return {"statement": kind.read_support(row.get("factual", ""))}

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> FindingScores:  # noqa: ARG002
        """Support of statements about single images and of summaries."""
        parts = {unit.id: unit.part for one in units.values() for unit in one.units}
        hedged = hedged_units(units, self.name)
        found = [(row.case, parts[one.id], one.support) for row in rows for one in self.given(row)]
        return FindingScores(
            **common_scores(rows, units),
            statements=len(found),
            hedged=clustered_rate((row.case, one.id in hedged) for row in rows for one in self.given(row)),
            images={
                word: clustered_rate((c, s == word) for c, part, s in found if part != SUMMARY) for word in SUPPORTS
            },
            summary={
                word: clustered_rate((c, s == word) for c, part, s in found if part == SUMMARY) for word in SUPPORTS
            },
        )

    def tables(self, scores: FindingScores) -> tuple[ScoreTable, ...]:
        """Images and summary side by side."""
        row = {"Statements": ScoreCell(scores.statements), "Hedged": ScoreCell(scores.hedged)}
        row |= {f"Images: {word}": ScoreCell(scores.images[word]) for word in SUPPORTS}
        row |= {f"Summary: {word}": ScoreCell(scores.summary[word]) for word in SUPPORTS}
        return (ScoreTable(heading="Findings and summaries", aspects=("statement",), rows=(row,)),)
