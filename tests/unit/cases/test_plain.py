"""A plain JPEG is exactly one that `as_shown` leaves as it is."""

import io
import random

import numpy as np
import pytest
from PIL import Image

from colour_profiles import PROFILE
from medthink.cases.images.colour_profile import rebuild_profile
from medthink.cases.images.content import as_shown
from medthink.cases.images.jpeg import MAX_PIXELS, plain_jpeg_size
from medthink.core.errors import DataError

CLEAN = rebuild_profile(PROFILE)


def jpeg(mode: str = "L", size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    pixels = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}, {"icc_profile": CLEAN}])
def test_a_jpeg_without_metadata_is_plain_and_prepare_agrees(mode, options):
    data = jpeg(mode, (41, 33), **options)
    ready = as_shown(data)
    assert plain_jpeg_size(data) == (41, 33) == (ready.width, ready.height)
    assert ready.data is data and not ready.changes


@pytest.mark.parametrize(
    "data",
    [
        jpeg(comment=b"Jane Doe"),
        jpeg(exif=exif(1)),
        jpeg(exif=exif(6)),
        jpeg() + b"after the end",
        b"\x89PNG\r\n\x1a\n",
        b"<html>",
        b"",
        b"\xff\xd8\xff",
    ],
)
def test_whatever_prepare_changes_or_refuses_is_not_plain(data):
    assert plain_jpeg_size(data) is None


def test_four_components_are_left_to_prepare():
    assert plain_jpeg_size(jpeg("CMYK")) is None


def test_a_picture_over_the_pixel_limit_is_left_to_prepare():
    data = jpeg()
    frame = data.index(b"\xff\xc0")
    huge = data[: frame + 5] + b"\xff\xff\xff\xff" + data[frame + 9 :]
    assert MAX_PIXELS < 0xFFFF * 0xFFFF
    assert plain_jpeg_size(huge) is None


def test_no_truncation_is_plain():
    data = jpeg("RGB")
    assert all(plain_jpeg_size(data[:end]) is None for end in range(len(data)))


def test_damage_in_the_segments_is_never_called_plain_where_prepare_would_change_the_file():
    data = jpeg("RGB")
    chance = random.Random(5)
    for _ in range(3000):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] = chance.randrange(256)
        size = plain_jpeg_size(bytes(damaged))
        try:
            ready = as_shown(bytes(damaged))
        except DataError:
            continue
        assert size is None or (ready.data == damaged and size == (ready.width, ready.height))
