"""Chest: three kinds of CT, the frontal radiograph, the FDG projection, and the vessels."""

import numpy as np
from numpy.typing import NDArray

from medthink.phantoms.painters.scene import Colour, ImageSpec, Pixels, Point, Scene

_LUNGS = ((-0.52, 0.02), (0.52, 0.02))


def chest_ct_lung(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial CT, lung window."""
    scene = Scene(rng, 300, 256)
    lungs = _axial_thorax(scene, wall=0.84, lung=0.13, core=0.88)
    _vessels(scene, lungs)
    if look.sign == "reticular":
        _honeycomb(scene, look.size)
    elif look.sign == "nodular":
        spots = _spots_in_lungs(scene, round(95 * look.size))
        scene.blend(scene.dots(spots, rng.uniform(0.024, 0.042, len(spots)).tolist()) * lungs, 0.9)
    elif look.sign == "ground_glass":
        haze = np.clip(0.8 + 0.35 * scene.cloud(5), 0, 1) * np.float32(min(1.0, 0.85 * look.size)) * lungs
        scene.pixels += haze * np.float32(0.40)
    return scene.ct(0.03)


def chest_ct_soft(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial enhanced CT, mediastinal window."""
    scene = Scene(rng, 300, 256)
    lungs = _axial_thorax(scene, wall=0.46, lung=0.03, core=0.40, skin=0.25)
    scene.ellipse((0.16, -0.16), (0.36, 0.30), 0.66, turn=-0.5, wobble=0.04)
    scene.ellipse((0.20, 0.30), (0.10, 0.10), 0.82)
    if look.sign == "nodes":
        for x, y in ((-0.22, 0.02), (-0.34, 0.16), (0.02, 0.22), (0.36, 0.16), (-0.12, 0.30), (-0.40, -0.08)):
            radius = scene.vary(0.115, 0.02) * look.size
            scene.ellipse(
                (scene.vary(x, 0.03), scene.vary(y, 0.03)), (radius, radius * 0.85), scene.vary(0.56, 0.03), wobble=0.06
            )
    elif look.sign == "pleura":
        depth = scene.vary(0.22, 0.03) - 0.30 * (look.size - 1)
        layer = np.clip((scene.y - np.float32(depth)) / 0.03 + 0.25 * np.abs(scene.x), 0, 1)
        scene.blend(layer * lungs * (scene.x * look.side > 0), 0.36)
    return scene.ct(0.025)


def chest_ct_coronal(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coronal CT, lung window."""
    scene = Scene(rng, 272, 288, ground=0.0)
    scene.blend(scene.mask((0, 0.25), (0.96, 1.35), wobble=0.03), 0.84)
    lungs = _frontal_lungs(scene, scene.vary(0.13, 0.02), heart=0.88)
    _vessels(scene, lungs)
    _zones(scene, look, lungs, tone=0.52)
    return scene.ct(0.03)


def chest_radiograph(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Frontal chest radiograph."""
    scene = Scene(rng, 272, 288, ground=0.05)
    scene.blend(scene.mask((0, 0.35), (1.02, 1.5), soft=0.12, wobble=0.02), 0.62)
    scene.ellipse((0, -1.05), (0.22, 0.35), 0.55, soft=0.1)
    lungs = _frontal_lungs(scene, scene.vary(0.20, 0.03), soft=0.08, heart=0.78)
    scene.ellipse((0.02, -0.55), (0.055, 0.42), 0.5, soft=0.05, alpha=0.6)
    _vessels(scene, lungs, tone=0.45, spread=0.5)
    _zones(scene, look, lungs, tone=0.66)
    scene.pixels += scene.strokes(
        [_rib(side, row) for side in (-1, 1) for row in range(8)], 0.045, blur=1.4
    ) * np.float32(0.10)
    clavicles = [[(0.08 * side, -0.64), (0.45 * side, -0.74), (0.9 * side, -0.78)] for side in (-1, 1)]
    scene.pixels += scene.strokes(clavicles, 0.05, blur=1.2) * np.float32(0.16)
    return scene.radiograph(0.018)


def chest_pet(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """FDG PET, anterior maximum intensity projection."""
    scene = Scene(rng, 208, 304)
    for centre, radii, tone in (
        ((0, 0.1), (0.62, 1.25), 0.16), ((0, -1.12), (0.27, 0.32), 0.20), ((0, -1.2), (0.20, 0.20), 0.85),
        ((-0.74, -0.05), (0.13, 0.75), 0.12), ((0.74, -0.05), (0.13, 0.75), 0.12),
        ((-0.24, 0.28), (0.30, 0.20), 0.36), ((0.22, 0.5), (0.10, 0.15), 0.5), ((-0.24, 0.56), (0.10, 0.15), 0.5),
        ((0, 1.12), (0.13, 0.11), 0.95), ((0.14, -0.12), (0.15, 0.13), 0.30),
    ):  # fmt: skip
        scene.ellipse(centre, radii, tone * scene.vary(1.0, 0.08), soft=0.08)
    scene.ellipse((-0.30, -0.35), (0.20, 0.42), 0.09, soft=0.08)
    scene.ellipse((0.32, -0.35), (0.20, 0.42), 0.09, soft=0.08)
    if look.sign == "nodes":
        for x, y in ((-0.1, -0.45), (0.06, -0.52), (-0.14, -0.3), (0.12, -0.36), (0.0, -0.25), (-0.02, -0.62)):
            radius = scene.vary(0.075, 0.015) * look.size
            scene.ellipse((scene.vary(x, 0.03), scene.vary(y, 0.03)), (radius, radius), 0.95, soft=0.03)
    elif look.sign == "pleura":
        scene.ellipse((0.40 * look.side, 0.02), (0.22 * look.size, 0.24 * look.size), 0.62, soft=0.04)
        scene.ellipse((0.33 * look.side, -0.06), (0.20 * look.size, 0.22 * look.size), 0.08, soft=0.05)
    return scene.counts(80)


def _axial_thorax(scene: Scene, *, wall: float, lung: float, core: float, skin: float = 0.7) -> Pixels:
    """Body, lungs, mediastinum, spine and ribs; gives the mask of the lungs."""
    width, height = scene.vary(1.09, 0.025), scene.vary(0.86, 0.025)
    scene.ellipse((0, 0), (width, height), skin)
    scene.ellipse((0, 0.01), (width - 0.08, height - 0.08), wall, soft=0.05)
    lungs = sum(
        (scene.mask((x * scene.vary(1, 0.02), y), (0.43, 0.63), turn=0.12 * (1 if x > 0 else -1)) for x, y in _LUNGS),
        np.float32(0),
    )
    lungs = (
        np.clip(lungs, 0, 1) * (1 - scene.mask((0.10, -0.18), (0.34, 0.34))) * (1 - scene.mask((0, 0.25), (0.20, 0.5)))
    )
    scene.blend(lungs, lung)
    scene.blend(scene.mask((0.04, -0.1), (0.26, 0.42)), core)
    for angle in np.linspace(0.35, 2.79, 7):
        for way in (-1, 1):
            scene.ellipse(
                (float(np.sin(angle)) * (width - 0.15) * way, float(-np.cos(angle)) * (height - 0.15)),
                (0.075, 0.028),
                0.95,
                turn=angle * way,
            )
    scene.ellipse((0, 0.52), (0.15, 0.13), 0.92)
    scene.ellipse((0, 0.70), (0.035, 0.12), 0.9)
    scene.ellipse((0, 0.60), (0.055, 0.045), 0.5)
    return np.asarray(lungs, np.float32)


def _frontal_lungs(scene: Scene, tone: float, *, heart: float, soft: float = 0.04) -> Pixels:
    """Two upright lungs with domed bases around heart and mediastinum; gives the mask of what is seen of them."""
    both = [
        scene.mask((0.46 * way * scene.vary(1, 0.02), -0.02), (0.36, 0.80), turn=0.10 * way, soft=soft)
        for way in (-1, 1)
    ]
    bases = sum(scene.mask((0.46 * way, 0.95 - 0.05 * way), (0.46, 0.42), soft=soft) for way in (-1, 1))
    lungs = np.asarray(np.clip(both[0] + both[1], 0, 1) * np.clip(1 - bases, 0, 1), np.float32)
    scene.blend(lungs, tone)
    core = np.maximum(
        scene.mask((0.15, 0.32), (0.33, 0.44), turn=-0.42, soft=soft), scene.mask((0.02, -0.3), (0.14, 0.62), soft=soft)
    )
    scene.blend(core, heart)
    return np.asarray(lungs * (1 - core), np.float32)


def _zones(scene: Scene, look: ImageSpec, lungs: Pixels, *, tone: float) -> None:
    """Patchy shadowing of the upper or the lower zones."""
    if not look.sign:
        return
    middle = scene.vary(-0.46, 0.04) if look.sign == "upper" else scene.vary(0.34, 0.04)
    reach = np.float32(0.30 * look.size)
    zone = np.clip(1.6 - np.abs(scene.y - np.float32(middle)) / reach, 0, 1)
    patches = np.clip(0.72 + 0.45 * scene.cloud(9), 0, 1)
    scene.blend(np.asarray(zone * patches * lungs * np.float32(0.85), np.float32), tone)


def _vessels(scene: Scene, lungs: Pixels, *, tone: float = 0.6, spread: float = 1.0) -> None:
    """Branching vessels from each hilum."""
    lines: list[list[Point]] = []
    for way in (-1, 1):
        for _ in range(9):
            angle, point = float(scene.rng.uniform(-1.5, 1.5)), (0.2 * way, float(scene.rng.uniform(-0.12, 0.2)))
            line = [point]
            for step in scene.rng.uniform(0.06, 0.15, 4):
                angle += float(scene.rng.normal(0, 0.25))
                point = (
                    point[0] + way * float(np.cos(angle)) * float(step),
                    point[1] + float(np.sin(angle)) * float(step),
                )
                line.append(point)
            lines.append(line)
    scene.blend(scene.strokes(lines, 0.014, blur=0.9) * lungs * np.float32(spread), tone)


def _honeycomb(scene: Scene, size: float) -> None:
    """Stacked thin-walled cysts beneath the pleura."""
    centres = []
    for x, y in _LUNGS:
        way = 1 if x > 0 else -1
        angles = scene.rng.uniform(-1.3, 1.5, round(95 * size))
        depths = scene.rng.uniform(0.70, 0.97, len(angles))
        centres += [
            (x + 0.42 * way * float(np.cos(a) * d), y + 0.60 * float(np.sin(a) * d))
            for a, d in zip(angles, depths, strict=True)
        ]
    radii = scene.rng.uniform(0.028, 0.045, len(centres))
    scene.blend(scene.dots(centres, radii.tolist(), blur=0.5) * np.float32(0.9), 0.72)
    scene.blend(scene.dots(centres, (radii * 0.55).tolist(), blur=0.5), 0.05)


def _spots_in_lungs(scene: Scene, number: int) -> list[Point]:
    angles, depths = scene.rng.uniform(0, 2 * np.pi, number), np.sqrt(scene.rng.uniform(0, 0.92, number))
    ways = scene.rng.choice((-1, 1), number)
    return [
        (float(w * 0.54 + 0.38 * np.cos(a) * d), float(0.02 + 0.58 * np.sin(a) * d))
        for a, d, w in zip(angles, depths, ways, strict=True)
    ]


def _rib(side: int, row: int) -> list[Point]:
    """One posterior rib as an arc, sloping down from the spine."""
    top = -0.72 + 0.19 * row
    return [
        (side * float(x), top + 0.34 * float(x) ** 2 - 0.10 * float(np.sin(3.2 * x))) for x in np.linspace(0.1, 0.86, 9)
    ]


def angiogram(rng: np.random.Generator, look: ImageSpec) -> Pixels:
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


def vessel_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
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


def vessel_mip(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coronal projection of a CT angiogram: a diseased vessel is missing."""
    scene = Scene(rng, 216, 312, ground=0.12)
    scene.blend(scene.mask((0, 0), (0.9, 1.6), soft=0.1), 0.24)
    for row in range(9):
        scene.ellipse((0, -1.2 + 0.3 * row), (0.16, 0.12), 0.36, soft=0.06, alpha=0.6)
    for name, line, width in _tree(scene):
        gap = name == _ill(look)
        scene.blend(scene.strokes([line[:2] if gap else line], width, blur=0.9), 0.95)
    return scene.ct()


def vessel_render(rng: np.random.Generator, look: ImageSpec) -> Pixels:
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


def _ill(look: ImageSpec) -> str:
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


def _calibre(scene: Scene, look: ImageSpec, rows: NDArray[np.float64]) -> Pixels:
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
