"""A case in two halves: the question, which a model may see, and the reference, which it may not.

`case.question` holds the history, the images and the options. `case.reference` holds everything withheld: captions,
findings, discussion, answer, codes, timeline. Prompt builders are handed a `Question`, from which nothing of the
`Reference` can be reached.
"""

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from medthink.cases.images.content import PreparedImage
    from medthink.cases.images.fact_cache import ImageFacts

LETTERS = "ABCDE"
ALL_LETTERS = LETTERS + "FGHIJKLMNOPQRSTUVWXYZ"
MAX_IMAGES = 49
MODALITIES = (
    "CT",
    "MRI",
    "X-ray",
    "Ultrasound",
    "Pathology",
    "Clinical photography",
    "Nuclear medicine & Molecular imaging",
    "Endoscopy",
    "Non-modality / Workflow / Post-processing",
)
# What stands for one where nothing states it.
UNKNOWN_MODALITY = "unknown"


class ImageStore(Protocol):
    """A source of image bytes: a folder, a zip, a parquet column."""

    def read(self, path: str) -> bytes:
        """The image's bytes, or DataError."""

    def digest(self, path: str) -> str:
        """SHA-256 of the image's bytes, or DataError."""

    def read_known(self, path: str) -> "tuple[bytes, ImageFacts]":
        """The image's bytes and what is known of them, or DataError."""

    def has(self, path: str) -> bool:
        """Whether the image is there; False for a path that may not be opened."""

    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""

    def listing(self) -> dict[str, list[str]]:
        """The paths of every image the store holds, asked for or not, by folder and sorted in each.

        Paths that may not be opened are listed under "" instead.
        """


# `gc=False` here and below: no case can hold itself, and a collector that need not follow them makes checking faster.
class Image(msgspec.Struct, frozen=True, gc=False):
    """One image of a question: the slot it fills and the way to its bytes."""

    slot: int
    id: str
    path: str
    store: ImageStore

    def read(self) -> bytes:
        """The file's bytes, untouched."""
        return self.store.read(self.path)

    def digest(self) -> str:
        """SHA-256 of the file's bytes."""
        return self.store.digest(self.path)

    def read_known(self) -> "tuple[bytes, ImageFacts]":
        """The file's bytes and what is known of them."""
        return self.store.read_known(self.path)

    def as_shown(self) -> "PreparedImage":
        """The image as whoever looks at it is to see it, which is how it leaves."""
        from medthink.cases.images.content import as_shown

        return as_shown(self.read(), name=self.path)

    def open(self) -> "PillowImage":
        """The decoded picture, within the decode limits."""
        from medthink.cases.images.content import decode

        return decode(self.read(), name=self.path)


class Question(msgspec.Struct, frozen=True, gc=False):
    """What a model may see."""

    history: str
    images: tuple[Image, ...]
    options: dict[str, str]


class Withheld(msgspec.Struct, frozen=True, gc=False):
    """Base of what is withheld: its text form shows nothing, in logs, tracebacks and notebooks alike."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(withheld: {', '.join(self.__struct_fields__)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class ImageReference(Withheld, frozen=True, gc=False):
    """The withheld part of an image: its caption (the step 1 reference) and its labels."""

    caption: str
    modality: str
    sub_modality: str


class Reference(Withheld, frozen=True, gc=False):
    """What a model may not see; `images` runs parallel to the question's."""

    images: tuple[ImageReference, ...]
    findings: str
    discussion: str
    answer: str
    answer_text: str
    icd_chapter: str
    icd_block: str
    icd_category: str
    is_longitudinal: bool
    timepoint_count: int
    interval_text: str


class Case(msgspec.Struct, frozen=True, gc=False):
    """One case of a benchmark, as its file states it, defects included.

    `image_count` is what the row declares; `extra` keeps the columns the schema does not know.
    """

    id: int
    title: str
    split: str
    question: Question
    reference: Reference
    image_count: int
    extra: dict[str, Any]

    @property
    def modalities(self) -> tuple[str, ...]:
        """The distinct level-1 modalities, in order of first appearance."""
        return tuple(dict.fromkeys(image.modality for image in self.reference.images))

    def __repr__(self) -> str:
        return f"Case({self.id}, {self.split!r}: {len(self.question.images)} images)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("split", self.split), ("images", len(self.question.images))]

    def _repr_html_(self) -> str:
        from medthink.cases.notebook import case_card

        return case_card(self)
