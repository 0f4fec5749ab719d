"""Pages of the reading room for readers: their studies, a study's entry, and one case of it.

Before a reader commits to a diagnosis, pages are made only from the `blind` part of a sitting. No page names the author
of a text, another reader or the case's number, or shows anything of the reference before the reveal.
"""

from collections.abc import Mapping, Sequence

import msgspec

from medthink.judge.kinds import KINDS
from medthink.judge.rubric import DIMENSIONS, load_rubric
from medthink.readers.lists import shown_part
from medthink.readers.studies.marks import ADDED
from medthink.readers.studies.reading import Mark, OpenSitting
from medthink.readers.studies.setup import Frozen, Study, StudyReader
from medthink.readers.studies.sittings import ReadText
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.images import PageImage, show_image

SURENESS = ((1, "Guess"), (2, "Leaning"), (3, "Fairly sure"), (4, "Certain"))


class StudyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A study in a reader's list."""

    token: str
    name: str
    done: int
    total: int
    is_adjudication: bool
    is_closed: bool


class ReadingsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's studies."""

    studies: tuple[StudyLine, ...]


class EntryPage(msgspec.Struct, frozen=True, kw_only=True):
    """The entry to a study: the reader's progress, the next case, and the ids of the images needed there."""

    token: str
    name: str
    alias: str
    done: int
    total: int
    units_left: int
    next: str
    needs_training: bool
    is_adjudication: bool
    is_baseline: bool
    is_closed: bool
    rubric: str
    ahead: tuple[str, ...] = ()


class RoomField(msgspec.Struct, frozen=True, kw_only=True):
    """A column of an item to fill in, with the words to choose from; without words, free text."""

    name: str
    choices: tuple[str, ...]


class RoomItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to judge; `start` and `end` are its span in its part, or −1 if it has none.

    `anchors` has the requirements of each score, if the item is a dimension of education.
    """

    code: str
    form: str
    part: str
    text: str
    start: int
    end: int
    fields: tuple[RoomField, ...]
    version: int = 0
    cells: dict[str, str] = {}
    readings: tuple[dict[str, str], ...] = ()
    anchors: dict[str, str] = {}


class RoomText(msgspec.Struct, frozen=True, kw_only=True):
    """A text to judge, with its items and the meaning of its labels."""

    what: str
    title: str
    answer: str
    parts: dict[str, str]
    items: tuple[RoomItem, ...]
    anchors: tuple[tuple[str, str], ...]


class RoomReveal(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is withheld until the reader has committed."""

    own: str
    own_text: str
    diagnosis: str
    findings: str
    discussion: str
    shown: int
    texts: tuple[RoomText, ...]
    added: RoomItem | None


