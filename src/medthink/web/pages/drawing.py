"""Charts as plain coordinates, drawn by one template: lines, paths, marks, and labels that do not overlap."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

_LETTER_WIDTH = 6.6
_LINE_HEIGHT = 14


class DrawnLine(msgspec.Struct, frozen=True):
    """A line between two points; `look` are its style classes."""

    x1: float
    y1: float
    x2: float
    y2: float
    look: str


class DrawnPath(msgspec.Struct, frozen=True):
    """An SVG path made only of numbers."""

    d: str
    look: str


class DrawnMark(msgspec.Struct, frozen=True):
    """A dot, square, triangle, diamond, ring or cross."""

    x: float
    y: float
    shape: int
    look: str = ""
    size: float = 5.0


class DrawnWords(msgspec.Struct, frozen=True):
    """A text label."""

    x: float
    y: float
    words: str
    look: str = ""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart in pixels; `name` describes it for screen readers."""

    width: int
    height: int
    name: str
    lines: tuple[DrawnLine, ...] = ()
    paths: tuple[DrawnPath, ...] = ()
    marks: tuple[DrawnMark, ...] = ()
    words: tuple[DrawnWords, ...] = ()


class BoardFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A chart for wide and for narrow pages, its caption, and its numbers as a table."""

    key: str
    title: str
    caption: str
    wide: Chart
    narrow: Chart
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Box(NamedTuple):
    """The plotting area of a chart."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, share: float) -> float:
        """The position at this share of the width."""
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, share: float) -> float:
        """The position at this share of the height, from the bottom."""
        return round(self.bottom - share * (self.bottom - self.top), 1)


class MarkNames:
    """Labels next to marks: each is placed where it fits without overlap, or left out."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._taken: list[tuple[float, float, float, float]] = []

    def avoid(self, x: float, y: float, size: float = 6.0) -> None:
        """Keep a mark free."""
        self._taken.append((x - size, y - size, x + size, y + size))

    def put(self, x: float, y: float, words: str) -> DrawnWords | None:
        """The label next to a mark, or None if there is no room."""
        width = len(words) * _LETTER_WIDTH
        for look, dx, dy in (
            ("end", -9, -5),
            ("", 9, 16),
            ("", 9, -6),
            ("end", -9, 16),
            ("mid", 0, -14),
            ("mid", 0, 24),
        ):
            left = x + dx - (width if look == "end" else width / 2 if look == "mid" else 0)
            area = (left, y + dy - _LINE_HEIGHT + 3, left + width, y + dy + 3)
            if self._is_free(area):
                self._taken.append(area)
                return DrawnWords(round(x + dx, 1), round(y + dy, 1), words, f"{look} on".strip())
        return None

    def _is_free(self, area: tuple[float, float, float, float]) -> bool:
        left, top, right, bottom = area
        if left < self._box.left or right > self._box.right + 4 or top < 0 or bottom > self._box.bottom:
            return False
        return not any(
            left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in self._taken
        )


def spread_heights(heights: Sequence[float], *, apart: float = _LINE_HEIGHT, lowest: float) -> list[float]:
    """The heights, moved as little as necessary so that no two are closer than `apart`, and none below `lowest`."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for before, here in pairwise(order):
        placed[here] = max(placed[here], placed[before] + apart)
    over = max(0.0, max(placed, default=0.0) - lowest)
    for after, here in zip([None, *reversed(order)], reversed(order), strict=False):
        limit = lowest if after is None else placed[after] - apart
        placed[here] = min(placed[here], limit) if over else placed[here]
    return placed
