"""The breast: mammogram and contrast-enhanced MR."""

import numpy as np

from medthink.phantoms.painters.scene import Look, Pixels, Scene


def mammogram(rng: np.random.Generator, look: Look) -> Pixels:
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


def breast_mr(rng: np.random.Generator, look: Look) -> Pixels:
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
