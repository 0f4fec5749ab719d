"""Written texts paired with the expert's: which exist, and which are missing, empty or superfluous."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from medthink.cases.sections import SECTIONS, split_discussion
from medthink.scoring.material import Material

PairState = Literal["ok", "missing", "empty", "extra", "no reference", "not in reference"]


class TextPair(NamedTuple):
    """One written text with the expert's; `group` is its modality, or a section's name.

    `id` names it in files computed elsewhere: `case/sample/slot` for findings, `case/sample` for a summary or a whole
    discussion, `case/sample/section` for a section.
    """

    id: str
    case: int
    state: PairState
    reference: str
    candidate: str
    group: str


def finding_pairs(material: Material) -> Iterator[TextPair]:
    """Step 1: every image's finding with its caption; an image without one is `missing`."""
    for one in material.predictions:
        case = material.cases[one.case]
        captions = {
            image.slot: (known.caption, known.modality)
            for image, known in zip(case.question.images, case.reference.images, strict=True)
        }
        written = (one.prediction_twi and one.prediction_twi.step1_per_image_findings) or ()
        for place, slot in enumerate(one.slots):
            caption, modality = captions[slot]
            text = written[place] if place < len(written) else None
            yield _pair(f"{one.case}/{one.sample}/{slot}", caption, text, modality)
        for number, text in enumerate(written[len(one.slots) :], start=1):
            yield TextPair(f"{one.case}/{one.sample}/extra{number}", one.case, "extra", "", text or "", "")


def summary_pairs(material: Material) -> Iterator[TextPair]:
    """Step 2: the summary with the expert's integrated findings."""
    for one in material.predictions:
        written = one.prediction_twi.step2_integrated_summary if one.prediction_twi else None
        yield _pair(f"{one.case}/{one.sample}", material.cases[one.case].reference.findings, written, "")


def discussion_pairs(material: Material) -> Iterator[TextPair]:
    """The whole discussion, without headings on either side."""
    for one in material.predictions:
        reference = split_discussion(material.cases[one.case].reference.discussion).body
        written = None if one.discussion is None else "\n\n".join(filter(None, map(one.discussion.get, SECTIONS)))
        yield _pair(f"{one.case}/{one.sample}", reference, written, "")


def section_pairs(material: Material) -> Iterator[TextPair]:
    """The discussion section by section, where the expert's has headings."""
    for one in material.predictions:
        sections = split_discussion(material.cases[one.case].reference.discussion).sections
        for section in SECTIONS if sections else ():
            text = (one.discussion or {}).get(section)
            pair = _pair(f"{one.case}/{one.sample}/{section}", sections.get(section, ""), text, section)
            yield pair._replace(state="not in reference") if section not in sections else pair


def _pair(name: str, reference: str, candidate: str | None, group: str) -> TextPair:
    state: PairState = "ok"
    if not reference.strip():
        state = "no reference"
    elif candidate is None:
        state = "missing"
    elif not candidate.strip():
        state = "empty"
    return TextPair(name, int(name.partition("/")[0]), state, reference, candidate or "", group)
