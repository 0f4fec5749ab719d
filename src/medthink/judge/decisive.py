"""The decisive findings of a case: those that any text about it should mention. `decisive.jsonl`, one row per case.

A list is made once, by rules or by a model that must quote the expert's statement of each finding. Readers may edit the
file: a list whose digest no longer matches counts as theirs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.core.jsonio import read_stored_rows, write_jsonl
from medthink.metrics.findings import compare_findings
from medthink.workflow.carried import carry
from medthink.workflow.forms import TEXT, ReplyFault, ReplyForm, first_fault, list_of, object_of, one_of
from medthink.workflow.sentences import split_sentences

DECISIVE_FILE = "decisive.jsonl"
RULE = "rules"
EDITED = "edited"
MAX_DECISIVE = 7
_MIN_DECISIVE = 2
_STATED_IN_FINDINGS = "findings"


class DecisiveFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding with its decisive attribute, and the expert's text that states it: findings, or caption N."""

    text: str
    where: str = _STATED_IN_FINDINGS


class DecisiveList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisive findings of one case, who made the list, and the digests of the expert's texts and of the list."""

    case: int
    findings: tuple[DecisiveFinding, ...]
    made_by: str
    reference: str
    digest: str = ""

    def sealed(self) -> "DecisiveList":
        """The list with the digest of its findings."""
        return msgspec.structs.replace(self, digest=digest_value(msgspec.to_builtins(self.findings)))


class QuotedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding as a model lists it: where it is, and the expert's words that state it and that use it."""

    finding: str
    where: str
    stated: str
    used: str


class DecisiveForm(ReplyForm, frozen=True):
    """The list of a reply."""

    findings: tuple[QuotedFinding, ...]


def decisive_properties(case: Case) -> dict[str, dict[str, Any]]:
    """The schema of the list."""
    entry = object_of(finding=TEXT, where=one_of(list(_texts(case))), stated=TEXT, used=TEXT)
    return {"findings": list_of(entry)}


def decisive_data(case: Case) -> dict[str, Any]:
    """The data a model makes the list from."""
    return {
        "stated": _texts(case),
        "discussion": case.reference.discussion,
        "diagnosis": case.reference.answer_text,
        "options": case.question.options,
    }


def check_decisive(form: DecisiveForm, case: Case) -> tuple[DecisiveFinding, ...] | ReplyFault:
    """The findings, or the rule that they break."""
    if not _MIN_DECISIVE <= len(form.findings) <= MAX_DECISIVE:
        return ReplyFault("wrong_form", f"there must be {_MIN_DECISIVE} to {MAX_DECISIVE} findings")
    if len({_fold(one.finding) for one in form.findings}) < len(form.findings):
        return ReplyFault("wrong_form", "a finding is listed twice")
    faults = (_check_quoted(one, number, case) for number, one in enumerate(form.findings, start=1))
    found = tuple(DecisiveFinding(one.finding.strip(), one.where) for one in form.findings)
    return first_fault(faults) or found


def _check_quoted(one: QuotedFinding, number: int, case: Case) -> ReplyFault | None:
    """The reason why a finding may not be listed: the expert does not state or use it, or it is the diagnosis."""
    used_in = f"{case.reference.discussion} {case.reference.answer_text}"
    if not one.finding.strip() or not _quotes(one.stated, _texts(case).get(one.where, "")):
        return ReplyFault("wrong_form", f'finding {number}: "stated" is not a quotation of the text named by "where"')
    if not _quotes(one.used, used_in):
        return ReplyFault("wrong_form", f'finding {number}: "used" is not a quotation of the discussion or diagnosis')
    if _quotes(case.reference.answer_text, one.finding):
        return ReplyFault("contradictory", f"finding {number} is the diagnosis")
    return None


def _quotes(piece: str, text: str) -> bool:
    return bool(piece.strip()) and _fold(piece) in _fold(text)


def list_by_rule(case: Case) -> DecisiveList:
    """Sentences of findings and captions that the discussion refers to; if these are too few, the first sentences."""
    found: list[DecisiveFinding] = []
    others: list[DecisiveFinding] = []
    for where, text in _texts(case).items():
        for statement in carry(text, split_sentences(text)):
            sentence = statement.shown(text)
            known = any(_fold(one.text) == _fold(sentence) for one in (*found, *others))
            if known or not compare_findings(sentence, sentence).matched:
                continue
            is_used = compare_findings(case.reference.discussion, sentence).matched
            (found if is_used else others).append(DecisiveFinding(sentence, where))
    chosen = found if len(found) >= _MIN_DECISIVE else (*found, *others)[: max(len(found), _MIN_DECISIVE)]
    return make_list(case, tuple(chosen[:MAX_DECISIVE]), made_by=RULE)


def make_list(case: Case, findings: tuple[DecisiveFinding, ...], *, made_by: str) -> DecisiveList:
    """A case's list, sealed."""
    return DecisiveList(case=case.id, findings=findings, made_by=made_by, reference=digest_reference(case)).sealed()


def digest_reference(case: Case) -> str:
    """The digest of the expert's texts that a list is made from."""
    return digest_value([_texts(case), case.reference.discussion, case.reference.answer_text])


def read_decisive(run: Path) -> dict[int, DecisiveList]:
    """The lists of a run by case; an edited one is marked as such."""
    remedy = "correct the row, or delete it to have the list made again"
    found: dict[int, DecisiveList] = {}
    for one in read_stored_rows(run / DECISIVE_FILE, DecisiveList, name="a list of decisive findings", remedy=remedy):
        sealed = one.sealed()
        found[one.case] = one if one == sealed else msgspec.structs.replace(sealed, made_by=EDITED)
    return found


def write_decisive(run: Path, lists: Mapping[int, DecisiveList]) -> None:
    """Write the lists into the run, by case."""
    if lists:
        write_jsonl(run / DECISIVE_FILE, (msgspec.to_builtins(lists[case]) for case in sorted(lists)))


def is_shown(finding: DecisiveFinding, slots: Sequence[int], case: Case) -> bool:
    """Whether the author was shown the image with the finding: the caption's image, or any image for findings."""
    if not finding.where.startswith("caption "):
        return True
    place = int(finding.where.removeprefix("caption ")) - 1
    return place < len(case.question.images) and case.question.images[place].slot in slots


def _texts(case: Case) -> dict[str, str]:
    captions = {f"caption {k}": image.caption for k, image in enumerate(case.reference.images, start=1)}
    texts = {_STATED_IN_FINDINGS: case.reference.findings} | captions
    return {name: text for name, text in texts.items() if text.strip()}


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
