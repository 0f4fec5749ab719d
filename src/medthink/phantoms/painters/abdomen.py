"""Liver and kidneys: axial CT and MR, and the frontal views of the urinary tract."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medthink.phantoms.painters.scene import ImageSpec, Pixels, Scene


class Tones(NamedTuple):
    """The brightness of the tissues of an axial slice."""

    fat: float
    muscle: float
    liver: float
    spleen: float
    vessel: float
    bone: float
    fluid: float
    kidney: float


_CT = Tones(fat=0.20, muscle=0.46, liver=0.52, spleen=0.62, vessel=0.92, bone=0.96, fluid=0.34, kidney=0.78)
_MR_ARTERIAL = Tones(fat=0.16, muscle=0.30, liver=0.40, spleen=0.62, vessel=0.95, bone=0.22, fluid=0.10, kidney=0.75)
_MR_T2 = Tones(fat=0.42, muscle=0.16, liver=0.24, spleen=0.55, vessel=0.05, bone=0.3, fluid=0.97, kidney=0.6)


def liver_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial arterial-phase CT."""
    scene = _upper_abdomen(rng, _CT)
    _liver_lesion(scene, look, bright=0.80, core=0.30)
    return scene.ct()


def liver_mr_arterial(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial arterial-phase T1."""
    scene = _upper_abdomen(rng, _MR_ARTERIAL)
    _liver_lesion(scene, look, bright=0.82, core=0.18)
    return scene.mr()


def liver_mr_t2(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial T2."""
    scene = _upper_abdomen(rng, _MR_T2)
    if look.sign:
        tone = 0.97 if look.sign == "bright" else 0.45
        scene.ellipse(_spot(scene), (0.25 * look.size, 0.23 * look.size), tone, wobble=0.08)
    return scene.mr(0.03)


def kidney_ct(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Axial enhanced CT at the kidneys."""
    scene = _body(rng, _CT)
    scene.ellipse((-0.72, -0.2), (0.26, 0.36), _CT.liver, turn=0.2)
    _bowel(scene, 9, (-0.35, 0.75))
    for way in (-1, 1):
        scene.ellipse((0.52 * way, 0.22), (0.22, 0.25), _CT.kidney, turn=0.5 * way)
        scene.ellipse((0.42 * way, 0.20), (0.09, 0.09), _CT.fat)
    place, radius = (0.60 * look.side, scene.vary(0.12, 0.03)), 0.25 * look.size
    if look.sign == "fat":
        scene.ellipse(place, (radius, radius), 0.09, wobble=0.06)
        scene.blend(scene.strokes([[(place[0] - 0.1, place[1]), (place[0] + 0.12, place[1] + 0.06)]], 0.02), 0.4)
    elif look.sign == "cystic":
        scene.ellipse(place, (radius, radius), 0.72)
        _locules(scene, place, radius)
    elif look.sign == "solid":
        scene.ellipse(place, (radius, radius), 0.66, wobble=0.08)
        scene.pixels += scene.mask(place, (radius, radius)) * scene.cloud(16) * np.float32(0.07)
    return scene.ct()


def urogram(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Excretory urogram, frontal."""
    scene = Scene(rng, 256, 288, ground=0.08)
    scene.blend(scene.mask((0, 0.1), (1.02, 1.5), soft=0.15), 0.40)
    _backbone(scene, 0.20)
    for way in (-1, 1):
        scene.ellipse((0.50 * way, -0.28), (0.25, 0.42), 0.50, turn=0.25 * way, soft=0.08, alpha=0.7)
    _collecting_systems(scene, look, tone=0.92)
    return scene.radiograph(0.02)


def ct_urogram(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coronal excretory-phase CT."""
    scene = _coronal(rng)
    for way in (-1, 1):
        scene.ellipse((0.50 * way, -0.28), (0.25, 0.42), 0.62, turn=0.25 * way)
    _collecting_systems(scene, look, tone=1.0)
    return scene.ct()


def kidney_ct_coronal(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coronal nephrographic-phase CT."""
    scene = _coronal(rng)
    for way in (-1, 1):
        faint = look.sign == "globally" and way == look.side
        scene.ellipse((0.50 * way, -0.28), (0.25, 0.42), 0.44 if faint else 0.82, turn=0.25 * way)
        scene.ellipse((0.42 * way, -0.28), (0.10, 0.22), 0.25, turn=0.25 * way, soft=0.06)
    if look.sign == "focal":
        radius = 0.19 * look.size
        scene.ellipse((0.60 * look.side, scene.vary(-0.42, 0.05)), (radius, radius), 0.36, wobble=0.08)
    return scene.ct()


def renal_scan(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """DMSA scan from behind: the patient's left lies on the left."""
    scene = Scene(rng, 256, 240, ground=0.06)
    side = -look.side
    for way in (-1, 1):
        faint = look.sign == "globally" and way == side
        scene.ellipse((0.45 * way, 0), (0.27, 0.50), 0.26 if faint else 0.85, turn=0.18 * way, soft=0.10)
        scene.ellipse((0.34 * way, 0.02), (0.10, 0.22), 0.12 if faint else 0.45, soft=0.10)
    if look.sign == "focal":
        radius = 0.20 * look.size
        scene.ellipse((0.56 * side, scene.vary(-0.22, 0.06)), (radius, radius), 0.10, soft=0.08)
    return scene.counts(50)


def _body(rng: np.random.Generator, tones: Tones) -> Scene:
    scene = Scene(rng, 304, 248)
    width, height = scene.vary(1.12, 0.04), scene.vary(0.88, 0.04)
    scene.ellipse((0, 0), (width, height), tones.fat)
    scene.ellipse((0, 0.01), (width - 0.10, height - 0.10), tones.muscle, soft=0.04)
    scene.ellipse((0, -0.03), (width - 0.17, height - 0.18), tones.fat, soft=0.04)
    for way in (-1, 1):
        scene.ellipse((0.26 * way, 0.60), (0.20, 0.15), tones.muscle)
        for angle in (0.9, 1.4, 1.9, 2.3):
            scene.ellipse(
                (way * float(np.sin(angle)) * (width - 0.14), -float(np.cos(angle)) * (height - 0.14)),
                (0.06, 0.022),
                tones.bone,
                turn=angle * way,
            )
    scene.ellipse((0, 0.44), (0.17, 0.14), tones.bone, soft=0.04)
    scene.ellipse((0, 0.44), (0.13, 0.10), tones.bone * 0.75, soft=0.05)
    scene.ellipse((0, 0.70), (0.03, 0.12), tones.bone)
    scene.ellipse((0, 0.60), (0.06, 0.05), tones.fluid)
    scene.ellipse((0.06, 0.22), (0.075, 0.075), tones.vessel)
    scene.ellipse((-0.14, 0.24), (0.085, 0.065), tones.vessel * 0.8)
    return scene


def _upper_abdomen(rng: np.random.Generator, tones: Tones) -> Scene:
    scene = _body(rng, tones)
    scene.ellipse((-0.46, -0.08), (0.48, 0.50), tones.liver, turn=0.2, wobble=0.04)
    scene.ellipse((0.02, -0.34), (0.36, 0.20), tones.liver, turn=-0.15, wobble=0.05)
    scene.ellipse((0.74, 0.12), (0.18, 0.36), tones.spleen, turn=0.25)
    scene.ellipse((0.44, -0.24), (0.28, 0.24), tones.fluid, wobble=0.06)
    scene.ellipse((0.44, -0.34), (0.18, 0.08), 0.02, soft=0.03)
    lines = [
        [(-0.2, 0.0), (-0.34, -0.05), (-0.55, -0.3)],
        [(-0.2, 0.0), (-0.4, 0.12), (-0.7, 0.16)],
        [(-0.2, 0.0), (-0.1, -0.2), (0.1, -0.34)],
    ]
    scene.blend(scene.strokes(lines, 0.03, blur=1.2) * np.float32(0.5), tones.vessel)
    return scene


def _spot(scene: Scene) -> tuple[float, float]:
    return scene.vary(-0.56, 0.06), scene.vary(-0.06, 0.07)


def _liver_lesion(scene: Scene, look: ImageSpec, *, bright: float, core: float) -> None:
    if not look.sign:
        return
    place, radius = _spot(scene), 0.25 * look.size
    scene.ellipse(place, (radius, radius * 0.92), bright, wobble=0.07)
    if look.sign == "rim":
        scene.ellipse(place, (radius * 0.74, radius * 0.68), core, soft=0.05, wobble=0.10)


def _bowel(scene: Scene, loops: int, area: tuple[float, float]) -> None:
    for _ in range(loops):
        x, y = scene.vary(0, area[1]), scene.vary(area[0], 0.22)
        scene.ellipse((x, y), (0.13, 0.10), 0.42, turn=scene.vary(0, 1.5), wobble=0.06)
        scene.ellipse((x, y), (0.07, 0.05), scene.vary(0.25, 0.2), soft=0.05)


def _locules(scene: Scene, place: tuple[float, float], radius: float) -> None:
    for turn in np.arange(5) * 2 * np.pi / 5 + scene.rng.uniform(0, 1):
        at = (place[0] + 0.52 * radius * float(np.cos(turn)), place[1] + 0.52 * radius * float(np.sin(turn)))
        scene.ellipse(at, (radius * 0.33, radius * 0.33), 0.22, soft=0.02)
    scene.ellipse(place, (radius * 0.26, radius * 0.26), 0.22, soft=0.02)


def _coronal(rng: np.random.Generator) -> Scene:
    scene = Scene(rng, 256, 288)
    scene.blend(scene.mask((0, 0), (0.98, 1.35), wobble=0.02), _CT.fat)
    scene.blend(scene.mask((0, 0), (0.88, 1.3)), 0.36)
    scene.ellipse((-0.5, -0.78), (0.42, 0.32), _CT.liver)
    scene.ellipse((0.6, -0.75), (0.22, 0.28), _CT.spleen)
    for way in (-1, 1):
        scene.ellipse((0.60 * way, 0.92), (0.40, 0.17), 0.9, turn=-0.9 * way)
        scene.ellipse((0.60 * way, 0.92), (0.35, 0.12), 0.62, turn=-0.9 * way)
        scene.ellipse((0.25 * way, 0.35), (0.12, 0.55), 0.48, turn=-0.15 * way)
    _backbone(scene, 0.40)
    return scene


def _backbone(scene: Scene, strength: float) -> None:
    for row in range(6):
        scene.ellipse((0, -0.95 + 0.33 * row), (0.17, 0.14), 0.62, soft=0.05, alpha=strength)


def _collecting_systems(scene: Scene, look: ImageSpec, *, tone: float) -> None:
    """Pelvis, three calyces and a ureter on each side, one side changed by the sign."""
    for way in (-1, 1):
        ill = look.sign if way == look.side else ""
        stretch = 1.75 * look.size if ill == "splayed" else 1.0
        hub = (0.36 * way, -0.24)
        tips = [
            (hub[0] + way * 0.17 * (1.25 if ill == "splayed" else 1), hub[1] + 0.19 * stretch * row)
            for row in (-1, 0, 1)
        ]
        width = 0.035 if ill == "splayed" else 0.06
        ureter = [hub, (0.27 * way, -0.05), (0.24 * way, 0.3), (0.3 * way, 0.62), (0.14 * way, 0.95)]
        scene.blend(scene.strokes([[hub, tip] for tip in tips], width), tone)
        scene.blend(scene.strokes([ureter], 0.028), tone * 0.9)
        for tip in tips:
            scene.ellipse(tip, (0.055, 0.055), tone)
        pelvis = 0.16 if ill == "filling" else 0.10
        scene.ellipse(hub, (pelvis * 1.1, pelvis * 1.3), tone)
        if ill == "filling":
            radius = 0.115 * look.size
            scene.ellipse((hub[0], hub[1] + 0.01), (radius, radius), 0.30, soft=0.02, wobble=0.1)
    scene.ellipse((0, 1.05), (0.26, 0.16), tone * 0.85)


_ROWS = np.linspace(-1.3, 1.3, 80)


def barium(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Contrast column with haustral folds."""
    scene = Scene(rng, 272, 256, ground=0.25)
    scene.pixels += scene.cloud(4) * np.float32(0.05)
    scene.blend(scene.polygons([[(0.5, -1), (1.2, -1), (1.2, 1), (0.7, 1)]], blur=12) * np.float32(0.4), 0.55)
    inside = _column(scene, look, tone=0.94, wall=None)
    scene.blend(np.clip(inside * 2 - 1, 0, 1) * np.clip(0.45 + 0.25 * scene.cloud(14), 0, 0.8), 0.66)
    return scene.radiograph(0.02)


def bowel_mr(rng: np.random.Generator, look: ImageSpec) -> Pixels:
    """Coronal T2 with fluid-filled loops."""
    scene = Scene(rng, 272, 256, ground=0.40)
    scene.pixels += scene.cloud(7) * np.float32(0.06)
    for x, y in rng.uniform((-1.0, -0.95), (1.0, 0.95), (12, 2)):
        if abs(x) > 0.45:
            scene.ellipse((float(x), float(y)), (0.19, 0.13), 0.20, turn=scene.vary(0, 1.5), wobble=0.06)
            scene.ellipse((float(x), float(y)), (0.15, 0.09), 0.85, turn=scene.vary(0, 0.3), wobble=0.06)
    _column(scene, look, tone=0.90, wall=0.10)
    return scene.mr()


def endoscopy(rng: np.random.Generator, look: ImageSpec) -> Pixels:
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


def _column(scene: Scene, look: ImageSpec, *, tone: float, wall: float | None) -> Pixels:
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
