"""Bowel: the barium study, MR enterography and the endoscopic view."""

import numpy as np
from numpy.typing import NDArray

from medthink.phantoms.painters.scene import Look, Pixels, Scene

_ROWS = np.linspace(-1.3, 1.3, 80)


def barium(rng: np.random.Generator, look: Look) -> Pixels:
    """Contrast column with haustral folds."""
    scene = Scene(rng, 272, 256, ground=0.25)
    scene.pixels += scene.cloud(4) * np.float32(0.05)
    scene.blend(scene.polygons([[(0.5, -1), (1.2, -1), (1.2, 1), (0.7, 1)]], blur=12) * np.float32(0.4), 0.55)
    inside = _column(scene, look, tone=0.94, wall=None)
    scene.blend(np.clip(inside * 2 - 1, 0, 1) * np.clip(0.45 + 0.25 * scene.cloud(14), 0, 0.8), 0.66)
    return scene.radiograph(0.02)


def bowel_mr(rng: np.random.Generator, look: Look) -> Pixels:
    """Coronal T2 with fluid-filled loops."""
    scene = Scene(rng, 272, 256, ground=0.40)
    scene.pixels += scene.cloud(7) * np.float32(0.06)
    for x, y in rng.uniform((-1.0, -0.95), (1.0, 0.95), (12, 2)):
        if abs(x) > 0.45:
            scene.ellipse((float(x), float(y)), (0.19, 0.13), 0.20, turn=scene.vary(0, 1.5), wobble=0.06)
            scene.ellipse((float(x), float(y)), (0.15, 0.09), 0.85, turn=scene.vary(0, 0.3), wobble=0.06)
    _column(scene, look, tone=0.90, wall=0.10)
    return scene.mr()


def endoscopy(rng: np.random.Generator, look: Look) -> Pixels:
    """Colonoscopic view down the lumen, in the round field of the instrument."""
    scene = Scene(rng, 256, 256, ground=(0.96, 0.58, 0.47))
    centre = (scene.vary(0.12, 0.06), scene.vary(-0.08, 0.06))
    radius = np.sqrt(np.square(scene.x - np.float32(centre[0])) + np.square(scene.y - np.float32(centre[1])))
    folds = np.float32(0.10) * np.sin(radius * np.float32(scene.vary(15, 1.5)) + scene.cloud(3) * np.float32(0.8))
    light = np.clip(0.14 + 0.95 * radius - 0.22 * radius * radius + folds, 0, 1.1) + np.float32(0.03) * scene.cloud(30)
    scene.pixels *= light[..., None]
    veins = np.exp(np.square(scene.cloud(8)) * np.float32(-60)) * np.clip(radius - 0.3, 0, 1)
    scene.blend(veins * np.float32(0.35), (0.62, 0.20, 0.18))
    for angle in np.arange(4 if look.sign else 0) * 1.57 + scene.vary(0.6, 0.25):
        at = (0.56 * float(np.cos(angle)), 0.56 * float(np.sin(angle)))
        _ulcer(scene, at, look.size) if look.sign == "ulcer" else _polyp(scene, at, look.size)
    glare = [(scene.vary(0, 0.7), scene.vary(0, 0.7)) for _ in range(7)]
    scene.blend(scene.dots(glare, [0.022] * 7, blur=1) * np.float32(0.7), (1.0, 0.95, 0.92))
    pixels = scene.photograph(0.012)
    pixels *= scene.mask((0, 0), (0.97, 0.97), soft=0.03)[..., None]
    return pixels


def _ulcer(scene: Scene, at: tuple[float, float], size: float) -> None:
    scene.ellipse(at, (0.26 * size, 0.22 * size), (0.72, 0.22, 0.18), soft=0.10, wobble=0.15, alpha=0.85)
    scene.ellipse(at, (0.17 * size, 0.13 * size), (0.93, 0.87, 0.70), soft=0.05, wobble=0.2, alpha=0.95)


def _polyp(scene: Scene, at: tuple[float, float], size: float) -> None:
    scene.ellipse((at[0] + 0.03, at[1] + 0.05), (0.24 * size, 0.24 * size), (0.35, 0.12, 0.10), soft=0.08, alpha=0.9)
    scene.ellipse(at, (0.21 * size, 0.21 * size), (0.80, 0.38, 0.33), soft=0.04, wobble=0.08)
    scene.ellipse((at[0] - 0.05, at[1] - 0.06), (0.10, 0.09), (0.95, 0.66, 0.60), soft=0.1, alpha=0.8)


def _column(scene: Scene, look: Look, *, tone: float, wall: float | None) -> Pixels:
    """A bowel segment running down the picture, its calibre set by the sign; gives the depth of its inside."""
    half = 0.30 + 0.035 * np.sin(_ROWS * 21) + 0.02 * np.sin(_ROWS * 9 + scene.vary(0, 3))
    bend, middle = scene.vary(0.10, 0.06), scene.vary(0, 0.08)
    if look.sign == "long":
        half = np.where(np.abs(_ROWS - middle) < 0.72 * look.size, 0.07 + 0.012 * np.sin(_ROWS * 30), half)
    elif look.sign == "short":
        half = np.where(np.abs(_ROWS - middle) < 0.17 * look.size, 0.06, half)
    axis = bend * np.sin(_ROWS * 1.8)
    if wall is not None:
        thick = np.where(half < 0.15, half + 0.16, half + 0.045)
        scene.blend(_tube(scene, axis, thick), wall)
    scene.blend(_tube(scene, axis, half), tone)
    return _tube(scene, axis, half, blur=9)


def _tube(scene: Scene, axis: NDArray[np.float64], half: NDArray[np.float64], blur: float = 1.2) -> Pixels:
    left = [(float(x - h), float(y)) for x, h, y in zip(axis, half, _ROWS, strict=True)]
    right = [(float(x + h), float(y)) for x, h, y in zip(axis[::-1], half[::-1], _ROWS[::-1], strict=True)]
    return scene.polygons([left + right], blur=blur)
