"""The texts that tasks write, each with its titles and paired with what the expert wrote about the same."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from medthink.cases.case import Case, Reference
from medthink.cases.sections import SECTIONS, split_discussion
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction

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


Pairing = Callable[[Prediction, Case], Iterable[TextPair]]


class WrittenText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that a task writes: its name in scores, its title, and its pairs with the expert's words.

    `heading` is what it is listed under. `is_scored` says under which conditions it is the model's own text about the
    case's own images; `sections` pairs it section by section too.
    """

    name: str
    title: str
    pairs: Pairing
    heading: str = "Written steps"
    is_scored: Callable[[Condition], bool] = lambda _: True
    sections: Pairing | None = None


def own_text(name: str, title: str, reference: Callable[[Reference], str]) -> WrittenText:
    """A text that a task has in a field of its outcome, with what the expert wrote about the same."""

    def pairs(one: Prediction, case: Case) -> Iterator[TextPair]:
        yield _pair(one, reference(case.reference), (one.texts or {}).get(name))

    return WrittenText(name=name, title=title, pairs=pairs)


def finding_pairs(one: Prediction, case: Case) -> Iterator[TextPair]:
    """Every image's finding with its caption; an image without one is `missing`."""
    captions = {
        image.slot: (known.caption, known.modality)
        for image, known in zip(case.question.images, case.reference.images, strict=True)
    }
    written = (one.prediction_twi and one.prediction_twi.step1_per_image_findings) or ()
    for place, slot in enumerate(one.slots):
        caption, modality = captions[slot]
        yield _pair(one, caption, written[place] if place < len(written) else None, part=f"/{slot}", group=modality)
    for number, text in enumerate(written[len(one.slots) :], start=1):
        yield TextPair(f"{one.case}/{one.sample}/extra{number}", one.case, "extra", "", text or "", "")


def summary_pairs(one: Prediction, case: Case) -> Iterator[TextPair]:
    """The summary with the expert's integrated findings."""
    written = one.prediction_twi.step2_integrated_summary if one.prediction_twi else None
    yield _pair(one, case.reference.findings, written)


def discussion_pairs(one: Prediction, case: Case) -> Iterator[TextPair]:
    """The whole discussion, without headings on either side."""
    reference = split_discussion(case.reference.discussion).body
    written = None if one.discussion is None else "\n\n".join(filter(None, map(one.discussion.get, SECTIONS)))
    yield _pair(one, reference, written)


def section_pairs(one: Prediction, case: Case) -> Iterator[TextPair]:
    """The discussion section by section, if the expert's has headings."""
    sections = split_discussion(case.reference.discussion).sections
    for section in SECTIONS if sections else ():
        text = (one.discussion or {}).get(section)
        pair = _pair(one, sections.get(section, ""), text, part=f"/{section}", group=section)
        yield pair._replace(state="not in reference") if section not in sections else pair


def _pair(one: Prediction, reference: str, candidate: str | None, *, part: str = "", group: str = "") -> TextPair:
    state: PairState = "ok"
    if not reference.strip():
        state = "no reference"
    elif candidate is None:
        state = "missing"
    elif not candidate.strip():
        state = "empty"
    return TextPair(f"{one.case}/{one.sample}{part}", one.case, state, reference, candidate or "", group)


FINDINGS = WrittenText(
    name="findings",
    title="Step 1: findings",
    pairs=finding_pairs,
    is_scored=lambda condition: condition.findings == "self" and not condition.swap_images,
)
SUMMARY = WrittenText(
    name="summary",
    title="Step 2: summary",
    pairs=summary_pairs,
    is_scored=lambda condition: condition.summary == "self" and not condition.swap_images,
)
STEPS = (FINDINGS, SUMMARY)
DISCUSSION = WrittenText(
    name="discussion", title="Discussion", heading="Discussions", pairs=discussion_pairs, sections=section_pairs
)
