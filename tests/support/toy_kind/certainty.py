"""How sure each sentence of a rationale sounds: a toy kind of judging, to see what a new one takes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds.kind import Aspect, JudgedTexts, ReaderColumn, common_scores
from medthink.judge.kinds.single_label import SingleLabelKind
from medthink.judge.scores import JudgeConfigScores, Rights, ScoreCell, ScoreTable, Units, clustered_rate
from medthink.judge.units import UnitSet, UnitSource
from medthink.stats import Measured
from medthink.workflow.prediction import Prediction


class CertaintyVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a sentence hedges."""

    certainty: Literal["plain", "hedged"]


class CertaintyScores(JudgeConfigScores, frozen=True, kw_only=True):
    """How many sentences hedge."""

    sentences: int
    hedged: Measured


class CertaintyKind(SingleLabelKind[CertaintyVerdict, CertaintyScores]):
    """Every sentence of the rationale: plain or hedged."""

    name = "certainty"
    plural = "certainties"
    title = "Certainty"
    about = "How sure each sentence sounds"
    leading = "certainty"
    true_label = "plain"
    exam_part = "rationale"
    aspects = (Aspect(name="certainty", categories=("plain", "hedged"), is_main=True, wrong="hedged"),)
    columns = (ReaderColumn("certainty", ("plain", "hedged")),)
    forms: ClassVar[Mapping[str, str]] = {"sureness": "certainty (plain or hedged)"}
    verdict = CertaintyVerdict
    field = "certainty"
    column = "certainty"

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """The rationale."""
        return JudgedTexts({"rationale": prediction.prediction_rationale or ""})

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:
        """A sentence with "may" in it hedges."""
        return {
            "verdicts": [
                CertaintyVerdict(id=unit.id, reason="by rule", certainty="hedged" if "may" in unit.text else "plain")
                for unit in units.units
            ]
        }

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> CertaintyScores:
        """The share of hedged sentences."""
        found = [(row.case, one.certainty == "hedged") for row in rows for one in self.given(row)]
        return CertaintyScores(**common_scores(rows, units), sentences=len(found), hedged=clustered_rate(found))

    def tables(self, scores: CertaintyScores) -> tuple[ScoreTable, ...]:
        """One row."""
        row = {"Sentences": ScoreCell(scores.sentences), "Hedged": ScoreCell(scores.hedged)}
        return (ScoreTable(heading="Certainty of the reasoning", aspects=("certainty",), rows=(row,)),)
