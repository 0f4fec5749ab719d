"""Words hidden in the parts of an image file that say how to show it do not travel with the picture."""

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from colour_profiles import PROFILE
from medthink.cases.images.colour_profile import MalformedImage, rebuild_profile
from medthink.cases.images.content import as_shown, without_metadata
from medthink.cases.images.jpeg import plain_jpeg_size
from medthink.core.errors import DataError

CANARY = b"WITHHELD: carcinoma of the colon"


def picture(mode: str = "RGB") -> Image.Image:
    pixels = np.random.default_rng(5).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(form: str, mode: str = "RGB", **options: object) -> bytes:
    stream = io.BytesIO()
    picture(mode).save(stream, form, **options)
    return stream.getvalue()


def segment(marker: int, payload: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def jpeg_with(*parts: bytes) -> bytes:
    """A JPEG with these segments after its first one."""
    data = encoded("JPEG")
    return data[:20] + b"".join(parts) + data[20:]


def png_with(*parts: bytes, mode: str = "RGB") -> bytes:
    """A PNG with these chunks after its header."""
    data = encoded("PNG", mode)
    return data[:33] + b"".join(parts) + data[33:]


def repacked(change: Callable[[bytes], bytes], **options: object) -> bytes:
    """A PNG whose stream of pixels is changed."""
    data = encoded("PNG", **options)
    start = data.index(b"IDAT") - 4
    size = int.from_bytes(data[start : start + 4], "big")
    packed = data[start + 8 : start + 8 + size]
    return data[:start] + chunk(b"IDAT", change(packed)) + data[start + 12 + size :]


def with_tag(name: bytes, content: bytes, profile: bytes = PROFILE) -> bytes:
    """The profile with one more tag, or another content of a tag that it has."""
    count = int.from_bytes(profile[128:132], "big")
    entries = [list(one) for one in struct.iter_unpack(">4sII", profile[132 : 132 + 12 * count])]
    tags = {entry: profile[start : start + size] for entry, start, size in entries} | {name: content}
    table, body, start = b"", b"", 132 + 12 * len(tags)
    for entry, data in tags.items():
        table += struct.pack(">4sII", entry, start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    size = (start + len(body)).to_bytes(4, "big")
    return size + profile[4:128] + len(tags).to_bytes(4, "big") + table + body


TEXT = b"text" + bytes(4) + CANARY
LONG_CURVE = b"curv" + bytes(4) + struct.pack(">I", len(CANARY) // 2) + CANARY
XYZ = b"XYZ " + bytes(4) + CANARY[:12]
ADOBE = b"Adobe" + bytes.fromhex("0064 0000 0000 01")

HIDDEN = {
    "description of a profile": encoded("JPEG", icc_profile=with_tag(b"desc", TEXT)),
    "private tag of a profile": encoded("JPEG", icc_profile=with_tag(b"xyzw", TEXT)),
    "creator in a profile": encoded("JPEG", icc_profile=PROFILE[:80] + CANARY[:20] + PROFILE[100:]),
    "tail of a profile": encoded("JPEG", icc_profile=PROFILE + CANARY),
    "profile that is none": encoded("JPEG", icc_profile=CANARY * 3),
    "profile in many parts": encoded("JPEG", icc_profile=with_tag(b"xyzw", CANARY * 6000)),
    "tail of the Adobe segment": jpeg_with(segment(0xEE, ADOBE + CANARY)),
    "second Adobe segment": jpeg_with(segment(0xEE, ADOBE), segment(0xEE, b"Adobe" + CANARY[:7])),
    "second JFIF segment": jpeg_with(segment(0xE0, b"JFIF\0" + CANARY)),
    "name of a profile, PNG": png_with(chunk(b"iCCP", CANARY + b"\0\0" + zlib.compress(PROFILE))),
    "description of a profile, PNG": encoded("PNG", icc_profile=with_tag(b"desc", TEXT)),
    "oversized gamma": png_with(chunk(b"gAMA", struct.pack(">I", 45455) + CANARY)),
    "oversized pixel size": png_with(chunk(b"pHYs", bytes(9) + CANARY)),
    "oversized transparency": png_with(chunk(b"tRNS", bytes(6) + CANARY)),
    "palette of a picture without one": png_with(chunk(b"PLTE", CANARY[:30])),
    "second chunk of one kind": png_with(chunk(b"cHRM", bytes(32)), chunk(b"cHRM", CANARY)),
    "end that holds something": encoded("PNG")[:-12] + chunk(b"IEND", CANARY),
    "after the stream of pixels": repacked(lambda packed: packed + CANARY),
    "more pixels than the picture has": repacked(
        lambda packed: zlib.compress(zlib.decompress(packed) + CANARY * 3), interlace=0
    ),
}


def all_words(data: bytes) -> bytes:
    """Every byte of a file, what is packed in it too."""
    found = data
    at = 8
    while data.startswith(b"\x89PNG") and at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        content = data[at + 8 : at + 8 + size]
        packed = content.partition(b"\0")[2][1:] if data[at + 4 : at + 8] == b"iCCP" else content
        if data[at + 4 : at + 8] in (b"iCCP", b"IDAT"):
            found += zlib.decompressobj().decompress(packed)
        at += 12 + size
    return found


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_words_stay_behind_and_every_pixel_goes(name):
    data = HIDDEN[name]
    assert CANARY[:7] in all_words(data), "the test hides something"
    assert plain_jpeg_size(data) is None
    ready = as_shown(data)
    assert CANARY[:7] not in all_words(ready.data)
    assert ready.changes == ("metadata removed",)
    shown = Image.open(io.BytesIO(ready.data))
    assert np.array_equal(np.asarray(shown), np.asarray(Image.open(io.BytesIO(data))))
    assert without_metadata(ready.data) is ready.data


@pytest.mark.parametrize("marker", [0x02, 0xC8, 0xF5])
def test_segments_that_belong_to_no_picture_are_left_out(marker):
    data = jpeg_with(segment(marker, CANARY))
    assert without_metadata(data) == encoded("JPEG")
    assert plain_jpeg_size(data) is None


@pytest.mark.parametrize("limit", [{"max_side": 20}, {"accepts": frozenset({"image/png"})}])
def test_a_converted_picture_has_the_profile_without_its_words(limit):
    ready = as_shown(HIDDEN["description of a profile"], **limit)
    assert CANARY[:7] not in all_words(ready.data)
    assert Image.open(io.BytesIO(ready.data)).info["icc_profile"] == rebuild_profile(PROFILE)


@pytest.mark.parametrize(
    ("tag", "content"),
    [(b"rTRC", LONG_CURVE), (b"rXYZ", XYZ), (b"chad", b"sf32" + bytes(4) + CANARY + CANARY[:4]), (b"gTRC", b"")],
)
def test_no_words_fit_into_the_numbers_of_a_profile(tag, content):
    made = rebuild_profile(with_tag(tag, content))
    assert made is None or CANARY[:7] not in made
    if tag != b"chad":
        assert made is None, "a profile without its colours shows nothing"


def test_a_rebuilt_profile_shows_the_same_colours_and_is_rebuilt_to_itself():
    made = rebuild_profile(PROFILE)
    assert rebuild_profile(made) == made and len(made) < len(PROFILE)
    lab = ImageCms.createProfile("LAB")
    before, after = (
        ImageCms.profileToProfile(picture(), ImageCms.ImageCmsProfile(io.BytesIO(one)), lab, outputMode="LAB")
        for one in (PROFILE, made)
    )
    assert before.tobytes() == after.tobytes()


def test_a_grey_profile_by_a_curve_of_points_is_kept():
    curve = b"curv" + bytes(4) + struct.pack(">I", 256) + struct.pack(">256H", *(257 * value for value in range(256)))
    head = PROFILE[:16] + b"GRAY" + PROFILE[20:128] + bytes(4)
    white = b"XYZ " + bytes(4) + bytes.fromhex("0000f6d6 00010000 0000d32d")
    grey = with_tag(b"kTRC", curve, with_tag(b"wtpt", white, head))
    assert curve in rebuild_profile(with_tag(b"desc", TEXT, grey))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "P", "RGB", "RGBA"])
def test_a_png_without_metadata_is_the_same_object(mode):
    data = encoded("PNG", "L" if mode == "I;16" else mode)
    if mode == "I;16":
        stream = io.BytesIO()
        Image.fromarray((np.arange(960, dtype=np.uint16) * 60).reshape(24, 40)).save(stream, "PNG")
        data = stream.getvalue()
    assert without_metadata(data) is data


def adam7(width: int, height: int) -> bytes:
    """An interlaced grey PNG, which Pillow reads and does not write."""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    rows = b""
    for left, top, across, down in passes:
        columns = len(range(left, width, across))
        rows += (b"\0" + bytes(columns)) * len(range(top, height, down)) if columns else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 7), (8, 8), (17, 9), (40, 24)])
def test_an_interlaced_png_is_counted_pass_by_pass(size):
    data = adam7(*size)
    assert without_metadata(data) is data
    Image.open(io.BytesIO(data)).load()


def test_a_broken_stream_of_pixels_is_told():
    with pytest.raises(MalformedImage, match="broken PNG"):
        without_metadata(repacked(lambda packed: b"\0" * len(packed)))


@settings(max_examples=150)
@given(data=st.data(), name=st.sampled_from(sorted(HIDDEN)))
def test_damaged_files_are_cleaned_or_told_and_never_a_traceback(data, name):
    whole = bytearray(HIDDEN[name])
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        clean = without_metadata(bytes(whole))
    except DataError:
        return
    assert without_metadata(clean) is clean
