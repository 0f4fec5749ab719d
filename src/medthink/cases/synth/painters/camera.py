"""Colour pictures: clinical photographs, stained sections, and a chart."""

import numpy as np

from medthink.cases.synth.painters.scene import Look, Pixels, Point, Scene

_PINK, _PURPLE, _PALE = (0.93, 0.72, 0.82), (0.36, 0.22, 0.52), (0.97, 0.92, 0.95)
_SKINS = ((0.90, 0.72, 0.60), (0.82, 0.62, 0.49), (0.70, 0.50, 0.38), (0.58, 0.40, 0.30))


def skin_photo(rng: np.random.Generator, look: Look) -> Pixels:
    """Close-up photograph of skin."""
    scene = Scene(rng, 288, 232)
    colour = _sheet(scene, _SKINS[int(rng.integers(len(_SKINS)))])
    colour *= (1 + np.float32(0.05) * scene.cloud(3) + np.float32(0.03) * scene.cloud(70))[..., None]
    colour *= (1.06 - 0.16 * np.square(scene.x) * np.float32(scene.vary(1, 0.3)) - 0.05 * scene.y)[..., None]
    hairs = [[(x, y), (x + scene.vary(0.05, 0.05), y + 0.12)] for x, y in rng.uniform(-1.2, 1.2, (16, 2)).tolist()]
    _tint(colour, scene.strokes(hairs, 0.008, blur=0.5) * np.float32(0.45), (0.25, 0.17, 0.12))
    place, radius = (scene.vary(0, 0.09), scene.vary(0, 0.08)), 0.46 * look.size
    if look.sign == "nodule":
        _tint(
            colour,
            scene.mask((place[0] + 0.04, place[1] + 0.06), (radius * 1.1, radius * 1.05), soft=0.2),
            (0.45, 0.28, 0.22),
        )
        _tint(colour, scene.mask(place, (radius, radius * 0.95), soft=0.06, wobble=0.06), (0.20, 0.11, 0.10))
        _tint(
            colour,
            scene.mask((place[0] - 0.13, place[1] - 0.15), (0.12, 0.09), soft=0.1) * np.float32(0.6),
            (0.75, 0.62, 0.58),
        )
    elif look.sign == "ulcer":
        _tint(
            colour,
            scene.mask(place, (radius * 1.25, radius * 1.15), soft=0.14, wobble=0.1) * np.float32(0.9),
            (0.86, 0.50, 0.44),
        )
        _tint(colour, scene.mask(place, (radius * 0.85, radius * 0.75), soft=0.04, wobble=0.14), (0.62, 0.10, 0.09))
        _tint(
            colour,
            scene.mask(place, (radius * 0.6, radius * 0.5), soft=0.1, wobble=0.2)
            * np.clip(0.4 + scene.cloud(14), 0, 1),
            (0.92, 0.80, 0.45),
        )
    elif look.sign == "plaque":
        patch = scene.mask(place, (radius * 1.5, radius * 1.2), soft=0.05, wobble=0.10)
        _tint(colour, patch * np.float32(0.85), (0.84, 0.36, 0.34))
        _tint(colour, patch * np.clip(scene.cloud(26) * 1.2, 0, 1) * np.float32(0.9), (0.96, 0.93, 0.90))
    return _developed(scene, colour)


def pathology(rng: np.random.Generator, look: Look) -> Pixels:
    """Bowel biopsy, haematoxylin and eosin."""
    return _section(rng, look)


def skin_pathology(rng: np.random.Generator, look: Look) -> Pixels:
    """Skin biopsy, haematoxylin and eosin, the epidermis at the top."""
    return _section(rng, look, epidermis=True)


def chart(rng: np.random.Generator, look: Look) -> Pixels:
    """A laboratory value over time; it says nothing about the signs."""
    scene = Scene(rng, 304, 224)
    colour = _sheet(scene, (1.0, 1.0, 1.0))
    _tint(colour, scene.strokes([[(-1.1, -0.8), (-1.1, 0.75), (1.2, 0.75)]], 0.015, blur=0), (0.1, 0.1, 0.1))
    _tint(
        colour,
        scene.strokes([[(-1.1, y), (1.2, y)] for y in (-0.5, -0.2, 0.1, 0.4)], 0.008, blur=0),
        (0.85, 0.85, 0.88),
    )
    days = np.linspace(-1.0, 1.1, 8)
    line: list[Point] = [(float(x), float(y)) for x, y in zip(days, rng.uniform(-0.6, 0.6, 8), strict=True)]
    shade = ((0.12, 0.38, 0.68), (0.75, 0.25, 0.2), (0.15, 0.5, 0.3))[int(rng.integers(3))]
    _tint(colour, scene.strokes([line], 0.02, blur=0.5), shade)
    _tint(colour, scene.dots(line, [0.035 * look.size] * 8), shade)
    return np.asarray(np.clip(colour, 0, 1), np.float32)


