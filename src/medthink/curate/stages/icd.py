"""ICD: the category of the diagnosis (WHO 2019), with its block and chapter.

Rules find candidates and decide where the classification or a table has exactly this diagnosis. Else a model chooses
among the candidates, or says that none fits and names another, which must exist. Block and chapter are never asked for:
they follow from the category.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from medthink.cases.icd import category_title, icd_problems, is_category, labels_of
from medthink.core.errors import DataError
from medthink.curate.asking import StageAsk, curate_prompt
from medthink.curate.coding import Coding, find_coding
from medthink.curate.decision import StageResult, find_quote, keep, leave_open
from medthink.curate.draft import Draft
from medthink.curate.icd_terms import index_versions
from medthink.curate.stage import ModelSettings, Stage
from medthink.workflow.forms import TEXT, ReplyForm, one_of

_NONE, _UNSURE = "none of these", "cannot tell"
_FINDINGS_CHARS = 1500


class IcdSettings(ModelSettings, frozen=True, kw_only=True):
    """What happens to a case that rules cannot code when no model is asked."""

    uncoded: Annotated[
        Literal["keep", "hold"], Meta(description="Keep a case that was not coded, or hold it for a person.")
    ] = "keep"


class IcdForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's choice; `other` is the category it names where none of the candidates fits."""

    choice: str
    other: str


class IcdStage(Stage[IcdSettings]):
    """Diagnoses in, labels of three levels out."""

    name = "icd"
    settings_type = IcdSettings

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:
        """Keep labels that are consistent; otherwise code the diagnosis."""
        reference = draft.case.reference
        if not icd_problems(reference.icd_chapter, reference.icd_block, reference.icd_category):
            return keep(draft, reason="had-labels", by="rule the labels agree")
        coding = find_coding(draft.gold, aliases=draft.notes.aliases.get(draft.gold, ()), context=reference.findings)
        if coding.settled:
            return self._label(draft, coding.settled, reason="coded", by=f"rule {coding.rule}")
        if ask is not None:
            return await self._ask(draft, coding, ask)
        if self.settings.uncoded == "hold":
            return leave_open("uncoded", by="rule no table has it", proposal=_first(coding), detail=_told(coding))
        return keep(_with_candidates(draft, coding), reason="uncoded", by="rule no table has it", detail=_told(coding))

    async def _ask(self, draft: Draft, coding: Coding, ask: StageAsk) -> StageResult:
        codes = [candidate.category for candidate in coding.candidates]
        prompt = curate_prompt(
            "icd",
            draft.id,
            data={
                "diagnosis": draft.gold,
                "findings": draft.case.reference.findings[:_FINDINGS_CHARS],
                "candidates": [{"code": code, "title": category_title(code)} for code in codes],
            },
            form={"choice": one_of([*codes, _NONE, _UNSURE]), "other": TEXT},
            by_rules={"choice": codes[0] if codes else _NONE, "other": ""},
        )
        reply = await ask(prompt, IcdForm, draft.id)
        if reply.choice in codes:
            return self._label(draft, reply.choice, reason="coded", by=ask.by)
        other = reply.other.strip().upper()[:3]
        if reply.choice == _NONE and is_category(other):
            return self._label(draft, other, reason="coded-otherwise", by=ask.by)
        detail = f"{reply.choice}; {_told(coding)}"
        return leave_open("uncoded", by=ask.by, proposal=_first(coding), detail=detail)

    def _label(self, draft: Draft, category: str, *, reason: str, by: str) -> StageResult:
        quote = find_quote(draft, "correct_answer_text", draft.gold) or find_quote(
            draft, "curation.diagnosis", draft.gold
        )
        return keep(_labelled(draft, category), reason=reason, by=by, evidence=[quote] if quote else [])

    def agree(self, draft: Draft, ruling: str) -> Draft:
        """The draft with the category that a person chose, or unchanged if they chose none."""
        code = ruling.strip().upper()[:3]
        if not code:
            return draft
        if not is_category(code):
            problem = f"case {draft.id}: {ruling!r} is not a category of ICD-10 (WHO 2019)"
            raise DataError(problem, field="value", remedy="write three characters, such as C15")
        return _labelled(draft, code)

    def not_covered(self) -> tuple[str, ...]:
        """Without a model, only diagnoses that a table or the classification has verbatim are coded."""
        if self.settings.has_model:
            return ()
        return ("ICD labels of diagnoses that no table has verbatim: no model was asked",)

    def inputs(self) -> Any:
        """The versions of the classification."""
        return index_versions()


def _labelled(draft: Draft, category: str) -> Draft:
    labels = labels_of(category)
    return draft.with_reference(icd_chapter=labels.chapter, icd_block=labels.block, icd_category=labels.category)


def _with_candidates(draft: Draft, coding: Coding) -> Draft:
    return draft.with_mark("icd", {"candidates": [candidate.category for candidate in coding.candidates]})


def _first(coding: Coding) -> str:
    return coding.candidates[0].category if coding.candidates else ""


def _told(coding: Coding) -> str:
    listed = [f"{one.category} {category_title(one.category)}" for one in coding.candidates[:5]]
    return f"likeliest: {'; '.join(listed)}" if listed else "no candidate"


STAGE = IcdStage
