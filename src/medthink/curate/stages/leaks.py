"""Leaks: histories, file names and pictures that reveal the diagnosis before the images are seen.

A strong rule decides: the case is out. A suspected leak waits for the model or a person. A negated mention is a class
of its own and waits too. Captions are withheld from models, so what they reveal is only noted for the data card.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from medthink.cases.case import Image
from medthink.core.errors import DataError
from medthink.curate.asking import StageAsk, curate_prompt
from medthink.curate.decision import Quote, StageResult, drop, find_quote, keep, leave_open
from medthink.curate.draft import HISTORY, Draft
from medthink.curate.identifiers import find_identifiers
from medthink.curate.mentions import (
    SoughtName,
    SpelledText,
    TextMention,
    WordFrequency,
    options_of,
    strong_mentions,
    suspect_mentions,
)
from medthink.curate.ocr import BurnedInReader, find_written
from medthink.curate.splitting import split_differential
from medthink.curate.stage import Drafts, ModelSettings, Stage
from medthink.workflow.ask import Unanswered
from medthink.workflow.forms import TEXT, ReplyForm, list_of, object_of, one_of

_KINDS = ("exact", "synonym", "hedged", "negated", "unsure")
_LEVELS = {"exact": "L3", "synonym": "L2", "hedged": "L1"}


class LeakSettings(ModelSettings, frozen=True, kw_only=True):
    """What is checked, and what follows."""

    ocr: Annotated[bool, Meta(description="Read text burned into images too (extra ocr).")] = False
    in_images: Annotated[
        Literal["review", "drop-image", "drop-case"], Meta(description="What to do where an image names the diagnosis.")
    ] = "review"
    identifiers: Annotated[bool, Meta(description="Hold cases whose history may identify a person.")] = True


class LeakPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """A passage that a model names."""

    quote: str
    kind: Literal["exact", "synonym", "hedged", "negated", "unsure"]


class LeakForm(ReplyForm, frozen=True, forbid_unknown_fields=True):
    """A model's answer about a history."""

    passages: list[LeakPassage]