class RoomPage(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a study; `reveal` is None until the reader has committed, `ahead` are images of the next case."""

    study: str
    study_name: str
    alias: str
    code: str
    number: int
    total: int
    done: int
    is_locked: bool
    is_adjudication: bool
    held_until: str
    history: str
    options: tuple[tuple[str, str], ...]
    sureness: tuple[tuple[int, str], ...]
    images: tuple[PageImage, ...]
    reveal: RoomReveal | None
    ahead: tuple[str, ...]
    problem: str = ""


def find_next(sittings: Sequence[OpenSitting], *, after: str = "") -> OpenSitting | None:
    """The case to read next, first those already begun; `after` is the code of the one being read."""
    left = [one for one in sittings if one.submitted_at is None and one.sitting.code != after]
    begun = [one for one in left if one.opened_at is not None]
    return next(iter(begun or left), None)


def make_entry_page(
    study: Study, reader: StudyReader, sittings: Sequence[OpenSitting], bench: LoadedSplit
) -> EntryPage:
    """The entry to a study."""
    left = [one for one in sittings if one.submitted_at is None]
    following = find_next(sittings)
    return EntryPage(
        token=study.token,
        name=study.plan.name,
        alias=reader.alias,
        done=len(sittings) - len(left),
        total=len(sittings),
        units_left=sum(one.sitting.units for one in left),
        next=following.sitting.code if following else "",
        needs_training=needs_training(study, reader),
        is_adjudication=reader.is_adjudicator,
        is_baseline=study.plan.is_baseline,
        is_closed=study.closed_at is not None,
        rubric=load_rubric().page,
        ahead=_images_ahead(following, bench),
    )


def needs_training(study: Study, reader: StudyReader) -> bool:
    """Whether the reader has to pass the training before the first case."""
    return study.plan.needs_training and not study.plan.is_baseline and reader.trained_at is None


def make_room_page(
    study: Study,
    reader: StudyReader,
    sittings: Sequence[OpenSitting],
    opened: OpenSitting,
    bench: LoadedSplit,
    *,
    marks: Mapping[str, Mark],
    frozen: Frozen,
) -> RoomPage:
    """One case as its reader may see it now."""
    blind = opened.sitting.blind
    return RoomPage(
        study=study.token,
        study_name=study.plan.name,
        alias=reader.alias,
        code=opened.sitting.code,
        # Positions have gaps where cases were reassigned.
        number=1 + sum(one.place < opened.place for one in sittings),
        total=len(sittings),
        done=sum(one.submitted_at is not None for one in sittings),
        is_locked=opened.submitted_at is not None or study.closed_at is not None,
        is_adjudication=reader.is_adjudicator,
        held_until=opened.held_until or "",
        history=blind.history,
        options=tuple(blind.options.items()),
        sureness=SURENESS,
        images=tuple(_images(opened, bench)),
        reveal=_reveal(opened, marks, frozen) if opened.is_revealed else None,
        ahead=_images_ahead(find_next(sittings, after=opened.sitting.code), bench),
    )


def _images_ahead(opened: OpenSitting | None, bench: LoadedSplit) -> tuple[str, ...]:
    """The ids of the next case's images, which a browser may load while its reader is busy."""
    found = (bench.image_at(path) for path in opened.sitting.blind.images) if opened else ()
    return tuple(bench.id_of(image) for image in found if image is not None)


def _images(opened: OpenSitting, bench: LoadedSplit) -> list[PageImage]:
    """The images in the order in which texts number them; details only after the reveal."""
    revealed = opened.sitting.revealed if opened.is_revealed else None
    found = []
    for place, path in enumerate(opened.sitting.blind.images):
        image = bench.image_at(path)
        shown = (
            PageImage(id="", number=place + 1, width=0, height=0, problem="the file is missing")
            if image is None
            else show_image(bench, image, place + 1)
        )
        if revealed:
            label = {"group": revealed.modalities[place], "caption": revealed.captions[place]}
            shown = msgspec.structs.replace(shown, **label)
        found.append(shown)
    return found


def _reveal(opened: OpenSitting, marks: Mapping[str, Mark], frozen: Frozen) -> RoomReveal:
    sitting = opened.sitting
    own = next((shown for shown, letter in sitting.letters.items() if letter == opened.letter), "")
    has_omissions = any(text.what == "omissions" for text in sitting.revealed.texts)
    added = marks.get(ADDED)
    return RoomReveal(
        own=own,
        own_text=sitting.blind.options.get(own, ""),
        diagnosis=sitting.revealed.diagnosis,
        findings=sitting.revealed.findings,
        discussion=sitting.revealed.discussion,
        shown=sitting.revealed.shown,
        texts=tuple(_text(text, marks, frozen) for text in sitting.revealed.texts),
        added=RoomItem(
            code=ADDED,
            form=ADDED,
            part="",
            text="",
            start=-1,
            end=-1,
            fields=(RoomField(name="finding", choices=()),),
            version=added.version if added else 0,
            cells=added.cells if added else {},
        )
        if has_omissions
        else None,
    )


def _text(text: ReadText, marks: Mapping[str, Mark], frozen: Frozen) -> RoomText:
    rubric, kind = load_rubric(), KINDS[text.what]
    items = []
    for item in text.items:
        mark = marks.get(item.code)
        items.append(
            RoomItem(
                code=item.code,
                form=item.form,
                part=shown_part(item.part),
                text=item.text,
                start=item.start,
                end=item.end,
                fields=_fields(text.what, item.form),
                version=mark.version if mark else 0,
                cells=mark.cells if mark else {},
                readings=tuple(frozen.get(item.code, ())),
                anchors=rubric.levels(item.part) if item.part in DIMENSIONS else {},
            )
        )
    return RoomText(
        what=text.what,
        title=kind.title,
        answer=text.answer,
        parts={shown_part(name): words for name, words in text.parts.items()},
        items=tuple(items),
        anchors=tuple((name, rubric.section(name)) for name in kind.rubric),
    )


def _fields(what: str, form: str) -> tuple[RoomField, ...]:
    """The columns of an item of this form."""
    columns = KINDS[what].columns_of(form)
    return tuple(RoomField(name=column.name, choices=column.choices) for column in columns)