def _section(rng: np.random.Generator, look: Look, *, epidermis: bool = False) -> Pixels:
    scene = Scene(rng, 272, 256)
    colour = _sheet(scene, _PINK)
    fibres = np.sin((scene.y * 9 + scene.cloud(4) * 2.2).astype(np.float32) * np.float32(2.4))
    _tint(colour, np.clip(0.5 + 0.5 * fibres, 0, 1) * np.float32(0.5), (0.95, 0.80, 0.87))
    _tint(colour, np.clip(scene.cloud(6) - 0.6, 0, 1), _PALE)
    _nuclei(scene, colour, _scattered(scene, 130), 0.014)
    if look.sign == "granuloma":
        _granulomas(scene, colour, look.size)
    elif look.sign == "glands":
        _glands(scene, colour, look.size)
    elif look.sign == "lymphoid":
        _tint(colour, np.full(fibres.shape, 0.55, np.float32), (0.72, 0.56, 0.76))
        _nuclei(scene, colour, _scattered(scene, round(1500 * min(look.size, 1.15))), 0.024)
    elif look.sign == "basaloid":
        _nests(scene, colour, look.size)
    elif look.sign == "spindle":
        _spindles(scene, colour, look.size)
    if epidermis:
        edge = np.clip((-0.72 + 0.07 * scene.cloud(6) - scene.y) / 0.03, 0, 1)
        _tint(colour, np.asarray(edge, np.float32), (0.66, 0.42, 0.66))
        _tint(
            colour,
            np.asarray(np.clip((-0.9 + 0.03 * scene.cloud(8) - scene.y) / 0.03, 0, 1), np.float32),
            (0.95, 0.62, 0.72),
        )
    return _developed(scene, colour)


def _granulomas(scene: Scene, colour: Pixels, size: float) -> None:
    for x, y in ((-0.45, -0.28), (0.48, -0.05), (-0.25, 0.52)):
        at, radius = (scene.vary(x, 0.06), scene.vary(y, 0.06)), scene.vary(0.34, 0.03) * size
        _tint(colour, scene.mask(at, (radius, radius), soft=0.06, wobble=0.06), (0.96, 0.60, 0.72))
        ring = scene.rng.uniform(0, 2 * np.pi, 110)
        cuff = [
            (at[0] + radius * float(np.cos(a)) * d, at[1] + radius * float(np.sin(a)) * d)
            for a, d in zip(ring, scene.rng.uniform(0.92, 1.2, 110).tolist(), strict=True)
        ]
        _nuclei(scene, colour, cuff, 0.022)


def _glands(scene: Scene, colour: Pixels, size: float) -> None:
    for x in (-0.78, -0.26, 0.26, 0.78):
        for y in (-0.6, 0.0, 0.6):
            at, turn = (scene.vary(x, 0.07), scene.vary(y, 0.07)), scene.vary(0, 1.2)
            radii = (scene.vary(0.20, 0.02) * size, scene.vary(0.26, 0.03) * size)
            _tint(colour, scene.mask(at, radii, turn=turn, wobble=0.08), _PURPLE)
            _tint(
                colour, scene.mask(at, (radii[0] * 0.62, radii[1] * 0.68), turn=turn, wobble=0.08), (0.98, 0.95, 0.97)
            )


def _nests(scene: Scene, colour: Pixels, size: float) -> None:
    for x, y in ((-0.55, -0.2), (0.35, -0.3), (0.0, 0.35), (0.75, 0.45), (-0.7, 0.6)):
        at = (scene.vary(x, 0.07), scene.vary(y, 0.07))
        _tint(
            colour, scene.mask(at, (0.30 * size, 0.22 * size), turn=scene.vary(0, 1), wobble=0.15), (0.42, 0.27, 0.58)
        )
        spots = [(at[0] + scene.vary(0, 0.24), at[1] + scene.vary(0, 0.17)) for _ in range(45)]
        _nuclei(scene, colour, spots, 0.02)


def _spindles(scene: Scene, colour: Pixels, size: float) -> None:
    lines = []
    for x, y in scene.rng.uniform((-1.1, -0.75), (1.1, 1.0), (round(420 * size), 2)).tolist():
        angle = 0.75 + 0.35 * float(np.sin(2.2 * x + 1.5 * y))
        lines.append([(x, y), (x + 0.11 * float(np.cos(angle)), y + 0.11 * float(np.sin(angle)))])
    _tint(colour, scene.strokes(lines, 0.022, blur=0.6) * np.float32(0.9), _PURPLE)


def _scattered(scene: Scene, number: int) -> list[Point]:
    return [(x, y) for x, y in scene.rng.uniform((-1.1, -1.0), (1.1, 1.0), (number, 2)).tolist()]


def _nuclei(scene: Scene, colour: Pixels, centres: list[Point], radius: float) -> None:
    radii = scene.rng.uniform(0.8 * radius, 1.25 * radius, len(centres)).tolist()
    _tint(colour, scene.dots(centres, radii, blur=0.5) * np.float32(0.9), _PURPLE)


def _sheet(scene: Scene, tone: tuple[float, float, float]) -> Pixels:
    return np.ones((scene.height, scene.width, 1), np.float32) * np.asarray(tone, np.float32)


def _tint(colour: Pixels, mask: Pixels, tone: tuple[float, float, float]) -> None:
    colour += mask[..., None] * (np.asarray(tone, np.float32) - colour)


def _developed(scene: Scene, colour: Pixels) -> Pixels:
    balance = np.float32(1) + np.float32(0.03) * scene.rng.standard_normal(3, dtype=np.float32)
    colour = colour * balance * np.float32(scene.vary(1.0, 0.05))
    colour += np.float32(0.015) * scene.rng.standard_normal((scene.height, scene.width, 1), dtype=np.float32)
    return np.asarray(np.clip(colour, 0, 1), np.float32)
