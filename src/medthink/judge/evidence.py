"""What a judge may see of a case: stated part by part, and stored with every judgement."""

from typing import Any, Literal, get_args

import msgspec

from medthink.cases.case import Case, Image
from medthink.core.errors import UsageError
from medthink.workflow.view import Shown

Sight = Literal["history", "options", "images", "captions", "findings", "discussion", "diagnosis"]
SIGHTS: tuple[Sight, ...] = get_args(Sight)
# Everything the expert wrote, but not the images: they cost money, and only some judges can read them.
DEFAULT_SIGHT: tuple[Sight, ...] = ("history", "options", "captions", "findings", "discussion", "diagnosis")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge is given to judge by; a part it may not see is already empty here.

    `captions` and `images` are all that the case has: first those shown to the judged model, under the same numbers,
    then the others. `shown` is how many it was shown. `options` has the letters that model saw.
    """

    history: str = ""
    options: dict[str, str] = {}
    captions: tuple[str, ...] = ()
    findings: str = ""
    discussion: str = ""
    diagnosis: str = ""
    images: tuple[Image, ...] = ()
    shown: int = 0

    def data(self) -> dict[str, Any]:
        """The text parts by name, without empty ones."""
        captions = {f"image {k}": text for k, text in enumerate(self.captions, start=1) if text}
        parts: dict[str, Any] = {
            "history": self.history,
            "options": self.options,
            "captions": captions,
            "findings": self.findings,
            "discussion": self.discussion,
            "diagnosis": self.diagnosis,
        }
        return {name: part for name, part in parts.items() if part}

    def names(self) -> tuple[str, ...]:
        """The names a verdict may give as its grounds."""
        captions = [f"caption {k}" for k, text in enumerate(self.captions, start=1) if text]
        images = [f"image {k}" for k in range(1, len(self.images) + 1)]
        texts = [name for name in self.data() if name != "captions"]
        return (*texts, *captions, *images, "general knowledge", "nothing")


def gather_evidence(case: Case, shown: Shown, sight: tuple[Sight, ...]) -> Evidence:
    """The parts of the case the judge may see, whether or not the judged model was shown them."""
    seen = set(sight)
    images = case.question.images
    rest = [place for place in range(len(images)) if place not in shown.positions]
    return Evidence(
        history=case.question.history if "history" in seen else "",
        options=(shown.question.options or case.question.options) if "options" in seen else {},
        captions=tuple(case.reference.images[k].caption for k in (*shown.positions, *rest))
        if "captions" in seen
        else (),
        findings=case.reference.findings if "findings" in seen else "",
        discussion=case.reference.discussion if "discussion" in seen else "",
        diagnosis=case.reference.answer_text if "diagnosis" in seen else "",
        images=(*shown.question.images, *(images[place] for place in rest)) if "images" in seen else (),
        shown=len(shown.positions),
    )


def parse_sight(text: str) -> tuple[Sight, ...]:
    """Read `history,findings,…`, or raise UsageError; the order is always the same."""
    words = set(text.replace(",", " ").split())
    unknown = words - set(SIGHTS)
    if unknown or not words:
        raise UsageError(
            f"a judge cannot be shown {', '.join(sorted(unknown)) or 'nothing'}", remedy=f"known: {', '.join(SIGHTS)}"
        )
    return tuple(name for name in SIGHTS if name in words)
