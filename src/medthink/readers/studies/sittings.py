"""A sitting: one case that one reader reads in one go, with the texts to judge about it.

The parts that a reader may see before committing to a diagnosis (`blind`) and only afterwards (`revealed`) are
separate, so that a page cannot show the second by accident.
"""

from collections.abc import Mapping, Sequence

import msgspec

from medthink.cases.case import Case
from medthink.core.digest import digest_value
from medthink.judge.kinds import KINDS
from medthink.readers.assignment import CodeEntry, ListEntry, ReadingPlan, Sheet, assign_lists, list_entry
from medthink.readers.studies.plan import StudyPlan

_NO_PLACE = -1


class ReadItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item to mark; `start` and `end` are its span in its part, or −1 if it is not a piece of it."""

    code: str
    form: str
    part: str
    text: str
    start: int = _NO_PLACE
    end: int = _NO_PLACE


class ReadText(msgspec.Struct, frozen=True, kw_only=True):
    """A text to judge: its parts, the answer it led to, and the items to mark."""

    what: str
    parts: dict[str, str]
    answer: str = ""
    items: tuple[ReadItem, ...]


class BeforeReveal(msgspec.Struct, frozen=True, kw_only=True):
    """The part that a reader sees first: `images` are paths in the order the texts number them."""

    history: str
    options: dict[str, str]
    images: tuple[str, ...]


class AfterReveal(msgspec.Struct, frozen=True, kw_only=True):
    """The part that a reader sees after committing: the expert's material, and the texts to judge.

    `captions` run parallel to the images, of which the author of the texts was shown the first `shown`.
    """

    diagnosis: str
    findings: str
    discussion: str
    captions: tuple[str, ...]
    modalities: tuple[str, ...]
    shown: int
    texts: tuple[ReadText, ...]

    def item(self, code: str) -> tuple[str, ReadItem] | None:
        """The item of this code, and the kind of judging it belongs to."""
        return next(((text.what, item) for text in self.texts for item in text.items if item.code == code), None)


class Sitting(msgspec.Struct, frozen=True, kw_only=True):
    """One case for one reader; `letters` maps the letters of its options to those in the benchmark's file."""

    code: str
    case: int
    is_again: bool = False
    letters: dict[str, str]
    blind: BeforeReveal
    revealed: AfterReveal

    @property
    def units(self) -> int:
        """The number of items to mark."""
        return sum(len(text.items) for text in self.revealed.texts)


class StudyLists(msgspec.Struct, frozen=True, kw_only=True):
    """Every reader's sittings in the order of reading, and the meaning of their items' codes."""

    sittings: dict[str, list[Sitting]]
    codes: dict[str, CodeEntry]


def plan_judging(sheets: Sequence[Sheet], plan: StudyPlan) -> StudyLists:
    """The sittings of a study that judges texts: all kinds of judging of one text are read together."""
    groups: dict[tuple[str, int, int], list[Sheet]] = {}
    for sheet in sorted(sheets, key=lambda one: plan.kinds.index(one.units.what)):
        groups.setdefault((sheet.run, sheet.case.id, sheet.units.sample), []).append(sheet)
    rest = {group[0].units.ids: group[1:] for group in groups.values()}
    reading = plan.reading()
    lists = assign_lists([group[0] for group in groups.values()], reading)
    sittings: dict[str, list[Sitting]] = {}
    codes: dict[str, CodeEntry] = {}
    for reader, entries in lists.items():
        sittings[reader] = []
        for entry in entries:
            others = [list_entry(sheet, is_again=entry.is_again) for sheet in rest.get(entry.units.ids, ())]
            bundle = [entry, *others]
            sittings[reader].append(_sitting(bundle, reading, reader))
            for one in bundle:
                codes |= one.codes(reading.seed, reader)
    return StudyLists(sittings=sittings, codes=codes)


