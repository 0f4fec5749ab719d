"""A canvas in anatomical coordinates: the centre is (0, 0), the shorter edge runs from -1 to 1, y points down."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Pixels: TypeAlias = NDArray[np.float32]
Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[float, float, float]


class ImageSpec(NamedTuple):
    """The content of one image: a sign ("" for none), the side of the picture it is on (-1 or 1), and its size."""

    sign: str
    side: int
    size: float


class Scene:
    """Pixels between 0 and 1, grey or in colour, and the means to draw on them."""

    def __init__(self, rng: np.random.Generator, width: int, height: int, *, ground: float | Colour = 0.0) -> None:
        self.rng = rng
        self.width, self.height = width, height
        self.unit = min(width, height) / 2
        self.x = ((np.arange(width, dtype=np.float32) + 0.5 - width / 2) / self.unit)[None, :]
        self.y = ((np.arange(height, dtype=np.float32) + 0.5 - height / 2) / self.unit)[:, None]
        shape = (height, width, 3) if isinstance(ground, tuple) else (height, width)
        self.pixels: Pixels = np.full(shape, ground, np.float32)

    def vary(self, centre: float, spread: float) -> float:
        """A number near the centre, at most `spread` away."""
        return centre + spread * float(self.rng.uniform(-1, 1))

    def mask(
        self, centre: Point, radii: Point, *, turn: float = 0.0, soft: float = 0.03, wobble: float = 0.0
    ) -> Pixels:
        """How much of each pixel an ellipse covers, over the whole canvas."""
        return self._cover(self.x, self.y, (centre, radii), (turn, soft, wobble))

    def ellipse(
        self, centre: Point, radii: Point, tone: float | Colour, *, turn: float = 0.0, soft: float = 0.03,
        wobble: float = 0.0, alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Paint an ellipse, touching only the pixels around it."""
        reach = max(radii) * (1 + 2 * wobble) + soft
        columns, rows = self._window(centre[0], reach, self.width), self._window(centre[1], reach, self.height)
        if columns.start >= columns.stop or rows.start >= rows.stop:
            return
        cover = self._cover(self.x[:, columns], self.y[rows], (centre, radii), (turn, soft, wobble))
        _mix(self.pixels[rows, columns], np.float32(alpha) * cover, np.asarray(tone, np.float32))

    def blend(self, mask: Pixels, tone: float | Colour | Pixels) -> None:
        """Move the pixels under the mask towards the tone."""
        _mix(self.pixels, mask, np.asarray(tone, np.float32))

    def strokes(self, lines: Sequence[Sequence[Point]], width: float, *, blur: float = 0.8) -> Pixels:
        """The mask of some lines of one width, each a smooth curve through its points."""
        thick = max(1, round(width * self.unit))

        def draw(pen: ImageDraw.ImageDraw) -> None:
            for line in lines:
                pen.line(self._pixels_of(smoothed(line)), fill=255, width=thick, joint="curve")

        return self._drawn(draw, blur)

    def polygons(self, shapes: Sequence[Sequence[Point]], *, blur: float = 0.8) -> Pixels:
        """The mask of some filled polygons."""

        def draw(pen: ImageDraw.ImageDraw) -> None:
            for shape in shapes:
                pen.polygon(self._pixels_of(shape), fill=255)

        return self._drawn(draw, blur)

    def fill(self, shape: Sequence[Point], tone: float, *, blur: float = 1.0) -> None:
        """Paint one polygon, touching only the pixels around it."""
        corners = np.asarray(self._pixels_of(shape))
        left, top = np.maximum(np.floor(corners.min(axis=0)) - 4 - blur, 0).astype(int).tolist()
        right, bottom = np.ceil(corners.max(axis=0) + 4 + blur).astype(int).tolist()
        right, bottom = min(right, self.width), min(bottom, self.height)
        if left >= right or top >= bottom:
            return
        layer = Image.new("L", (right - left, bottom - top))
        ImageDraw.Draw(layer).polygon([(x - left, y - top) for x, y in corners.tolist()], fill=255)
        cover = np.asarray(layer.filter(ImageFilter.BoxBlur(blur)), np.float32) / np.float32(255)
        _mix(self.pixels[top:bottom, left:right], cover, np.asarray(tone, np.float32))

    def dots(self, centres: Sequence[Point], radii: Sequence[float], *, blur: float = 0.6) -> Pixels:
        """The mask of many small discs."""

        def draw(pen: ImageDraw.ImageDraw) -> None:
            for centre, radius in zip(centres, radii, strict=True):
                (column, row), reach = self._pixels_of([centre])[0], max(radius * self.unit, 0.5)
                pen.ellipse((column - reach, row - reach, column + reach, row + reach), fill=255)

        return self._drawn(draw, blur)

    def cloud(self, cells: int) -> Pixels:
        """Smooth noise of unit strength with approximately this many cells along the shorter edge."""
        shape = (round(cells * self.height / (2 * self.unit)) + 2, round(cells * self.width / (2 * self.unit)) + 2)
        coarse = Image.fromarray(self.rng.standard_normal(shape, dtype=np.float32))
        return np.asarray(coarse.resize((self.width, self.height), Image.Resampling.BICUBIC))

    def grain(self, strength: float) -> None:
        """Add pixel noise."""
        self.pixels += np.float32(strength) * self.rng.standard_normal(self.pixels.shape, dtype=np.float32)

    def ct(self, noise: float = 0.025) -> Pixels:
        """Finish as a CT slice: correlated noise and a window that is never quite the same."""
        self.pixels += np.float32(noise) * 0.6 * self.cloud(90)
        self.grain(noise)
        return self._developed(gain=self.vary(1.0, 0.06), lift=self.vary(0.0, 0.02))

    def mr(self, noise: float = 0.022) -> Pixels:
        """Finish as an MR slice: a coil's uneven field, and noise that also fills the air."""
        self.pixels *= 1 + np.float32(0.10) * self.cloud(1)
        self.grain(noise)
        return self._developed(gain=self.vary(1.0, 0.08), lift=0.012)

    def radiograph(self, noise: float = 0.015) -> Pixels:
        """Finish as a projection: scatter, fine quantum noise, varying exposure."""
        self.pixels += np.float32(0.02) * self.cloud(6)
        self.grain(noise)
        return self._developed(gain=self.vary(1.0, 0.07), lift=self.vary(0.0, 0.03))

    def counts(self, level: float = 60.0) -> Pixels:
        """Finish as a scintigram: blurred counts with the noise of counting, dark where the tracer is."""
        blurred = Image.fromarray(np.clip(self.pixels * 255, 0, 255).astype(np.uint8)).filter(
            ImageFilter.GaussianBlur(1.6)
        )
        mean = np.asarray(blurred, np.float32) / np.float32(255)
        noise = self.rng.standard_normal(mean.shape, dtype=np.float32) * np.sqrt(mean / np.float32(level))
        inverted: Pixels = np.clip(1 - np.float32(self.vary(1.0, 0.06)) * (mean + noise), 0, 1)
        return inverted

    def photograph(self, noise: float = 0.015) -> Pixels:
        """Finish as a colour picture: white balance, exposure, sensor noise."""
        balance = 1 + np.float32(0.03) * self.rng.standard_normal(3, dtype=np.float32)
        self.pixels *= balance
        self.pixels += np.float32(noise) * self.rng.standard_normal((self.height, self.width, 1), dtype=np.float32)
        return self._developed(gain=self.vary(1.0, 0.05), lift=0.0)

    def _developed(self, *, gain: float, lift: float) -> Pixels:
        developed: Pixels = np.clip(self.pixels * np.float32(gain) + np.float32(lift), 0, 1)
        return developed

    def _drawn(self, draw: Callable[[ImageDraw.ImageDraw], None], blur: float) -> Pixels:
        layer = Image.new("L", (self.width, self.height))
        draw(ImageDraw.Draw(layer))
        if blur:
            layer = layer.filter(ImageFilter.BoxBlur(blur))
        return np.asarray(layer, np.float32) / np.float32(255)

    def _pixels_of(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self.unit + self.width / 2, y * self.unit + self.height / 2) for x, y in points]

    def _window(self, middle: float, reach: float, length: int) -> slice:
        at, half = middle * self.unit + length / 2, reach * self.unit + 1
        return slice(max(0, int(at - half)), min(length, int(at + half) + 1))

    def _cover(self, x: Pixels, y: Pixels, shape: tuple[Point, Point], form: tuple[float, float, float]) -> Pixels:
        ((cx, cy), (rx, ry)), (turn, soft, wobble) = shape, form
        across, down = x - np.float32(cx), y - np.float32(cy)
        if turn:
            cos, sin = np.float32(np.cos(turn)), np.float32(np.sin(turn))
            across, down = across * cos + down * sin, down * cos - across * sin
        across, down = across / np.float32(rx), down / np.float32(ry)
        radius = np.sqrt(across * across + down * down)
        if wobble:
            radius += np.float32(wobble / 2) * self._waves(across, down, radius)
        cover: Pixels = np.clip((1 - radius) * np.float32(min(rx, ry) / soft) + np.float32(0.5), 0, 1)
        return cover

    def _waves(self, across: Pixels, down: Pixels, radius: Pixels) -> Pixels:
        """A few waves around the centre: powers of the direction as a complex number, which is cheaper than angles."""
        length = radius + np.float32(1e-6)
        direction = (across / length) + np.complex64(1j) * (down / length)
        second = direction * direction
        third = second * direction
        turns = np.exp(1j * self.rng.uniform(0, 2 * np.pi, 4)).astype(np.complex64)
        waves = turns[0] * second + np.float32(0.8) * turns[1] * third
        waves += np.float32(0.4) * turns[2] * second * second + np.float32(0.25) * turns[3] * second * third * second
        return np.asarray(waves.real, np.float32)


def smoothed(points: Sequence[Point]) -> Sequence[Point]:
    """A smooth curve through the points (Catmull–Rom)."""
    if len(points) < 3:
        return points
    knots = np.asarray([points[0], *points, points[-1]], np.float64)
    before, start, end, after = knots[:-3], knots[1:-2], knots[2:-1], knots[3:]
    curve = []
    for t in (0.0, 0.25, 0.5, 0.75):
        bend = (2 * before - 5 * start + 4 * end - after) * t**2 + (3 * (start - end) + after - before) * t**3
        curve.append((2 * start + (end - before) * t + bend) / 2)
    ordered = np.stack(curve, axis=1).reshape(-1, 2)
    return [(x, y) for x, y in [*ordered.tolist(), points[-1]]]


def _mix(pixels: Pixels, cover: Pixels, tone: Pixels) -> None:
    if pixels.ndim == 3:
        cover = cover[..., None]
    pixels += cover * (tone - pixels)
