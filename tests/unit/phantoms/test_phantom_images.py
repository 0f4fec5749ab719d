"""The drawn signs can be told apart by looking, and no two drawings are the same."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from medthink.cases.images.content import without_metadata
from medthink.phantoms.atlas import families
from medthink.phantoms.painters import PAINTERS, paint_jpeg
from medthink.phantoms.painters.scene import ImageSpec

VIEWS = sorted(
    (view.painter, tuple(axis.values)) for family in families().values() for axis in family.axes for view in axis.views
)


def features(data):
    """What a simple reader sees: a small grey picture and its edges."""
    picture = np.asarray(Image.open(BytesIO(data)).convert("L").resize((32, 32), Image.Resampling.BOX), float) / 255
    down, across = np.gradient(picture)
    return np.concatenate([picture.ravel(), 2 * np.hypot(down, across).ravel()])


def drawn(painter, sign, first, number):
    for at in range(first, first + number):
        rng = np.random.default_rng(at)
        look = ImageSpec(sign, (-1, 1)[at % 2], float(rng.uniform(0.75, 1.3)))
        yield features(paint_jpeg(painter, look, at))


def test_a_nearest_neighbour_tells_the_signs_apart():
    hits = []
    for painter, signs in VIEWS:
        known = [(sign, seen) for at, sign in enumerate(signs) for seen in drawn(painter, sign, 1000 * at, 4)]
        hits += [
            min(known, key=lambda pair: float(np.square(pair[1] - seen).sum()))[0] == sign
            for at, sign in enumerate(signs)
            for seen in drawn(painter, sign, 1000 * at + 500, 1)
        ]
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize("painter", sorted(PAINTERS))
def test_a_picture_is_a_plain_jpeg_of_moderate_size(painter):
    data = paint_jpeg(painter, ImageSpec("", 1, 1.0), 7)
    picture = Image.open(BytesIO(data))
    assert (picture.format, picture.mode) == ("JPEG", "RGB")
    assert 160 <= min(picture.size) <= max(picture.size) <= 320
    assert without_metadata(data) is data
    assert data == paint_jpeg(painter, ImageSpec("", 1, 1.0), 7)
    assert data != paint_jpeg(painter, ImageSpec("", 1, 1.0), 8)


def test_a_sign_moves_with_its_side():
    left, right = (
        np.mean(
            [features(paint_jpeg("breast_mr", ImageSpec("solid", side, 1.0), at))[:1024] for at in range(4)], axis=0
        ).reshape(32, 32)
        for side in (1, -1)
    )
    assert left[:, 16:].sum() > left[:, :16].sum()
    assert right[:, 16:].sum() < right[:, :16].sum()
