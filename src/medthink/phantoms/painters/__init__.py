"""One painter per view: random generator and image spec in, pixels out."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
from PIL import Image

from medthink.phantoms.painters import abdomen, breast_ultrasound, chest, colour, head_neck, skeleton
from medthink.phantoms.painters.scene import ImageSpec, Pixels

_MODULES = (abdomen, breast_ultrasound, chest, colour, head_neck, skeleton)
PAINTERS: dict[str, Callable[[np.random.Generator, ImageSpec], Pixels]] = {
    name: painter
    for module in _MODULES
    for name, painter in vars(module).items()
    if callable(painter)
    and not name.startswith("_")
    and getattr(painter, "__module__", "") == module.__name__
    and not isinstance(painter, type)
}
_QUALITY = 85


def paint_jpeg(painter: str, look: ImageSpec, seed: int) -> bytes:
    """The picture as JPEG, without metadata."""
    pixels = PAINTERS[painter](np.random.Generator(np.random.PCG64(seed)), look)
    picture = Image.fromarray((pixels * np.float32(255) + np.float32(0.5)).astype(np.uint8)).convert("RGB")
    out = BytesIO()
    picture.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