class LeakStage(Stage[LeakSettings]):
    """Cases that reveal the diagnosis are out; suspected ones wait."""

    name = "leaks"
    settings_type = LeakSettings

    def survey(self, drafts: Drafts) -> None:
        """Count in how many histories each word occurs."""
        self._frequency = WordFrequency()
        for draft in drafts():
            self._frequency.add(SpelledText(draft.case.question.history))

    @cached_property
    def _reader(self) -> BurnedInReader:
        return BurnedInReader()

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:
        """The history first, then what else a model would see."""
        target = target_of(draft)
        history = SpelledText(draft.case.question.history)
        strong = strong_mentions(history, target)
        telling = [one for one in strong if one.level != "negated"]
        if telling:
            return drop(f"leak-{telling[0].level}", by=f"rule {telling[0].rule}", evidence=_quotes(history, telling))
        suspects = suspect_mentions(history, target, self._frequency)
        if ask is not None:
            result = await self._ask(draft, ask, [*strong, *suspects])
        else:
            result = _without_model(history, strong, suspects)
        return result or self._look_further(draft, target)

    def _look_further(self, draft: Draft, target: SoughtName) -> StageResult:
        """Everything except the history: file names, pictures, what may identify a person."""
        if named := [image.path for image in draft.case.question.images if _names(image.path, target)]:
            return leave_open("leak-file-name", by="rule file name", detail=", ".join(named))
        history = draft.case.question.history
        personal = find_identifiers(history) if self.settings.identifiers else []
        if personal:
            quotes = [Quote(HISTORY, one.start, one.end, history[one.start : one.end]) for one in personal]
            kinds = ", ".join(dict.fromkeys(one.kind for one in personal))
            return leave_open("identifier", by="rule identifiers", detail=kinds, evidence=quotes)
        return self._look_into_images(self._note_captions(draft, target))

    def _note_captions(self, draft: Draft, target: SoughtName) -> Draft:
        """The draft with a note of the captions that name the diagnosis."""
        images = zip(draft.case.question.images, draft.case.reference.images, strict=True)
        slots = [image.slot for image, known in images if _names(known.caption, target)]
        return draft.with_mark(self.name, {"captions": slots}) if slots else draft

    def _look_into_images(self, draft: Draft) -> StageResult:
        if not self.settings.ocr:
            return keep(draft)
        try:
            told = {image.slot: texts for image in draft.case.question.images if (texts := self._telling(image, draft))}
        except DataError as error:
            return leave_open("image-unreadable", by="rule ocr", detail=f"{error.file}: {error.problem}")
        if not told:
            return keep(draft)
        detail = "; ".join(f"image {slot}: {' | '.join(texts)}" for slot, texts in told.items())
        rest = [slot for slot in range(1, len(draft.case.question.images) + 1) if slot not in told]
        if self.settings.in_images == "review":
            return leave_open("leak-in-image", by="rule ocr", detail=detail)
        if self.settings.in_images == "drop-case" or not rest:
            return drop("leak-in-image", by="rule ocr", detail=detail)
        return keep(without_images(draft, told.keys()), reason="image-dropped", by="rule ocr", detail=detail)

    def _telling(self, image: Image, draft: Draft) -> list[str]:
        """The texts of an image that contain a name of the diagnosis."""
        texts = self._reader.read(image.read(), name=image.path)
        names = [draft.gold, *draft.notes.aliases.get(draft.gold, ())]
        return list(dict.fromkeys(text for name in names for text in find_written(name, texts)))

    async def _ask(self, draft: Draft, ask: StageAsk, found: list[TextMention]) -> StageResult | None:
        """What the model finds; every passage must occur verbatim in the history."""
        history = draft.case.question.history
        doubtful = [{"quote": history[one.start : one.end], "kind": "unsure"} for one in found]
        prompt = curate_prompt(
            "leaks",
            draft.id,
            data={"diagnosis": draft.gold, "other_names": list(_aliases(draft)), "history": history},
            form={"passages": list_of(object_of(quote=TEXT, kind=one_of(_KINDS)))},
            by_rules={"passages": doubtful},
        )
        passages = (await ask(prompt, LeakForm, draft.id)).passages
        quotes = {one.quote: find_quote(draft, HISTORY, one.quote) for one in passages}
        if any(quote is None for quote in quotes.values()):
            raise Unanswered("unparsed", "a quoted passage does not occur verbatim in the history")
        evidence = [quote for quote in quotes.values() if quote is not None]
        telling = [one for one in passages if one.kind in _LEVELS]
        if telling:
            level = max(_LEVELS[one.kind] for one in telling)
            return drop(f"leak-{level}", by=ask.by, evidence=evidence)
        if passages:
            return leave_open(f"leak-{passages[0].kind}", by=ask.by, evidence=evidence)
        return None

    def not_covered(self) -> tuple[str, ...]:
        """What rules alone cannot find."""
        missing = []
        if not self.settings.has_model:
            missing.append("synonyms: rules miss about four in five of these leaks, and no model was asked")
        if not self.settings.ocr:
            missing.append("text burned into images: not read (ocr = true reads it)")
        return tuple(missing)


def target_of(draft: Draft) -> SoughtName:
    """What to look for in the texts of a case."""
    listed = draft.notes.candidates or tuple(draft.case.question.options.values())
    options = listed or tuple(split_differential(draft.notes.differential, draft.gold))
    return SoughtName.of(draft.gold, aliases=_aliases(draft), others=options_of(options, draft.gold))


def without_images(draft: Draft, slots: Any) -> Draft:
    """The draft without the images of these slots; the others move up."""
    pairs = [
        (image, known)
        for image, known in zip(draft.case.question.images, draft.case.reference.images, strict=True)
        if image.slot not in slots
    ]
    images = tuple(replace(image, slot=slot) for slot, (image, _) in enumerate(pairs, start=1))
    rest = Draft(replace(draft.case, image_count=len(pairs)), draft.notes)
    return rest.with_question(images=images).with_reference(images=tuple(known for _, known in pairs))


def _aliases(draft: Draft) -> Iterator[str]:
    for name in dict.fromkeys((draft.gold, draft.notes.diagnosis)):
        yield from draft.notes.aliases.get(name, ())


def _names(text: str, target: SoughtName) -> bool:
    return any(one.level != "negated" for one in strong_mentions(SpelledText(text), target))


def _without_model(history: SpelledText, strong: list[TextMention], suspects: list[TextMention]) -> StageResult | None:
    """What rules alone leave open; None where they find nothing."""
    for reason, found in (("leak-negated", strong), ("leak-suspect", suspects)):
        if found:
            return leave_open(reason, by=f"rule {found[0].rule}", evidence=_quotes(history, found))
    return None


def _quotes(text: SpelledText, found: list[TextMention]) -> list[Quote]:
    return [Quote(HISTORY, one.start, one.end, text.text[one.start : one.end]) for one in found]


STAGE = LeakStage
