"""Brain and neck: whole slices that show the site, and magnified details that show enhancement and content."""

import numpy as np

from medthink.phantoms.painters.scene import ImageSpec, Pixels, Scene


def brain_mr_flair(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial FLAIR, through the hemispheres or the posterior fossa."""
    scene = Scene(rng, 256, 296)
    low = look.sign == "cerebellum" or (not look.sign and rng.random() < 0.5)
    _head(scene, scalp=0.55, brain=0.40)
    if low:
        _posterior_fossa(scene, dark=0.06)
    else:
        _ventricles(scene, dark=0.05)
    if look.sign:
        place = (0.30 * look.side, scene.vary(0.50, 0.03)) if low else (0.36 * look.side, scene.vary(-0.22, 0.06))
        radius = (0.21 if low else 0.25) * look.size
        scene.ellipse(place, (radius * 1.25, radius * 1.15), 0.72, soft=0.14, wobble=0.12)
        scene.ellipse(place, (radius * 0.7, radius * 0.65), 0.95, soft=0.06, wobble=0.12)
    return scene.mr()


def brain_mr_sagittal(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Sagittal T2 near the midline, the face to the left."""
    scene = Scene(rng, 296, 272)
    scene.ellipse((0.05, -0.08), (0.98, 0.86), 0.5, wobble=0.02)
    scene.ellipse((0.05, -0.08), (0.92, 0.80), 0.04)
    face = [
        (-0.74, 0.30),
        (-0.93, 0.52),
        (-0.84, 0.62),
        (-0.86, 0.86),
        (-0.6, 1.1),
        (0.6, 1.1),
        (0.55, 0.6),
        (0.0, 0.45),
    ]
    scene.blend(scene.polygons([face], blur=3), np.clip(0.22 + np.float32(0.10) * scene.cloud(9), 0, 1))
    scene.ellipse((0.05, -0.12), (0.86, 0.72), 0.85)
    scene.ellipse((0.03, -0.16), (0.82, 0.62), 0.45, wobble=0.02)
    _gyri(scene, scene.mask((0.03, -0.16), (0.82, 0.62)), 0.20)
    callosum = [(float(0.03 - 0.34 * np.cos(a)), float(-0.02 - 0.20 * np.sin(a))) for a in np.linspace(0.1, 3.0, 12)]
    scene.blend(scene.strokes([callosum], 0.07), 0.25)
    scene.ellipse((0.03, 0.03), (0.26, 0.12), 0.9, wobble=0.05)
    scene.ellipse((0.02, 0.10), (0.17, 0.10), 0.42)
    scene.ellipse((0.10, 0.42), (0.13, 0.24), 0.4, turn=0.2)
    scene.blend(scene.strokes([[(0.14, 0.55), (0.20, 0.8), (0.22, 1.0)]], 0.14), 0.4)
    scene.ellipse((0.46, 0.42), (0.31, 0.25), 0.42, turn=-0.2)
    _gyri(scene, scene.mask((0.46, 0.42), (0.30, 0.24)), 0.25, cells=22)
    scene.ellipse((0.24, 0.42), (0.05, 0.09), 0.92)
    if look.sign:
        place = (
            (scene.vary(0.48, 0.04), 0.42)
            if look.sign == "cerebellum"
            else (scene.vary(-0.25, 0.08), scene.vary(-0.44, 0.04))
        )
        scene.ellipse(place, (0.21 * look.size, 0.18 * look.size), 0.95, soft=0.06, wobble=0.12)
    return scene.mr()


def brain_mr_t1c(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Magnified T1 after gadolinium."""
    scene = _detail(rng, white=0.46, grey=0.36, sulcus=0.12)
    place, radius = _place(scene), 0.40 * look.size
    if look.sign:
        scene.ellipse(place, (radius * 1.7, radius * 1.55), 0.24, soft=0.25, wobble=0.2, alpha=0.8)
        scene.ellipse(place, (radius, radius * 0.92), 0.93, soft=0.05, wobble=0.12)
    if look.sign == "ring":
        scene.ellipse(place, (radius * 0.70, radius * 0.64), 0.12, soft=0.08, wobble=0.12)
    return scene.mr()


def brain_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Magnified unenhanced CT."""
    scene = _detail(rng, white=0.40, grey=0.47, sulcus=0.22)
    place, radius = _place(scene), 0.40 * look.size
    if look.sign == "calcified":
        scene.ellipse(place, (radius, radius * 0.9), 0.52, wobble=0.12)
        _speckles(scene, place, radius, tone=1.0)
    elif look.sign == "blood":
        scene.ellipse(place, (radius * 1.3, radius * 1.2), 0.27, soft=0.12, wobble=0.15)
        scene.ellipse(place, (radius, radius * 0.9), 0.83, soft=0.06, wobble=0.15)
    elif look.sign == "cystic":
        scene.ellipse(place, (radius * 1.08, radius), 0.55, soft=0.05, wobble=0.05)
        scene.ellipse(place, (radius, radius * 0.92), 0.10, soft=0.05, wobble=0.05)
    return scene.ct(0.035)


def brain_mr_gre(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Magnified T2* image."""
    scene = _detail(rng, white=0.46, grey=0.56, sulcus=0.80)
    place, radius = _place(scene), 0.40 * look.size
    if look.sign == "calcified":
        scene.ellipse(place, (radius, radius * 0.9), 0.62, wobble=0.12)
        _speckles(scene, place, radius, tone=0.02)
    elif look.sign == "blood":
        scene.ellipse(place, (radius * 1.15, radius * 1.05), 0.75, soft=0.1, wobble=0.15)
        scene.ellipse(place, (radius, radius * 0.9), 0.03, soft=0.08, wobble=0.15)
    elif look.sign == "cystic":
        scene.ellipse(place, (radius, radius * 0.92), 0.97, soft=0.05, wobble=0.05)
    return scene.mr(0.03)


def _head(scene: Scene, *, scalp: float, brain: float) -> None:
    width, height = scene.vary(0.86, 0.02), scene.vary(1.04, 0.03)
    scene.ellipse((0, 0), (width, height), scalp)
    scene.ellipse((0, 0), (width - 0.06, height - 0.06), 0.03)
    scene.ellipse((0, 0), (width - 0.12, height - 0.12), brain, soft=0.04)
    inside = scene.mask((0, 0), (width - 0.13, height - 0.13))
    _gyri(scene, inside, 0.16)
    scene.ellipse((0, 0), (width - 0.30, height - 0.30), brain - 0.08, soft=0.15, alpha=0.7)
    scene.blend(scene.strokes([[(0, -height + 0.12), (0, height - 0.12)]], 0.015) * inside * np.float32(0.6), 0.1)


def _ventricles(scene: Scene, *, dark: float) -> None:
    for way in (-1, 1):
        scene.ellipse((0.12 * way, -0.16), (0.07, 0.24), dark, turn=-0.3 * way)
        scene.ellipse((0.17 * way, 0.26), (0.06, 0.22), dark, turn=0.35 * way)
        scene.ellipse((0.25 * way, 0.03), (0.09, 0.17), 0.47, turn=0.1 * way, alpha=0.5)


def _posterior_fossa(scene: Scene, *, dark: float) -> None:
    scene.blend(
        scene.strokes([[(-0.72, 0.02), (-0.3, 0.16), (0, 0.1), (0.3, 0.16), (0.72, 0.02)]], 0.06, blur=1.5), 0.06
    )
    for way in (-1, 1):
        scene.ellipse((0.34 * way, 0.50), (0.34, 0.33), 0.38, wobble=0.02)
        scene.ellipse((0.45 * way, -0.12), (0.10, 0.05), dark, turn=0.3 * way)
    _gyri(scene, scene.mask((0, 0.5), (0.66, 0.34)), 0.2, cells=26)
    scene.ellipse((0, 0.16), (0.19, 0.17), 0.42)
    scene.ellipse((0, 0.38), (0.08, 0.06), dark)


def _gyri(scene: Scene, inside: Pixels, depth: float, *, cells: int = 14) -> None:
    """Folded grey and white matter: the zero lines of smooth noise become sulci."""
    folds = np.exp(np.square(scene.cloud(cells)) * np.float32(-7)) * np.clip(0.7 + 0.4 * scene.cloud(7), 0, 1.2)
    scene.pixels -= folds * inside * np.float32(depth)


def _detail(rng: np.random.Generator, *, white: float, grey: float, sulcus: float) -> Scene:
    """Brain parenchyma without a landmark: ribbons of grey matter along sulci that come and go."""
    scene = Scene(rng, 256, 256, ground=white)
    bands, depth = scene.cloud(6), np.clip(0.5 + 0.5 * scene.cloud(4), 0, 1)
    scene.blend(np.clip(1.1 - np.abs(bands) * np.float32(1.6), 0, 1) * (0.5 + 0.5 * depth), grey)
    scene.blend(np.clip(1 - np.abs(bands) * np.float32(4.5), 0, 1) * depth * np.float32(0.75), sulcus)
    scene.pixels += np.float32(0.012) * scene.cloud(40)
    return scene


def _place(scene: Scene) -> tuple[float, float]:
    return scene.vary(0.0, 0.10), scene.vary(0.0, 0.10)


def _speckles(scene: Scene, place: tuple[float, float], radius: float, *, tone: float) -> None:
    angles, depths = scene.rng.uniform(0, 2 * np.pi, 20), np.sqrt(scene.rng.uniform(0, 0.8, 20)) * radius
    centres = [
        (place[0] + float(np.cos(a) * d), place[1] + float(np.sin(a) * d)) for a, d in zip(angles, depths, strict=True)
    ]
    scene.blend(scene.dots(centres, scene.rng.uniform(0.035, 0.07, 20).tolist()), tone)


def thyroid_scan(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Pertechnetate scan from the front."""
    scene = Scene(rng, 240, 240, ground=0.08)
    scene.ellipse((0, 0.05), (0.8, 1.1), 0.14, soft=0.2)
    base = 0.30 if look.sign == "hot" else 0.68
    for way in (-1, 1):
        scene.ellipse((0.26 * way, 0), (0.18, 0.44), base, turn=0.18 * way, soft=0.08)
    scene.ellipse((0, 0.24), (0.16, 0.10), base * 0.8, soft=0.08)
    place = (0.28 * look.side, scene.vary(0.0, 0.08))
    if look.sign == "hot":
        scene.ellipse(place, (0.21 * look.size, 0.25 * look.size), 0.99, soft=0.07)
    elif look.sign == "cold":
        scene.ellipse(place, (0.21 * look.size, 0.25 * look.size), 0.13, soft=0.07)
    return scene.counts(40)


def neck_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial enhanced CT of the lower neck."""
    scene = _neck(rng, fat=0.20, muscle=0.46, bone=0.95, vessel=0.90, gland=0.72)
    _neck_sign(scene, look, mass=0.60, node=0.66)
    return scene.ct()


def neck_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial fat-suppressed T2 of the lower neck."""
    scene = _neck(rng, fat=0.14, muscle=0.28, bone=0.30, vessel=0.04, gland=0.50)
    _neck_sign(scene, look, mass=0.72, node=0.92)
    return scene.mr(0.028)


def skin_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial T1 of a forearm with its bright fat."""
    scene = Scene(rng, 280, 232)
    scene.ellipse((0, 0.06), (1.02, 0.84), 0.30)
    scene.ellipse((0, 0.07), (0.98, 0.80), 0.88, soft=0.03)
    scene.ellipse((0, 0.22), (0.76, 0.52), 0.36, wobble=0.04)
    for x in (-0.3, 0.32):
        scene.ellipse((x, 0.24), (0.17, 0.15), 0.03)
        scene.ellipse((x, 0.24), (0.12, 0.10), 0.75)
    for x, y in rng.uniform((-0.7, -0.1), (0.7, 0.6), (7, 2)):
        scene.ellipse((float(x), float(y)), (0.03, 0.03), 0.12)
    place = scene.vary(0.0, 0.08)
    if look.sign == "dermis":
        scene.ellipse((place * 0.5, -0.71), (0.36 * look.size, 0.10), 0.34)
    elif look.sign == "subcutis":
        scene.ellipse((place, -0.52), (0.40 * look.size, 0.34 * look.size), 0.34, wobble=0.08)
    return scene.mr()


def _neck(rng: np.random.Generator, *, fat: float, muscle: float, bone: float, vessel: float, gland: float) -> Scene:
    scene = Scene(rng, 272, 248)
    scene.ellipse((0, 0), (scene.vary(0.98, 0.03), scene.vary(0.92, 0.03)), fat)
    for way in (-1, 1):
        scene.ellipse((0.50 * way, -0.18), (0.16, 0.38), muscle, turn=0.6 * way)
        scene.ellipse((0.38 * way, 0.55), (0.34, 0.28), muscle, turn=-0.5 * way, wobble=0.04)
        scene.ellipse((0.24 * way, -0.30), (0.15, 0.20), gland, turn=0.2 * way)
        scene.ellipse((0.44 * way, -0.10), (0.075, 0.075), vessel)
        scene.ellipse((0.56 * way, -0.04), (0.10, 0.075), vessel * 0.9)
    scene.ellipse((0, 0.24), (0.25, 0.19), bone, soft=0.04)
    scene.ellipse((0, 0.50), (0.12, 0.10), muscle)
    scene.ellipse((0, 0.74), (0.05, 0.17), bone)
    scene.ellipse((0, -0.05), (0.10, 0.06), muscle)
    return scene


def _neck_sign(scene: Scene, look: ImageSpec, *, mass: float, node: float) -> None:
    airway, shape = (0.0, -0.28), (0.14, 0.15)
    if look.sign == "trachea":
        scene.ellipse((0.26 * look.side, -0.28), (0.40 * look.size, 0.34 * look.size), mass, wobble=0.06)
        airway, shape = (-0.22 * look.side * look.size, -0.28), (0.06, 0.16)
    elif look.sign == "nodes":
        for x, y in ((0.60, -0.30), (0.74, -0.10), (0.62, 0.14), (0.80, 0.12)):
            radius = scene.vary(0.125, 0.015) * look.size
            scene.ellipse((x * look.side, scene.vary(y, 0.03)), (radius, radius), node, wobble=0.05)
    scene.ellipse(airway, (shape[0] + 0.03, shape[1] + 0.03), 0.7)
    scene.ellipse(airway, shape, 0.0)
