"""Omissions: which decisive findings of the case a text mentions, misses or contradicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from medthink.judge import cells
from medthink.judge.ballots import majority
from medthink.judge.coverage import Units
from medthink.judge.evidence import Evidence
from medthink.judge.forms import match_ids
from medthink.judge.judgement import Judgement
from medthink.judge.kinds.kind import Aspect, Column, Item, JudgeKind, Labels, Texts, common_scores
from medthink.judge.scores import Rights, ScoreCell, ScoreTable, SeatScores, count_cell, rate_of, share_cell
from medthink.judge.units import NOT_SHOWN, Source, UnitSet
from medthink.judge.verdicts import UnitVerdict
from medthink.metrics.findings import compare_findings
from medthink.models.request import Schema
from medthink.runs.prediction import Prediction
from medthink.stats import Measured
from medthink.workflow.reply_forms import (
    TEXT,
    Fault,
    ReplyForm,
    first_fault,
    form_schema,
    list_of,
    object_of,
    one_of,
    read_form,
)

Omission = Literal["mentioned", "missed", "contradicted"]
OMISSIONS: tuple[Omission, ...] = get_args(Omission)
PARTS = ("rationale", "summary", "findings of images")
_NOTE = (
    "Recall: the share of the case's decisive findings that a text mentions. Findings on images that the author was "
    "not shown are counted apart."
)


class OmissionVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a text mentions a decisive finding."""

    finding: Omission


class OmissionsForm(ReplyForm, frozen=True):
    """One verdict per decisive finding and text."""

    verdicts: tuple[OmissionVerdict, ...]


class OmissionScores(SeatScores, frozen=True, kw_only=True):
    """How many decisive findings the texts of a run mention, by part.

    `not_shown` counts apart those on images that the author was not shown.
    """

    decisive: int
    parts: dict[str, dict[str, Measured]]
    not_shown: dict[str, Measured]


class OmissionsKind(JudgeKind[OmissionVerdict, OmissionScores]):
    """The decisive findings, looked for in rationale, summary and findings of images."""

    name = "omissions"
    plural = "omissions"
    uses_decisive = True
    leading = "omission"
    true_label = "mentioned"
    exam_part = "summary"
    aspects = (Aspect(name="omission", categories=OMISSIONS, is_main=True, wrong="missed"),)
    columns = (Column("finding", (*OMISSIONS, cells.UNSURE)),)

    def texts(self, prediction: Prediction) -> Texts:
        """Whatever of the three a prediction has."""
        steps = prediction.prediction_twi
        images = "\n".join(text or "" for text in (steps.step1_per_image_findings or ()) if steps) if steps else ""
        summary = (steps.step2_integrated_summary or "") if steps else ""
        texts = (prediction.prediction_rationale or "", summary, images)
        return Texts(dict(zip(PARTS, texts, strict=True)))

    def items(self, units: UnitSet) -> tuple[Item, ...]:
        """Every decisive finding in every text."""
        return tuple(Item(id=unit.id, form="omission", part=unit.part, text=unit.text) for unit in units.units)

    def schema(self, call: str, units: UnitSet, rests_on: Sequence[str]) -> Schema:  # noqa: ARG002
        """One verdict per finding and text."""
        verdict = object_of(id=one_of(units.ids), reason=TEXT, finding=one_of(OMISSIONS))
        return form_schema(self.name, call, verdicts=list_of(verdict))

    def read_reply(
        self,
        text: str,
        call: str,
        units: UnitSet,
        rests_on: Sequence[str],  # noqa: ARG002
    ) -> tuple[OmissionVerdict, ...] | Fault:
        """One verdict per finding and text, each with a reason."""
        form = read_form(text, OmissionsForm, call)
        matched = form if isinstance(form, Fault) else match_ids(form.verdicts, units.ids)
        if isinstance(matched, Fault):
            return matched
        return first_fault(_check(one) for one in matched) or matched

    def read_stored(self, row: Mapping[str, Any]) -> tuple[OmissionVerdict, ...]:
        """The verdicts as they are."""
        return msgspec.convert(row.get("verdicts") or (), tuple[OmissionVerdict, ...])

    def judge_by_rule(self, units: UnitSet, evidence: Evidence, source: Source) -> dict[str, Any]:  # noqa: ARG002
        """Compare every decisive finding with those that the text states."""
        verdicts = []
        for unit in units.units:
            found = compare_findings(unit.text, source.parts[unit.part.removesuffix(NOT_SHOWN)])
            word: Omission = "contradicted" if found.conflicts else "mentioned" if found.matched else "missed"
            verdicts.append(OmissionVerdict(id=unit.id, reason="by comparison of findings", finding=word))
        return {"verdicts": verdicts}

    def vote(self, ballots: Sequence[OmissionVerdict]) -> OmissionVerdict | None:
        """What most say."""
        word = majority([ballot.finding for ballot in ballots])
        return next((ballot for ballot in ballots if ballot.finding == word), None)

    def labels(self, verdict: OmissionVerdict) -> Labels:
        """The label alone."""
        return {"omission": verdict.finding}

    def read_cells(self, form: str, row: Mapping[str, str]) -> Labels:  # noqa: ARG002
        """One of the three words."""
        return {"omission": cells.read_word("finding", row.get("finding", ""), OMISSIONS)}

    def score(self, rows: Sequence[Judgement], units: Units, rights: Rights) -> OmissionScores:  # noqa: ARG002
        """Recall of decisive findings by part."""
        parts = {unit.id: unit.part for one in units.values() if one.what == self.name for unit in one.units}
        found = [(row.case, parts[one.id], one.finding) for row in rows for one in self.given(row)]
        return OmissionScores(
            **common_scores(rows, units),
            decisive=len(found),
            parts={name: _rates((c, said) for c, part, said in found if part == name) for name in PARTS},
            not_shown=_rates((c, said) for c, part, said in found if part.endswith(NOT_SHOWN)),
        )

    def tables(self, scores: OmissionScores) -> tuple[ScoreTable, ...]:
        """Recall of each text; what the author was not shown is apart."""
        row: dict[str, ScoreCell] = {"Decisive findings": count_cell(scores.decisive)}
        for name, rates in scores.parts.items():
            row |= {f"{name}: {word}": share_cell(rates[word]) for word in ("mentioned", "contradicted")}
        row["image not shown: mentioned"] = share_cell(scores.not_shown["mentioned"])
        return (ScoreTable(heading="Decisive findings", aspects=("omission",), rows=(row,), note=_NOTE),)


def _rates(said: Iterable[tuple[int, str]]) -> dict[str, Measured]:
    rows = list(said)
    return {word: rate_of((case, label == word) for case, label in rows) for word in OMISSIONS}


def _check(verdict: OmissionVerdict) -> Fault | None:
    return None if verdict.reason.strip() else Fault("wrong_form", f"{verdict.id} has no reason")
