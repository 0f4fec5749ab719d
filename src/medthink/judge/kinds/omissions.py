"""Omissions: which decisive findings of the case a text mentions, misses or contradicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from medthink.judge.edits import DELETED
from medthink.judge.judgement import Evidence, Judgement, UnitVerdict
from medthink.judge.kinds import kind
from medthink.judge.kinds.kind import Aspect, JudgedTexts, ReaderColumn, common_scores
from medthink.judge.kinds.single_label import SingleLabelKind
from medthink.judge.scores import (
    HEDGED,
    JudgeConfigScores,
    Rights,
    ScoreCell,
    ScoreTable,
    Units,
    clustered_mean,
    clustered_rate,
)
from medthink.judge.units import NOT_SHOWN, UnitSet, UnitSource
from medthink.metrics.findings import compare_findings
from medthink.stats import Measured
from medthink.workflow.prediction import Prediction

Omission = Literal["mentioned", "hedged", "missed", "contradicted"]
OMISSIONS: tuple[Omission, ...] = get_args(Omission)
PARTS = ("rationale", "summary", "findings of images")
_NOTE = (
    "Recall: the share of the case's decisive findings that a text mentions; one that is only called possible (hedged) "
    "counts half. Findings on images that the author was not shown are counted separately."
)


class OmissionVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a text mentions a decisive finding."""

    finding: Omission


class OmissionScores(JudgeConfigScores, frozen=True, kw_only=True):
    """The decisive findings that the texts of a run mention, by part.

    In `recall` a hedged mention counts half; `not_shown` counts separately those on images the author was not shown.
    """

    decisive: int
    recall: dict[str, Measured]
    parts: dict[str, dict[str, Measured]]
    not_shown: dict[str, Measured]


class OmissionsKind(SingleLabelKind[OmissionVerdict, OmissionScores]):
    """The decisive findings, looked for in the rationale, the summary and the findings of each image."""

    name = "omissions"
    plural = "omissions"
    title = "Omissions"
    about = "Missed decisive findings"
    rubric = ("omissions",)
    uses_decisive = True
    leading = "omission"
    true_label = "mentioned"
    exam_part = "summary"
    aspects = (Aspect(name="omission", categories=OMISSIONS, is_main=True, wrong="missed"),)
    columns = (ReaderColumn("finding", (*OMISSIONS, kind.UNSURE)),)
    forms: ClassVar[Mapping[str, str]] = {"omission": "finding (mentioned, hedged, missed or contradicted)"}
    verdict = OmissionVerdict
    field = "finding"
    column = "finding"

    def texts(self, prediction: Prediction) -> JudgedTexts:
        """Those of the three that a prediction has."""
        steps = prediction.prediction_twi
        images = "\n".join(text or "" for text in (steps.step1_per_image_findings or ()) if steps) if steps else ""
        summary = (steps.step2_integrated_summary or "") if steps else ""
        texts = (prediction.prediction_rationale or "", summary, images)
        return JudgedTexts(dict(zip(PARTS, texts, strict=True)))

    def label_for(self, edit: str) -> Omission:
        """A finding that the text states falsely is contradicted; one that it does not state is missed."""
        return "missed" if edit == DELETED else "contradicted"

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: UnitSource) -> dict[str, Any]:  # noqa: ARG002
        """Compare every decisive finding with those that the text states."""
        verdicts = []
        for unit in units.units:
            found = compare_findings(unit.text, source.parts[unit.part.removesuffix(NOT_SHOWN)])
            stated = [candidate for _, candidate in found.matched]
            said: Omission = "hedged" if stated and all(one.certainty == "uncertain" for one in stated) else "mentioned"
            word: Omission = "contradicted" if found.conflicts else said if found.matched else "missed"
            verdicts.append(OmissionVerdict(id=unit.id, reason="by comparison of findings", finding=word))
        return {"verdicts": verdicts}

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> OmissionScores:  # noqa: ARG002
        """Recall of decisive findings by part."""
        parts = {unit.id: unit.part for one in units.values() if one.what == self.name for unit in one.units}
        found = [(row.case, parts[one.id], one.finding) for row in rows for one in self.given(row)]
        return OmissionScores(
            **common_scores(rows, units),
            decisive=len(found),
            recall={name: _recall((c, said) for c, part, said in found if part == name) for name in PARTS},
            parts={name: _rates((c, said) for c, part, said in found if part == name) for name in PARTS},
            not_shown=_rates((c, said) for c, part, said in found if part.endswith(NOT_SHOWN)),
        )

    def tables(self, scores: OmissionScores) -> tuple[ScoreTable, ...]:
        """Recall of each text; findings on images that the author was not shown are counted separately."""
        row: dict[str, ScoreCell] = {"Decisive findings": ScoreCell(scores.decisive)}
        for name, rates in scores.parts.items():
            row[f"{name}: mentioned"] = ScoreCell(scores.recall[name])
            row |= {f"{name}: {word}": ScoreCell(rates[word]) for word in ("hedged", "contradicted")}
        row["image not shown: mentioned"] = ScoreCell(scores.not_shown["mentioned"])
        return (ScoreTable(heading="Decisive findings", aspects=("omission",), rows=(row,), note=_NOTE),)


def _recall(said: Iterable[tuple[int, str]]) -> Measured:
    counted = {"mentioned": 1.0, "hedged": HEDGED}
    return clustered_mean(((case, counted.get(label, 0.0)) for case, label in said), within=(0, 1))


def _rates(said: Iterable[tuple[int, str]]) -> dict[str, Measured]:
    rows = list(said)
    return {word: clustered_rate((case, label == word) for case, label in rows) for word in OMISSIONS}
