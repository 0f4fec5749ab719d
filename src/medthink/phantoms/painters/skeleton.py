"""The leg: radiographs, CT, MR and scintigraphy of a tibial lesion."""

from math import cos, sin

import numpy as np

from medthink.phantoms.painters.scene import ImageSpec, Pixels, Point, Scene, smoothed

_LEVELS = {"epiphysis": -0.62, "metaphysis": -0.28, "diaphysis": 0.62}


def bone_radiograph(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Frontal radiograph of knee and tibia."""
    scene = Scene(rng, 192, 320, ground=0.03)
    scene.blend(scene.polygons([_shaft(0, 0.62, 0.82, (-1.7, 1.7))], blur=6), 0.26)
    _long_bone(scene, _femur(), 0.70)
    _long_bone(scene, _shaft(0, 0.21, 0.50, (-0.78, 1.7)), 0.72)
    scene.blend(scene.strokes([[(-0.46, -0.48), (0, -0.44), (0.46, -0.48)]], 0.035, blur=1), 0.5)
    _long_bone(scene, _shaft(0.52 * look.side, 0.07, 0.13, (-0.5, 1.7)), 0.62)
    _trabeculae(scene, 0.05)
    if look.sign:
        place = (scene.vary(-0.04 * look.side, 0.05), scene.vary(_LEVELS[look.sign], 0.05))
        wide = 0.13 if look.sign == "diaphysis" else 0.20
        scene.ellipse(place, (wide * look.size, 0.20 * look.size), 0.20, soft=0.05, wobble=0.10)
    return scene.radiograph(0.018)


def bone_radiograph_close(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coned radiograph of one segment of a long bone."""
    scene = Scene(rng, 256, 256, ground=0.18)
    scene.blend(scene.polygons([_shaft(0, 0.62, 0.62, (-1.2, 1.2))], blur=2), 0.80)
    scene.blend(scene.polygons([_shaft(0, 0.45, 0.45, (-1.2, 1.2))], blur=4), 0.55)
    _trabeculae(scene, 0.07)
    _margin(scene, look, lucent=0.25, dense=0.97)
    return scene.radiograph(0.02)


def bone_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial CT of the shaft, bone window."""
    scene = _limb(rng, fat=0.10, muscle=0.28, cortex=0.96, marrow=0.24)
    if look.sign == "sclerotic":
        scene.ellipse((0, 0), (0.40, 0.40), 0.98)
        scene.ellipse((scene.vary(0, 0.03), scene.vary(0, 0.03)), (0.20 * look.size, 0.20 * look.size), 0.20, soft=0.03)
    elif look.sign == "permeative":
        angles = rng.uniform(0, 2 * np.pi, round(34 * look.size))
        holes = [
            (0.35 * float(np.cos(a)) * float(d), 0.35 * float(np.sin(a)) * float(d))
            for a, d in zip(angles, rng.uniform(0.75, 1.15, len(angles)), strict=True)
        ]
        scene.blend(scene.dots(holes, rng.uniform(0.035, 0.075, len(holes)).tolist(), blur=1), 0.32)
        scene.ellipse((0.36 * look.side, 0.05), (0.20, 0.26), 0.34, soft=0.08, wobble=0.15)
    return scene.ct()


def bone_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial fat-suppressed fluid-sensitive MR."""
    scene = _limb(rng, fat=0.15, muscle=0.28, cortex=0.02, marrow=0.12)
    if look.sign == "oedema":
        scene.ellipse((0, 0), (0.60 * look.size, 0.55 * look.size), 0.62, soft=0.3, wobble=0.2, alpha=0.8)
        scene.ellipse((0, 0), (0.40, 0.40), 0.05)
        scene.ellipse((0, 0), (0.31, 0.31), 0.90, soft=0.08)
    elif look.sign == "levels":
        _fluid_levels(scene, 0.36 * look.size)
    return scene.mr(0.028)


def bone_scan_leg(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Bone scan of both legs from the front."""
    scene = Scene(rng, 208, 304, ground=0.02)
    for way in (-1, 1):
        x = 0.42 * way
        scene.ellipse((x, -0.2), (0.30, 1.7), 0.08, soft=0.1)
        for centre, radii, tone in (
            ((x, -1.1), (0.09, 0.6), 0.22),
            ((x, -0.62), (0.16, 0.12), 0.42),
            ((x, 0.35), (0.08, 0.85), 0.24),
            ((x, 1.28), (0.13, 0.10), 0.38),
        ):
            scene.ellipse(centre, radii, tone * scene.vary(1, 0.08), soft=0.08)
    if look.sign:
        level = {"epiphysis": -0.52, "metaphysis": -0.18, "diaphysis": 0.46}[look.sign]
        scene.ellipse(
            (0.42 * look.side, scene.vary(level, 0.03)), (0.12 * look.size, 0.13 * look.size), 0.95, soft=0.06
        )
    return scene.counts(55)


def _shaft(x: float, narrow: float, wide: float, span: tuple[float, float]) -> list[Point]:
    """The outline of a bone that is wide at its top and narrows to an even shaft."""
    top, bottom = span
    rows = np.linspace(top, bottom, 24)
    halves = narrow + (wide - narrow) * np.exp(-(((rows - top) / 0.42) ** 2))
    left = [(x - float(h), float(y)) for h, y in zip(halves, rows, strict=True)]
    return left + [(x + float(h), float(y)) for h, y in zip(halves[::-1], rows[::-1], strict=True)]


def _femur() -> list[Point]:
    """The lower end of the femur with its two condyles."""
    right = [(0.21, -1.8), (0.22, -1.45), (0.30, -1.25), (0.47, -1.08), (0.50, -0.95), (0.40, -0.85), (0.22, -0.84)]
    outline = [*right, (0.0, -0.93), *((-x, y) for x, y in reversed(right))]
    return list(smoothed(outline))


def _long_bone(scene: Scene, outline: list[Point], tone: float) -> None:
    """A bone in projection: dense at its edges, fainter in the middle."""
    scene.blend(scene.polygons([outline], blur=1.2), tone + 0.15)
    scene.blend(np.clip(scene.polygons([outline], blur=7) * 2 - 1, 0, 1) * np.float32(0.8), tone - 0.14)


def _trabeculae(scene: Scene, strength: float) -> None:
    scene.pixels += scene.cloud(60) * np.float32(strength) * np.clip(scene.pixels * 2 - 0.6, 0, 1)


def _margin(scene: Scene, look: ImageSpec, *, lucent: float, dense: float) -> None:
    place, radius = (scene.vary(0, 0.05), scene.vary(0, 0.06)), 0.40 * look.size
    if look.sign == "sclerotic":
        scene.ellipse(place, (radius * 1.28, radius * 1.28), dense, soft=0.06, wobble=0.05)
        scene.ellipse(place, (radius, radius), lucent, soft=0.04, wobble=0.05)
    elif look.sign == "permeative":
        angles, depths = scene.rng.uniform(0, 2 * np.pi, 55), np.sqrt(scene.rng.uniform(0, 1, 55)) * radius * 1.9
        holes = [
            (place[0] + float(np.cos(a) * d), place[1] + float(np.sin(a) * d))
            for a, d in zip(angles, depths, strict=True)
        ]
        scene.blend(scene.dots(holes, scene.rng.uniform(0.04, 0.10, 55).tolist(), blur=1.5) * np.float32(0.9), lucent)


def _limb(rng: np.random.Generator, *, fat: float, muscle: float, cortex: float, marrow: float) -> Scene:
    scene = Scene(rng, 256, 256)
    scene.ellipse((0, 0.02), (scene.vary(0.90, 0.03), scene.vary(0.86, 0.03)), fat)
    scene.ellipse((0, 0.04), (0.80, 0.75), muscle, wobble=0.03)
    angles = rng.uniform(0, 2 * np.pi, 6).tolist()
    septa = [[(0.42 * cos(a), 0.42 * sin(a)), (0.8 * cos(a + 0.2), 0.75 * sin(a + 0.2))] for a in angles]
    scene.blend(scene.strokes(septa, 0.02, blur=1) * np.float32(0.6), fat)
    scene.ellipse((0, 0), (0.38, 0.38), cortex, wobble=0.02)
    scene.ellipse((0, 0), (0.29, 0.29), marrow, soft=0.04)
    return scene


def _fluid_levels(scene: Scene, radius: float) -> None:
    scene.ellipse((0, 0), (radius * 1.12, radius * 1.12), 0.03)
    for x, y, size in ((-0.42, -0.35, 0.45), (0.42, -0.32, 0.45), (-0.38, 0.42, 0.45), (0.42, 0.42, 0.42)):
        at = (x * radius, y * radius)
        locule = scene.mask(at, (size * radius, size * radius), soft=0.02)
        below = np.clip((scene.y - np.float32(at[1] + scene.vary(0, 0.1) * radius)) / 0.015, 0, 1)
        scene.blend(locule, 0.97 - np.float32(0.55) * below)


def spine_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Sagittal T2 of a few lumbar levels."""
    scene = Scene(rng, 240, 304, ground=0.30)
    scene.pixels += scene.cloud(5) * np.float32(0.04)
    scene.blend(scene.strokes([[(0.42, -1.4), (0.36, -0.5), (0.40, 0.4), (0.52, 1.4)]], 0.24, blur=2), 0.95)
    scene.blend(scene.strokes([[(0.42, -1.4), (0.36, -0.5), (0.40, 0.1)]], 0.09, blur=2), 0.40)
    middle = scene.vary(0.0, 0.05)
    for row in range(-3, 4):
        x = 0.02 + 0.05 * np.cos(row * 0.7)
        y = middle + 0.46 * row
        _block(scene, (float(x), y), (0.30, 0.17), 0.42)
        scene.ellipse((float(x), y + 0.23), (0.27, 0.055), 0.66, soft=0.03)
        scene.ellipse((0.80, y + 0.15), (0.18, 0.08), 0.48, turn=0.5)
    if look.sign == "destroyed":
        _block(scene, (0.06, middle), (0.31, 0.21), 0.80)
        _block(scene, (0.06, middle + 0.46), (0.31, 0.21), 0.80)
        scene.ellipse((0.07, middle + 0.23), (0.33 * look.size, 0.10), 0.99, wobble=0.25)
    elif look.sign == "spared":
        _block(scene, (0.06, middle), (0.31, 0.17 * min(look.size, 1.1)), 0.92)
    return scene.mr()


def spine_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial CT of one vertebra, bone window."""
    scene = Scene(rng, 264, 256, ground=0.0)
    scene.ellipse((0, 0.1), (1.1, 1.05), 0.16, soft=0.06)
    for way in (-1, 1):
        scene.ellipse((0.55 * way, 0.55), (0.36, 0.30), 0.28, wobble=0.05)
        scene.ellipse((0.62 * way, -0.22), (0.20, 0.26), 0.28)
        scene.blend(
            scene.strokes(
                [[(0.22 * way, 0.18), (0.28 * way, 0.42), (0.0, 0.62)], [(0.28 * way, 0.38), (0.66 * way, 0.42)]], 0.10
            ),
            0.86,
        )
    scene.ellipse((0, 0.75), (0.06, 0.22), 0.86)
    scene.ellipse((0, -0.20), (0.44, 0.36), 0.95, wobble=0.02)
    body = scene.mask((0, -0.20), (0.39, 0.31))
    scene.blend(body, 0.50 + np.float32(0.06) * scene.cloud(40))
    scene.ellipse((0, 0.28), (0.17, 0.13), 0.26)
    if look.sign == "lytic":
        scene.ellipse(
            (scene.vary(0.05 * look.side, 0.05), scene.vary(-0.24, 0.04)),
            (0.27 * look.size, 0.22 * look.size),
            0.17,
            soft=0.04,
            wobble=0.18,
        )
    elif look.sign == "sclerotic":
        scene.blend(scene.mask((0, -0.20), (0.40, 0.32), soft=0.06), 0.96 + np.float32(0.02) * scene.cloud(20))
    return scene.ct()


def spine_radiograph(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Frontal lumbar radiograph."""
    scene = Scene(rng, 224, 304, ground=0.22)
    scene.pixels += scene.cloud(4) * np.float32(0.04)
    for way in (-1, 1):
        scene.blend(
            scene.polygons([[(0.2 * way, -0.9), (0.75 * way, 1.4), (0.2 * way, 1.4)]], blur=8) * np.float32(0.5), 0.40
        )
    middle = scene.vary(0.02, 0.04)
    processes = [[(-0.62, middle + 0.47 * row - 0.06), (0.62, middle + 0.47 * row - 0.06)] for row in range(-3, 4)]
    scene.blend(scene.strokes(processes, 0.07, blur=2) * np.float32(0.55), 0.55)
    for row in range(-3, 4):
        y = middle + 0.47 * row
        _block(scene, (0, y), (0.36, 0.185), 0.58)
        for way in (-1, 1):
            scene.ellipse((0.24 * way, y - 0.05), (0.055, 0.085), 0.76)
        scene.ellipse((0, y + 0.10), (0.04, 0.12), 0.72)
    if look.sign == "lytic":
        scene.ellipse((scene.vary(0, 0.04), middle), (0.33 * look.size, 0.17 * look.size), 0.27, soft=0.06, wobble=0.10)
    elif look.sign == "sclerotic":
        _block(scene, (0, middle), (0.37, 0.20), 0.95)
    return scene.radiograph(0.022)


def spine_scan(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Bone scan of the trunk from behind."""
    scene = Scene(rng, 224, 304, ground=0.02)
    scene.ellipse((0, 0.15), (0.66, 1.4), 0.07, soft=0.1)
    scene.ellipse((0, -1.15), (0.24, 0.26), 0.25, soft=0.08)
    scene.blend(scene.strokes([[(0, -0.95), (0, 0.7)]], 0.16, blur=4), 0.34)
    ribs = [
        [(0.08 * way, -0.7 + 0.16 * row), (0.40 * way, -0.66 + 0.17 * row), (0.56 * way, -0.5 + 0.17 * row)]
        for way in (-1, 1)
        for row in range(6)
    ]
    scene.blend(scene.strokes(ribs, 0.045, blur=2) * np.float32(0.7), 0.22)
    for way in (-1, 1):
        scene.ellipse((0.30 * way, 0.82), (0.26, 0.20), 0.30, turn=0.5 * way, soft=0.08)
        scene.ellipse((0.16 * way, 0.74), (0.06, 0.13), 0.42, soft=0.06)
        scene.ellipse((0.62 * way, -0.82), (0.13, 0.11), 0.32, soft=0.06)
        scene.ellipse((0.24 * way, 0.30), (0.08, 0.13), 0.24, soft=0.06)
    levels = {"solitary": [0.40], "multiple": [-0.72, -0.44, -0.12, 0.16, 0.48]}.get(look.sign, [])
    for level in levels:
        scene.ellipse(
            (scene.vary(0, 0.02), scene.vary(level, 0.03)), (0.12 * look.size, 0.09 * look.size), 0.97, soft=0.05
        )
    return scene.counts(55)


def spine_mr_whole(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Sagittal STIR survey."""
    scene = Scene(rng, 168, 320, ground=0.10)
    scene.pixels += scene.cloud(5) * np.float32(0.03)
    rows = np.linspace(-1.75, 1.75, 17)
    bend = [0.12 * float(np.sin(row * 1.7)) for row in rows]
    scene.blend(scene.strokes([[(x + 0.34, float(y)) for x, y in zip(bend, rows, strict=True)]], 0.17, blur=1.5), 0.85)
    scene.blend(
        scene.strokes([[(x + 0.34, float(y)) for x, y in zip(bend[:11], rows[:11], strict=True)]], 0.08, blur=1.5), 0.35
    )
    ill = {"solitary": {10}, "multiple": {3, 6, 8, 11, 13}}.get(look.sign, set())
    shift = int(rng.integers(-1, 2))
    for index, (x, y) in enumerate(zip(bend, rows, strict=True)):
        hot = index - shift in ill
        _block(scene, (x, float(y)), (0.16, 0.082), 0.97 if hot else 0.24)
        scene.ellipse((x, float(y) + 0.11), (0.14, 0.022), 0.42, soft=0.03)
    return scene.mr()


def _block(scene: Scene, centre: tuple[float, float], halves: tuple[float, float], tone: float) -> None:
    """A vertebral body: a box with slightly waisted sides."""
    (x, y), (a, b) = centre, halves
    shape = [
        (x - a, y - b),
        (x, y - b * 0.86),
        (x + a, y - b),
        (x + a * 0.92, y),
        (x + a, y + b),
        (x, y + b * 0.86),
        (x - a, y + b),
        (x - a * 0.92, y),
    ]
    scene.fill(shape, tone)
