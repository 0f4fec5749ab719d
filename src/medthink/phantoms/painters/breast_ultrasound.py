"""The breast: mammogram and contrast-enhanced MR."""

import numpy as np

from medthink.phantoms.painters.scene import ImageSpec, Pixels, Scene


def mammogram(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Mammogram with the chest wall at one edge; the left breast points to the right."""
    scene = Scene(rng, 216, 296, ground=0.01)
    wall = -1.0 * look.side
    breast = scene.mask((wall, 0.05), (scene.vary(1.62, 0.05), scene.vary(1.10, 0.04)), soft=0.10)
    scene.blend(breast, 0.30)
    gland = scene.mask((wall * 0.55, 0.02), (0.95, 0.72), soft=0.4)
    scene.blend(breast * gland * np.clip(0.42 + 0.30 * scene.cloud(5) + 0.14 * scene.cloud(16), 0, 0.9), 0.62)
    scene.blend(scene.polygons([[(wall, -1.4), (wall * 0.45, -1.4), (wall, -0.35)]], blur=4) * np.float32(0.8), 0.66)
    place = (scene.vary(-0.12 * look.side, 0.06), scene.vary(0.02, 0.08))
    if look.sign == "calcifications":
        angles, depths = rng.uniform(0, 2 * np.pi, 45), np.sqrt(rng.uniform(0, 1, 45)) * 0.30 * look.size
        spots = [
            (place[0] + float(np.cos(a) * d), place[1] + float(np.sin(a) * d))
            for a, d in zip(angles, depths, strict=True)
        ]
        scene.blend(scene.dots(spots, rng.uniform(0.012, 0.026, 45).tolist(), blur=0.5), 1.0)
    elif look.sign == "circumscribed":
        scene.ellipse(place, (0.31 * look.size, 0.29 * look.size), 0.86, soft=0.03)
    elif look.sign == "spiculated":
        radius = 0.20 * look.size
        rays = [
            [place, (place[0] + float(np.cos(a)) * r, place[1] + float(np.sin(a)) * r)]
            for a, r in zip(np.linspace(0, 6.1, 22), rng.uniform(0.4, 0.62, 22) * look.size, strict=True)
        ]
        scene.blend(scene.strokes(rays, 0.022, blur=0.9) * np.float32(0.85), 0.84)
        scene.ellipse(place, (radius, radius), 0.94, soft=0.05, wobble=0.2)
    return scene.radiograph(0.018)


def breast_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial subtraction image of both breasts, prone."""
    scene = Scene(rng, 312, 224, ground=0.02)
    scene.ellipse((0, 0.95), (1.35, 0.62), 0.18, soft=0.05)
    scene.ellipse((0.12, 0.86), (0.30, 0.20), 0.72, soft=0.06)
    for way in (-1, 1):
        scene.ellipse((0.68 * way, -0.05), (0.52, 0.78), 0.16, soft=0.05, wobble=0.02)
        scene.pixels += (
            scene.mask((0.68 * way, -0.02), (0.34, 0.5), soft=0.2) * np.clip(scene.cloud(12), 0, 2) * np.float32(0.06)
        )
        scene.ellipse((0.68 * way, -0.80), (0.06, 0.05), 0.4)
    place, radius = (scene.vary(0.68 * look.side, 0.05), scene.vary(-0.12, 0.06)), 0.28 * look.size
    if look.sign:
        scene.ellipse(place, (radius, radius * 0.92), 0.95, soft=0.04, wobble=0.08)
    if look.sign == "rim":
        scene.ellipse(place, (radius * 0.68, radius * 0.62), 0.08, soft=0.05, wobble=0.08)
    return scene.mr(0.03)


def liver_us(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Curved-array image of the liver."""
    scene = Scene(rng, 296, 256, ground=0.42)
    scene.pixels += scene.cloud(4) * np.float32(0.03)
    vessels = [[(-0.7, 0.3), (-0.3, 0.2), (0.1, 0.32)], [(0.2, -0.4), (0.4, -0.1), (0.75, 0.1)]]
    scene.blend(scene.strokes(vessels, 0.06, blur=1.5), 0.08)
    diaphragm = [(float(1.05 * np.sin(a)), float(-0.25 + 1.0 * np.cos(a))) for a in np.linspace(-0.7, 0.7, 14)]
    scene.blend(scene.strokes([diaphragm], 0.03, blur=1.5), 0.95)
    place, radius = (scene.vary(-0.05, 0.10), scene.vary(-0.05, 0.07)), 0.30 * look.size
    if look.sign == "septate":
        _through(scene, place, radius, 0.22)
    tones = {"echogenic": 0.88, "hypoechoic": 0.17, "septate": 0.01}
    if look.sign:
        scene.ellipse(place, (radius, radius * 0.92), tones[look.sign], wobble=0.06)
    if look.sign == "septate":
        septa = [
            [
                (place[0] + radius * float(np.cos(a)), place[1] + radius * float(np.sin(a))),
                (place[0] - radius * float(np.cos(a + 0.9)), place[1] - radius * float(np.sin(a + 0.9))),
            ]
            for a in rng.uniform(0, 6.28, 3)
        ]
        scene.blend(scene.strokes(septa, 0.02) * scene.mask(place, (radius, radius * 0.92)), 0.7)
    return _insonate(scene, sector=True)


def breast_us(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Linear-array image of the breast."""
    scene = _layers(rng, ((-0.84, 0.75), (-0.45, 0.30), (0.35, 0.55), (0.75, 0.25), (9.0, 0.4)))
    place, radius = (scene.vary(0, 0.10), scene.vary(-0.12, 0.05)), 0.27 * look.size
    if look.sign:
        _through(scene, place, radius, -0.55 if look.sign == "shadowing" else 0.40)
        scene.ellipse(place, (radius * 1.15, radius * 0.85), 0.10, wobble=0.08)
    return _insonate(scene)


def thyroid_us(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Transverse linear-array image of the thyroid."""
    scene = _layers(rng, ((-0.80, 0.70), (-0.52, 0.28), (9.0, 0.34)))
    large = 1.28 * look.size if look.sign == "diffuse" else 1.0
    for way in (-1, 1):
        scene.ellipse((0.48 * way, 0.02), (0.36 * large, 0.34 * large), 0.60, wobble=0.03)
        scene.ellipse((0.98 * way, 0.10), (0.15, 0.15), 0.03)
    scene.ellipse((0, -0.25), (0.30, 0.12 * large), 0.60)
    if look.sign == "diffuse":
        gland = np.clip(sum(scene.mask((0.48 * way, 0.02), (0.36 * large, 0.34 * large)) for way in (-1, 1)), 0, 1)
        scene.blend(np.asarray(gland * np.clip(0.5 + 0.8 * scene.cloud(12), 0, 1), np.float32), 0.20)
    scene.ellipse((0, 0.08), (0.20, 0.20), 0.85)
    scene.ellipse((0, 0.12), (0.17, 0.18), 0.04)
    scene.blend(np.clip(1 - np.abs(scene.x) / 0.16, 0, 1) * (scene.y > 0.15), 0.06)
    place, radius = (0.48 * look.side, scene.vary(0.0, 0.04)), 0.22 * look.size
    if look.sign == "cystic":
        _through(scene, place, radius, 0.42)
        scene.ellipse(place, (radius * 1.1, radius), 0.0)
    elif look.sign == "nodule":
        scene.ellipse(place, (radius, radius * 1.05), 0.17, wobble=0.12)
        spots = [(place[0] + scene.vary(0, 0.5) * radius, place[1] + scene.vary(0, 0.5) * radius) for _ in range(9)]
        scene.blend(scene.dots(spots, [0.016] * 9), 0.95)
    return _insonate(scene)


def skin_us(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """High-frequency image of the skin."""
    scene = _layers(rng, ((-0.78, 0.02), (-0.70, 0.98), (-0.22, 0.66), (0.68, 0.20), (0.76, 0.9), (9.0, 0.42)))
    strands = [[(scene.vary(0, 1.2), scene.vary(0.2, 0.4)) for _ in range(2)] for _ in range(8)]
    scene.blend(scene.strokes(strands, 0.02, blur=1.2) * np.float32(0.6) * (scene.y > -0.15), 0.6)
    if look.sign == "dermis":
        scene.ellipse((scene.vary(0, 0.08), -0.46), (0.55 * look.size, 0.17), 0.07, wobble=0.05)
    elif look.sign == "subcutis":
        scene.ellipse((scene.vary(0, 0.08), -0.02), (0.48 * look.size, 0.58 * look.size), 0.07, wobble=0.10)
    return _insonate(scene)


def _layers(rng: np.random.Generator, layers: tuple[tuple[float, float], ...]) -> Scene:
    """Tissue layers with wavy borders, each given by its lower border and its brightness."""
    scene = Scene(rng, 288, 240)
    waves = np.float32(0.05) * scene.cloud(3)
    below = scene.y + waves
    upper = -9.0
    for lower, tone in layers:
        scene.pixels[(below >= upper) & (below < lower)] = tone
        upper = lower
    return scene


def _through(scene: Scene, place: tuple[float, float], radius: float, change: float) -> None:
    """Sound that is strengthened or swallowed behind a lesion."""
    column = np.clip((radius * 1.02 - np.abs(scene.x - np.float32(place[0]))) / 0.06, 0, 1)
    behind = np.clip((scene.y - np.float32(place[1])) / 0.1, 0, 1)
    scene.pixels = np.clip(scene.pixels * (1 + np.float32(change * 1.7) * column * behind), 0, 1.3)


def _insonate(scene: Scene, *, sector: bool = False) -> Pixels:
    """Speckle, depth gain and, for a curved array, the fan."""
    a, b = scene.cloud(80), scene.cloud(80)
    speckle = np.sqrt(a * a + b * b) * np.float32(0.62) + np.float32(0.22)
    gain = np.clip(1.12 - 0.22 * (scene.y + 1) * np.float32(scene.vary(1, 0.4)), 0.4, 1.3)
    pixels = np.clip(scene.pixels * speckle * gain * np.float32(scene.vary(1.0, 0.08)), 0, 1) ** np.float32(0.85)
    if sector:
        radius = np.sqrt(np.square(scene.x) + np.square(scene.y + 1.55))
        inside = (np.abs(np.arctan2(scene.x, scene.y + 1.55)) < 0.62) & (radius > 0.62) & (radius < 2.5)
        pixels = pixels * inside
    else:
        pixels = pixels * (np.abs(scene.x) < 1.14)
    finished: Pixels = np.asarray(pixels, np.float32)
    scale = round(scene.width * 0.96)
    finished[12:-12:22, scale : scale + 4] = 0.6
    return finished
