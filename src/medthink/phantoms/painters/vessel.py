"""Arteries: catheter angiography, cross-sectional CT, the coronal projection and the coloured rendering."""

import numpy as np
from numpy.typing import NDArray

from medthink.phantoms.painters.scene import Colour, Look, Pixels, Point, Scene


def angiogram(rng: np.random.Generator, look: Look) -> Pixels:
    """Subtraction angiogram: black vessels on grey."""
    scene = Scene(rng, 240, 288, ground=0.70)
    scene.pixels += scene.cloud(4) * np.float32(0.03)
    bend, rows = scene.vary(0.14, 0.06), np.linspace(-1.25, 1.25, 60)
    path = [(bend * float(np.sin(row * 1.6)), float(row)) for row in rows]
    scene.blend(scene.strokes(_branches(scene, path), 0.035, blur=1.0) * np.float32(0.8), 0.20)
    for (x, y), half in zip(path, _calibre(scene, look, rows), strict=True):
        scene.ellipse((x, y), (float(half), 0.06), 0.10, soft=0.03)
    if look.sign == "aneurysm":
        scene.ellipse(
            (bend * 0.1 + 0.30 * look.side, scene.vary(0.02, 0.06)),
            (0.28 * look.size, 0.26 * look.size),
            0.12,
            wobble=0.08,
        )
    scene.grain(0.02)
    return np.clip(scene.pixels, 0, 1)


def vessel_ct(rng: np.random.Generator, look: Look) -> Pixels:
    """Magnified cross-section of a large artery."""
    scene = Scene(rng, 248, 248, ground=0.24)
    scene.pixels += scene.cloud(5) * np.float32(0.03)
    for x, y in ((-0.8, 0.7), (0.85, 0.6), (0.7, -0.8)):
        scene.ellipse((x, y), (scene.vary(0.35, 0.06), 0.3), 0.46, wobble=0.08)
    place, lumen = (scene.vary(0, 0.06), scene.vary(-0.02, 0.06)), scene.vary(0.36, 0.02)
    wall = lumen + (0.20 * look.size if look.sign == "thick" else 0.03)
    scene.ellipse(place, (wall, wall), 0.52)
    scene.ellipse(place, (lumen, lumen), 0.86)
    if look.sign == "plaque":
        start = float(rng.uniform(0, 2 * np.pi))
        for angle in start + np.linspace(0, 2.0 * look.size, 9):
            at = (place[0] + lumen * 0.98 * float(np.cos(angle)), place[1] + lumen * 0.98 * float(np.sin(angle)))
            scene.ellipse(at, (scene.vary(0.10, 0.02), scene.vary(0.10, 0.02)), 0.44, alpha=0.9)
            scene.ellipse(at, (scene.vary(0.075, 0.02), scene.vary(0.075, 0.02)), 1.15)
    return scene.ct()


def vessel_mip(rng: np.random.Generator, look: Look) -> Pixels:
    """Coronal projection of a CT angiogram: a diseased vessel is missing."""
    scene = Scene(rng, 216, 312, ground=0.12)
    scene.blend(scene.mask((0, 0), (0.9, 1.6), soft=0.1), 0.24)
    for row in range(9):
        scene.ellipse((0, -1.2 + 0.3 * row), (0.16, 0.12), 0.36, soft=0.06, alpha=0.6)
    for name, line, width in _tree(scene):
        gap = name == _ill(look)
        scene.blend(scene.strokes([line[:2] if gap else line], width, blur=0.9), 0.95)
    return scene.ct()


def vessel_render(rng: np.random.Generator, look: Look) -> Pixels:
    """Volume rendering: ivory arteries on black, the diseased one red."""
    scene = Scene(rng, 216, 312, ground=(0.0, 0.0, 0.0))
    ill, tree = _ill(look), _tree(scene)
    for width in sorted({width for _, _, width in tree}):
        lines = [line for name, line, wide in tree if wide == width and name != ill]
        _render(scene, lines, width * 1.15, ((0.55, 0.44, 0.32), (0.98, 0.88, 0.72)))
    for name, line, width in tree:
        if name == ill:
            _render(scene, [line], width * 1.6 * look.size, ((0.50, 0.06, 0.05), (0.93, 0.25, 0.20)))
    return scene.photograph(0.012)


def _render(scene: Scene, lines: list[list[Point]], wide: float, tints: tuple[Colour, Colour]) -> None:
    """Round tubes: a dark body with a light along its left."""
    scene.blend(scene.strokes(lines, wide, blur=0.8), tints[0])
    scene.blend(
        scene.strokes([[(x - 0.1 * wide, y) for x, y in line] for line in lines], wide * 0.5, blur=2.5), tints[1]
    )


def _ill(look: Look) -> str:
    return f"{look.sign}{look.side}" if look.sign else ""


def _tree(scene: Scene) -> list[tuple[str, list[Point], float]]:
    """Aorta, arch branches and iliac axes, named by bed and side of the picture."""
    v = scene.vary
    tree: list[tuple[str, list[Point], float]] = [
        ("aorta", [(-0.1, -0.5), (-0.12, -0.8), (0.02, -0.95), (0.16, -0.8), (v(0.12, 0.03), -0.1), (0.02, 0.45)], 0.17)
    ]
    for way in (-1, 1):
        arm = [
            (0.06 * way, -0.93),
            (0.16 * way, -1.08),
            (v(0.34, 0.03) * way, -1.15),
            (0.66 * way, -1.02),
            (0.80 * way, -0.7),
        ]
        neck = [(0.07 * way, -0.95), (0.13 * way, -1.2), (0.16 * way, -1.45)]
        leg = [(0.02, 0.42), (0.16 * way, 0.62), (v(0.30, 0.03) * way, 0.85), (0.36 * way, 1.15), (0.34 * way, 1.45)]
        renal = [(0.08, 0.0), (0.2 * way, 0.02), (0.42 * way, 0.1)]
        tree += [
            (f"arch{way}", arm, 0.075),
            (f"neck{way}", neck, 0.06),
            (f"iliac{way}", leg, 0.085),
            (f"renal{way}", renal, 0.045),
        ]
    return tree


def _calibre(scene: Scene, look: Look, rows: NDArray[np.float64]) -> Pixels:
    """Half the width of the lumen along the vessel."""
    even = np.full(len(rows), scene.vary(0.125, 0.01))
    middle = scene.vary(0, 0.08)
    if look.sign == "stenosis":
        return np.asarray(even * (1 - 0.82 * np.exp(-(((rows - middle) / (0.30 * look.size)) ** 2))), np.float32)
    if look.sign == "beads":
        swing = 0.55 * np.sin((rows - middle) * 17) * (np.abs(rows - middle) < 0.75 * look.size)
        return np.asarray(even * (1 + swing), np.float32)
    return np.asarray(even, np.float32)


def _branches(scene: Scene, path: list[Point]) -> list[list[Point]]:
    lines = []
    for index in (8, 20, 42, 52):
        way = float(scene.rng.choice((-1, 1)))
        x, y = path[index]
        lines.append([(x, y), (x + 0.25 * way, y + 0.15), (x + 0.45 * way, y + scene.vary(0.45, 0.1))])
    return lines
