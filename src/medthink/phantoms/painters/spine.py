"""The spine: sagittal MR, axial CT, the frontal radiograph and the posterior bone scan."""

import numpy as np

from medthink.phantoms.painters.scene import Look, Pixels, Scene


def spine_mr(rng: np.random.Generator, look: Look) -> Pixels:
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


def spine_ct(rng: np.random.Generator, look: Look) -> Pixels:
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


def spine_radiograph(rng: np.random.Generator, look: Look) -> Pixels:
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


def spine_scan(rng: np.random.Generator, look: Look) -> Pixels:
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


def spine_mr_whole(rng: np.random.Generator, look: Look) -> Pixels:
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
