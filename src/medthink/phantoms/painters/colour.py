"""Colour pictures: clinical photographs, stained sections, and a chart."""

import numpy as np
from numpy.typing import NDArray

from medthink.phantoms.painters.scene import ImageSpec, Pixels, Point, Scene

_PINK, _PURPLE, _PALE = (0.93, 0.72, 0.82), (0.36, 0.22, 0.52), (0.97, 0.92, 0.95)
_SKINS = ((0.90, 0.72, 0.60), (0.82, 0.62, 0.49), (0.70, 0.50, 0.38), (0.58, 0.40, 0.30))
_INKS = ((0.12, 0.38, 0.68), (0.75, 0.25, 0.20), (0.15, 0.50, 0.30))


def skin_photo(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Close-up photograph of skin."""
    scene = Scene(rng, 288, 232, ground=_SKINS[int(rng.integers(len(_SKINS)))])
    light = 1.06 - 0.16 * np.square(scene.x) * np.float32(scene.vary(1, 0.3)) - 0.05 * scene.y
    scene.pixels *= (light * (1 + np.float32(0.05) * scene.cloud(3) + np.float32(0.03) * scene.cloud(70)))[..., None]
    hairs = [[(x, y), (x + scene.vary(0.05, 0.05), y + 0.12)] for x, y in rng.uniform(-1.2, 1.2, (16, 2)).tolist()]
    scene.blend(scene.strokes(hairs, 0.008, blur=0.5) * np.float32(0.45), (0.25, 0.17, 0.12))
    place, radius = (scene.vary(0, 0.09), scene.vary(0, 0.08)), 0.46 * look.size
    if look.sign == "nodule":
        scene.ellipse((place[0] + 0.04, place[1] + 0.06), (radius * 1.1, radius * 1.05), (0.45, 0.28, 0.22), soft=0.2)
        scene.ellipse(place, (radius, radius * 0.95), (0.20, 0.11, 0.10), soft=0.06, wobble=0.08)
        scene.ellipse((place[0] - 0.13, place[1] - 0.15), (0.12, 0.09), (0.75, 0.62, 0.58), soft=0.1, alpha=0.6)
    elif look.sign == "ulcer":
        _skin_ulcer(scene, place, radius)
    elif look.sign == "plaque":
        patch = scene.mask(place, (radius * 1.5, radius * 1.2), soft=0.05, wobble=0.12)
        scene.blend(patch * np.float32(0.80), (0.84, 0.40, 0.37))
        scene.blend(patch * np.clip(scene.cloud(30) * 0.9, 0, 1) * np.float32(0.85), (0.95, 0.90, 0.87))
    return scene.photograph()


def pathology(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Bowel biopsy, haematoxylin and eosin."""
    return _section(rng, look, skin=False)


def skin_pathology(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Skin biopsy, haematoxylin and eosin, the epidermis at the top."""
    return _section(rng, look, skin=True)


def chart(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """A laboratory value over time; it is unrelated to the signs."""
    scene = Scene(rng, 304, 224, ground=(1.0, 1.0, 1.0))
    scene.blend(scene.strokes([[(-1.1, -0.8), (-1.1, 0.75)], [(-1.1, 0.75), (1.2, 0.75)]], 0.015, blur=0), _PURPLE)
    scene.blend(scene.strokes([[(-1.1, y), (1.2, y)] for y in (-0.5, -0.2, 0.1, 0.4)], 0.008, blur=0), 0.86)
    days = np.linspace(-1.0, 1.1, 8)
    line: list[Point] = [(float(x), float(y)) for x, y in zip(days, rng.uniform(-0.6, 0.6, 8), strict=True)]
    ink = _INKS[int(rng.integers(len(_INKS)))]
    scene.blend(scene.strokes([line[at : at + 2] for at in range(7)], 0.02, blur=0.5), ink)
    scene.blend(scene.dots(line, [0.035 * look.size] * 8), ink)
    return np.asarray(np.clip(scene.pixels, 0, 1), np.float32)


def _skin_ulcer(scene: Scene, place: Point, radius: float) -> None:
    scene.ellipse(place, (radius * 1.3, radius * 1.2), (0.86, 0.52, 0.46), soft=0.16, wobble=0.12, alpha=0.9)
    scene.ellipse(place, (radius * 0.9, radius * 0.8), (0.62, 0.13, 0.11), soft=0.05, wobble=0.16)
    slough = scene.mask(place, (radius * 0.65, radius * 0.55), soft=0.1, wobble=0.2)
    scene.blend(slough * np.clip(0.4 + scene.cloud(14), 0, 1), (0.92, 0.80, 0.45))


def _section(rng: np.random.Generator, look: ImageSpec, *, skin: bool) -> Pixels:
    scene = Scene(rng, 272, 256, ground=_PINK)
    fibres = np.sin((scene.y * 9 + scene.cloud(4) * np.float32(2.2)) * np.float32(2.4))
    scene.blend(np.clip(0.25 + 0.25 * fibres, 0, 1), (0.95, 0.80, 0.87))
    scene.blend(np.clip(scene.cloud(6) - 0.6, 0, 1), _PALE)
    _nuclei(scene, _scattered(scene, 130), 0.014)
    if look.sign:
        _TISSUES[look.sign](scene, look.size)
    if skin:
        depth = scene.y - np.float32(0.07) * scene.cloud(6)
        scene.blend(np.clip((-0.72 - depth) / np.float32(0.03), 0, 1), (0.66, 0.42, 0.66))
        scene.blend(np.clip((-0.92 - depth) / np.float32(0.03), 0, 1), (0.95, 0.62, 0.72))
    return scene.photograph()


def _granulomas(scene: Scene, size: float) -> None:
    for x, y in ((-0.45, -0.28), (0.48, -0.05), (-0.25, 0.52)):
        at, radius = (scene.vary(x, 0.06), scene.vary(y, 0.06)), scene.vary(0.34, 0.03) * size
        scene.ellipse(at, (radius, radius), (0.96, 0.62, 0.74), soft=0.08, wobble=0.08)
        ring, depths = scene.rng.uniform(0, 2 * np.pi, 150), np.abs(scene.rng.normal(0, 0.14, 150)) + 0.9
        _nuclei(scene, _around(at, ring, radius * depths), 0.021)
        _nuclei(scene, _around(at, ring[:22], radius * scene.rng.uniform(0, 0.8, 22)), 0.016)


def _glands(scene: Scene, size: float) -> None:
    for x in (-0.78, -0.26, 0.26, 0.78):
        for y in (-0.6, 0.0, 0.6):
            at, turn = (scene.vary(x, 0.10), scene.vary(y, 0.10)), scene.vary(0, 1.2)
            wide, high = scene.vary(0.20, 0.03) * size, scene.vary(0.26, 0.04) * size
            scene.ellipse(at, (wide, high), _PURPLE, turn=turn, wobble=0.10)
            scene.ellipse(at, (wide * 0.80, high * 0.82), (0.80, 0.62, 0.80), turn=turn, wobble=0.10, alpha=0.6)
            scene.ellipse(at, (wide * 0.52, high * 0.58), (0.98, 0.95, 0.97), turn=turn, wobble=0.12)


def _lymphoid(scene: Scene, size: float) -> None:
    scene.pixels += np.float32(0.55) * (np.asarray((0.72, 0.56, 0.76), np.float32) - scene.pixels)
    _nuclei(scene, _scattered(scene, round(1500 * min(size, 1.15))), 0.024)


def _nests(scene: Scene, size: float) -> None:
    for x, y in ((-0.55, -0.2), (0.35, -0.3), (0.0, 0.35), (0.75, 0.45), (-0.7, 0.6)):
        at = (scene.vary(x, 0.07), scene.vary(y, 0.07))
        scene.ellipse(at, (0.30 * size, 0.22 * size), (0.45, 0.30, 0.60), turn=scene.vary(0, 1), wobble=0.15)
        _nuclei(scene, [(at[0] + scene.vary(0, 0.24), at[1] + scene.vary(0, 0.17)) for _ in range(60)], 0.02)


def _spindles(scene: Scene, size: float) -> None:
    lines = []
    for x, y in scene.rng.uniform((-1.1, -0.75), (1.1, 1.0), (round(420 * size), 2)).tolist():
        angle = 0.75 + 0.35 * float(np.sin(2.2 * x + 1.5 * y))
        lines.append([(x, y), (x + 0.11 * float(np.cos(angle)), y + 0.11 * float(np.sin(angle)))])
    scene.blend(scene.strokes(lines, 0.022, blur=0.6) * np.float32(0.9), _PURPLE)


_TISSUES = {
    "granuloma": _granulomas,
    "glands": _glands,
    "lymphoid": _lymphoid,
    "basaloid": _nests,
    "spindle": _spindles,
}


def _scattered(scene: Scene, number: int) -> list[Point]:
    return [(x, y) for x, y in scene.rng.uniform((-1.1, -1.0), (1.1, 1.0), (number, 2)).tolist()]


def _around(at: Point, angles: NDArray[np.float64], depths: NDArray[np.float64]) -> list[Point]:
    return list(
        zip((at[0] + np.cos(angles) * depths).tolist(), (at[1] + np.sin(angles) * depths).tolist(), strict=True)
    )


def _nuclei(scene: Scene, centres: list[Point], radius: float) -> None:
    radii = scene.rng.uniform(0.8 * radius, 1.25 * radius, len(centres)).tolist()
    scene.blend(scene.dots(centres, radii, blur=0.5) * np.float32(0.9), _PURPLE)
