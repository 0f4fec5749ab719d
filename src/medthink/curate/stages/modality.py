"""Modality: what each image is, from its file, its caption, its siblings, or a model that looks at it.

What the source or a DICOM header says stays. A caption that names a modality decides. An image without any clue may
take the modality that all other images of the case have, and is then marked as inferred. A model is asked about the
rest, or a person decides. Level-2 names are proposals.
"""

import re
from collections import Counter
from typing import Annotated, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from medthink.cases.case import MODALITIES, ImageReference
from medthink.core.errors import DataError
from medthink.curate.asking import StageAsk, curate_prompt
from medthink.curate.decision import Quote, StageResult, keep, leave_open
from medthink.curate.draft import Draft
from medthink.curate.modality import modality_of, sub_modality_of
from medthink.curate.stage import ModelSettings, Stage
from medthink.workflow.forms import ReplyForm, one_of

_UNSURE = "cannot tell"
_SLOT = re.compile(r"\s*(\d{1,2})\s*[=:]\s*(.+?)\s*")


class ModalitySettings(ModelSettings, frozen=True, kw_only=True):
    """Whether the other images of a case may decide for one."""

    siblings: Annotated[bool, Meta(description="Use the modality shared by all other images of the case.")] = True


class ModalityForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """What a model says an image is."""

    modality: str


class SettledModality(NamedTuple):
    """An image's modality, its source, and the words of the caption that give it."""

    modality: str
    by: str
    quote: Quote | None = None
    also: tuple[str, ...] = ()


class ModalityStage(Stage[ModalitySettings]):
    """Images in, images with a modality out."""

    name = "modality"
    settings_type = ModalitySettings

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:
        """Label every image; a case with one that cannot be labelled is left open."""
        settled = _settle(draft)
        if self.settings.siblings:
            settled = _with_siblings(settled)
        for place, image in enumerate(draft.case.question.images):
            if settled[image.slot] is None and ask is not None:
                settled[image.slot] = await self._ask(draft, place, ask)
        found = {slot: one for slot, one in settled.items() if one is not None}
        quotes = [one.quote for one in found.values() if one.quote is not None]
        if len(found) < len(settled):
            missing = [slot for slot in settled if slot not in found]
            return leave_open(
                "modality-unknown",
                by=ask.by if ask else "rule caption",
                detail=f"no modality found for image slots {', '.join(map(str, missing))}",
                proposal=_proposal(found),
                evidence=quotes,
            )
        by = ", ".join(sorted({one.by for one in found.values()})) or "rule no image"
        return keep(_labelled(draft, found), reason="labelled" if found else "no-image", by=by, evidence=quotes)

    async def _ask(self, draft: Draft, place: int, ask: StageAsk) -> SettledModality | None:
        image, caption = draft.case.question.images[place], draft.case.reference.images[place].caption
        prompt = curate_prompt(
            "modality",
            draft.id,
            data={"slot": image.slot, "caption": caption},
            form={"modality": one_of([*MODALITIES, _UNSURE])},
            by_rules={"modality": _UNSURE},
            images=(image,),
        )
        reply = await ask(prompt, ModalityForm, draft.id)
        return SettledModality(reply.modality, ask.by) if reply.modality in MODALITIES else None

    def agree(self, draft: Draft, ruling: str) -> Draft:
        """The draft with what a person says: one modality for all images that have none, or `3=CT; 4=MRI`."""
        settled = _settle(draft)
        told = _read_ruling(ruling, [slot for slot, one in settled.items() if one is None], draft.id)
        found = {slot: one for slot, one in settled.items() if one is not None}
        return _labelled(draft, found | {slot: SettledModality(name, "person") for slot, name in told.items()})

    def not_covered(self) -> tuple[str, ...]:
        """Without a model, no image was looked at."""
        return (
            ()
            if self.settings.has_model
            else ("what the images themselves show: modalities are read from captions and files",)
        )


def _settle(draft: Draft) -> dict[int, SettledModality | None]:
    return {image.slot: _by_file_or_caption(draft, place) for place, image in enumerate(draft.case.question.images)}


def _by_file_or_caption(draft: Draft, place: int) -> SettledModality | None:
    image, reference = draft.case.question.images[place], draft.case.reference.images[place]
    if reference.modality in MODALITIES:
        return SettledModality(reference.modality, "the source")
    found = modality_of(reference.caption)
    if found is None:
        return None
    words = reference.caption[found.start : found.end]
    quote = Quote(f"image_{image.slot:02d}_caption", found.start, found.end, words)
    return SettledModality(
        found.modality, "rule caption" if found.is_named else "rule words of the caption", quote, found.also
    )


def _with_siblings(settled: dict[int, SettledModality | None]) -> dict[int, SettledModality | None]:
    known = {one.modality for one in settled.values() if one is not None}
    if len(known) != 1:
        return settled
    inferred = SettledModality(known.pop(), "inferred from siblings")
    return {slot: one or inferred for slot, one in settled.items()}


def _labelled(draft: Draft, found: dict[int, SettledModality]) -> Draft:
    images = tuple(
        _label(reference, found[image.slot])
        for image, reference in zip(draft.case.question.images, draft.case.reference.images, strict=True)
    )
    mark = {
        str(slot): one.by + (f"; also named: {', '.join(one.also)}" if one.also else "") for slot, one in found.items()
    }
    return draft.with_reference(images=images).with_mark("modality", mark) if found else draft


def _label(reference: ImageReference, settled: SettledModality) -> ImageReference:
    finer = reference.sub_modality or sub_modality_of(settled.modality, reference.caption)
    return replace(reference, modality=settled.modality, sub_modality=finer)


def _proposal(found: dict[int, SettledModality]) -> str:
    most = Counter(one.modality for one in found.values()).most_common(1)
    return most[0][0] if most else ""


def _read_ruling(ruling: str, open_slots: list[int], case: int) -> dict[int, str]:
    if ruling in MODALITIES:
        return dict.fromkeys(open_slots, ruling)
    matches = [_SLOT.fullmatch(part) for part in ruling.split(";") if part.strip()]
    told = {int(match[1]): match[2] for match in matches if match}
    if len(told) != len(matches) or set(told) != set(open_slots) or not set(told.values()) <= set(MODALITIES):
        remedy = f"name one of the nine for each of the slots {', '.join(map(str, open_slots))}, as in 3=CT; 4=MRI"
        raise DataError(
            f"case {case}: {ruling!r} does not name the modality of each image", field="value", remedy=remedy
        )
    return told


STAGE = ModalityStage
