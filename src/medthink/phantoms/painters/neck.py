"""Neck and limb: thyroid scintigraphy, axial CT and MR of the neck, MR of the skin's depth."""

import numpy as np

from medthink.phantoms.painters.scene import Look, Pixels, Scene


def thyroid_scan(rng: np.random.Generator, look: Look) -> Pixels:
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


def neck_ct(rng: np.random.Generator, look: Look) -> Pixels:
    """Axial enhanced CT of the lower neck."""
    scene = _neck(rng, fat=0.20, muscle=0.46, bone=0.95, vessel=0.90, gland=0.72)
    _neck_sign(scene, look, mass=0.60, node=0.66)
    return scene.ct()


def neck_mr(rng: np.random.Generator, look: Look) -> Pixels:
    """Axial fat-suppressed T2 of the lower neck."""
    scene = _neck(rng, fat=0.14, muscle=0.28, bone=0.30, vessel=0.04, gland=0.50)
    _neck_sign(scene, look, mass=0.72, node=0.92)
    return scene.mr(0.028)


def skin_mr(rng: np.random.Generator, look: Look) -> Pixels:
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


def _neck_sign(scene: Scene, look: Look, *, mass: float, node: float) -> None:
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