def plan_baseline(cases: Sequence[Case], plan: StudyPlan) -> StudyLists:
    """The sittings of a human baseline: cases without any text to judge."""
    reading = plan.reading()
    lists = assign_cases(cases, reading)
    return StudyLists(
        sittings={reader: [_case_sitting(case, reading, reader) for case in own] for reader, own in lists.items()},
        codes={},
    )


def assign_cases(cases: Sequence[Case], plan: ReadingPlan) -> dict[str, list[Case]]:
    """Each reader's cases, in a separate order for each reader."""

    def by_chance(case: Case, *parts: object) -> str:
        return digest_value(["case", plan.seed, case.id, *parts])

    chosen = sorted(cases, key=by_chance)[: plan.sheets]
    lists: dict[str, list[Case]] = {reader: [] for reader in plan.readers}
    for number, case in enumerate(chosen):
        for offset in range(plan.per_sheet):
            lists[plan.readers[(number + offset) % len(plan.readers)]].append(case)
    return {
        reader: sorted(own, key=lambda case, reader=reader: by_chance(case, reader))  # type: ignore[misc]
        for reader, own in lists.items()
    }


def _sitting(bundle: Sequence[ListEntry], plan: ReadingPlan, reader: str) -> Sitting:
    lead = bundle[0]
    evidence = lead.evidence
    by_path = _modalities(lead.case)
    return Sitting(
        code=lead.sheet_code(plan.seed, reader),
        case=lead.case.id,
        is_again=lead.is_again,
        letters=_letters(evidence.options, lead.case.question.options),
        blind=BeforeReveal(
            history=evidence.history,
            options=evidence.options,
            images=tuple(image.path for image in evidence.images),
        ),
        revealed=AfterReveal(
            diagnosis=evidence.diagnosis,
            findings=evidence.findings,
            discussion=evidence.discussion,
            captions=evidence.captions,
            modalities=tuple(by_path.get(image.path, "") for image in evidence.images),
            shown=evidence.shown,
            texts=tuple(_text(entry, plan.seed, reader) for entry in bundle),
        ),
    )


def _text(entry: ListEntry, seed: int, reader: str) -> ReadText:
    places = {unit.id: unit for unit in entry.units.units}
    items = []
    for item, line in zip(KINDS[entry.units.what].items(entry.units), entry.lines, strict=True):
        unit = places.get(item.id)
        is_piece = unit is not None and unit.end > unit.start
        items.append(
            ReadItem(
                code=entry.unit_code(seed, reader, line),
                form=line.kind,
                part=line.part,
                text=line.text,
                start=unit.start if unit is not None and is_piece else _NO_PLACE,
                end=unit.end if unit is not None and is_piece else _NO_PLACE,
            )
        )
    return ReadText(
        what=entry.units.what, parts=dict(entry.source.parts), answer=entry.source.answer, items=tuple(items)
    )


def _case_sitting(case: Case, plan: ReadingPlan, reader: str) -> Sitting:
    options = case.question.options
    return Sitting(
        code="s" + digest_value(["sheet", plan.seed, reader, case.id])[:8],
        case=case.id,
        letters={letter: letter for letter in options},
        blind=BeforeReveal(
            history=case.question.history, options=options, images=tuple(image.path for image in case.question.images)
        ),
        revealed=AfterReveal(
            diagnosis=case.reference.answer_text,
            findings=case.reference.findings,
            discussion=case.reference.discussion,
            captions=tuple(image.caption for image in case.reference.images),
            modalities=tuple(_modalities(case).values()),
            shown=len(case.question.images),
            texts=(),
        ),
    )


def _modalities(case: Case) -> dict[str, str]:
    """The modality of every image of the case, by its path."""
    pairs = zip(case.question.images, case.reference.images, strict=True)
    return {image.path: known.modality for image, known in pairs}


def _letters(shown: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Map each letter shown to the file's letter of the same option."""
    by_text = {text: letter for letter, text in own.items()}
    return {letter: by_text[text] for letter, text in shown.items()}
