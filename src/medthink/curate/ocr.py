"""Text burned into images, read by rapidocr (extra `[ocr]`): the whole picture, and its borders enlarged.

Letters of ten pixels are too small for the engine: strips at the top and bottom, where names and diagnoses usually are,
are read again at three times their size.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from medthink.cases.images import decode, flatten
from medthink.core.errors import UsageError
from medthink.curate.names import name_key

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

_STRIP, _ENLARGED = 0.2, 3
# The longest side at which a whole picture, and a strip, is read: otherwise each takes seconds.
_WHOLE_SIDE, _STRIP_SIDE = 960, 1600
_CLOSE, _SHORTEST, _LONG = 88, 6, 12
_SHORTEST_PART, _LEAST_OF_READ, _LEAST_OF_NAME = 4, 0.9, 0.75


class BurnedInReader:
    """Reads text in pictures; the model is loaded for the first one."""

    @cached_property
    def _engine(self) -> Any:
        try:
            from rapidocr import RapidOCR
        except ImportError:
            raise UsageError("reading text in images needs rapidocr", remedy='pip install "medthink[ocr]"') from None
        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        # By default the engine enlarges a strip until its short side has 736 pixels, which takes ten times as long.
        limits = {"Det.limit_type": "max", "Det.limit_side_len": _STRIP_SIDE}
        return RapidOCR(params={"Global.log_level": "error"} | limits)

    def read(self, data: bytes, *, name: str) -> list[str]:
        """The distinct pieces of text in a picture."""
        picture = flatten(decode(data, name=name)).convert("RGB")
        found = [text for view in _views(picture) for text in self._read_view(view)]
        return list(dict.fromkeys(found))

    def _read_view(self, view: "PillowImage") -> list[str]:
        import numpy as np

        result = self._engine(np.asarray(view)[:, :, ::-1], use_cls=False)
        return [text.strip() for text in (result.txts or ()) if text.strip()]


def _views(picture: "PillowImage") -> Iterator["PillowImage"]:
    """The picture, enlarged if small, and the strips of one that is too large for that."""
    yield _scaled(picture, _WHOLE_SIDE)
    height = int(picture.height * _STRIP)
    if max(picture.size) * _ENLARGED <= _WHOLE_SIDE * 1.5 or height == 0:
        return
    for top in (0, picture.height - height):
        yield _scaled(picture.crop((0, top, picture.width, top + height)), _STRIP_SIDE)


def _scaled(picture: "PillowImage", longest: int) -> "PillowImage":
    scale = min(_ENLARGED, longest / max(picture.size))
    return picture.resize((max(1, int(picture.width * scale)), max(1, int(picture.height * scale))))


def find_written(name: str, texts: Sequence[str]) -> list[str]:
    """The pieces of text that spell the name, ignoring spaces and a wrong letter; none if it is not there.

    A long name may be read as several pieces, or with a gap where it crosses something as bright as its letters.
    """
    key = name_key(name)
    if len(key) < _SHORTEST:
        return []
    reads = {text: name_key(text) for text in texts}
    whole = [
        text
        for text, read in reads.items()
        if len(read) >= len(key) * _LEAST_OF_READ and fuzz.partial_ratio(read, key) >= _CLOSE
    ]
    if whole or len(key) < _LONG:
        return whole
    # Everything in a part belongs to the name: "carcinoma" is no part of "hepatocellular adenoma".
    parts = [
        text
        for text, read in reads.items()
        if len(read) >= _SHORTEST_PART and LCSseq.similarity(read, key) >= len(read) * _LEAST_OF_READ
    ]
    found = LCSseq.similarity("".join(reads[text] for text in parts), key)
    return parts if found >= len(key) * _LEAST_OF_NAME else []
