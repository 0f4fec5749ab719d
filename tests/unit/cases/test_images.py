"""Images: content decides, limits hold, bytes go through untouched, conversions are exact and repeatable."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.JpegImagePlugin import get_sampling
from PIL.PngImagePlugin import PngInfo

from colour_profiles import PROFILE
from medthink.cases.images.colour_profile import TruncatedImage, rebuild_profile
from medthink.cases.images.content import (
    JPEG,
    PNG,
    TooLarge,
    as_shown,
    decode,
    decoder_versions,
    flatten,
    has_alpha,
    pixel_digest,
    sniff,
    without_metadata,
)
from medthink.cases.images.jpeg import MAX_PIXELS
from medthink.core.errors import DataError, UsageError

CANARY = b"Jane Doe 1961-04-01"


def noise(width: int = 40, height: int = 30, channels: int = 3, seed: int = 1) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(pixels.squeeze())


def encoded(picture: Image.Image, format_: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format_, **options)
    return stream.getvalue()


def exif(orientation: int = 1) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    tags[0x010E] = CANARY.decode()
    return tags.tobytes()


def jpeg_with_everything(orientation: int = 1) -> bytes:
    return encoded(noise(), "JPEG", exif=exif(orientation), comment=CANARY, icc_profile=PROFILE) + CANARY


def png_with_everything(orientation: int = 1) -> bytes:
    info = PngInfo()
    info.add_text("Comment", CANARY.decode())
    info.add_itxt("Description", CANARY.decode())
    info.add_text("Zipped", CANARY.decode(), zip=True)
    return encoded(noise(), "PNG", pnginfo=info, exif=exif(orientation), icc_profile=PROFILE) + CANARY


def bomb_png(side: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    row = b"\0" * (1 + (side + 7) // 8)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(row * side, 9))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("format_", "media_type"),
    [("JPEG", JPEG), ("PNG", PNG), ("GIF", "image/gif"), ("WEBP", "image/webp"), ("TIFF", "image/tiff"),
     ("BMP", "image/bmp"), ("JPEG2000", "image/jp2"), ("AVIF", "image/avif")],
)  # fmt: skip
def test_sniff_names_the_content(format_: str, media_type: str) -> None:
    assert sniff(encoded(noise(), format_)) == media_type


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(b"<!DOCTYPE html><title>404</title>", "text/html"), (b"%PDF-1.7", "application/pdf"),
     (b"\0" * 128 + b"DICM", "application/dicom"), (b"no image", None), (b"", None),
     (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer")],
)  # fmt: skip
def test_sniff_names_what_is_no_image(data: bytes, media_type: str | None) -> None:
    assert sniff(data) == media_type


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "TIFF", "BMP"])
def test_only_jpeg_and_png_are_decoded(format_: str) -> None:
    with pytest.raises(DataError, match=f"x.jpg: neither JPEG nor PNG, but image/{format_.lower()}"):
        decode(encoded(noise(), format_), name="x.jpg")


def test_a_png_named_jpg_is_decoded_as_what_it_is() -> None:
    picture = noise()
    assert np.array_equal(np.asarray(decode(encoded(picture, "PNG"), name="x.jpg")), np.asarray(picture))


@pytest.mark.parametrize("side", [7_072, 10_000, 13_000, 14_000])
def test_a_bomb_is_refused_before_its_pixels_exist(side: int) -> None:
    data = bomb_png(side)
    assert len(data) < 200_000 and side * side > MAX_PIXELS
    with pytest.raises(TooLarge, match="50 megapixels"):
        decode(data, name="bomb.png")


@pytest.mark.parametrize("format_", ["JPEG", "PNG"])
def test_every_truncation_is_a_data_error_or_the_whole_picture(format_: str) -> None:
    picture = noise(16, 16)
    data = encoded(picture, format_)
    whole = np.asarray(decode(data, name="whole"))
    for length in range(len(data)):
        try:
            cut = np.asarray(decode(data[:length], name="cut"))
        except DataError:
            continue
        assert np.array_equal(cut, whole), length
        assert len(data) - length <= 20  # the checksums and the end chunk


@pytest.mark.parametrize("format_", ["JPEG", "PNG"])
def test_flipped_bytes_never_escape_as_anything_but_a_data_error(format_: str) -> None:
    data = encoded(noise(16, 16), format_)
    rng = np.random.default_rng(7)
    for _ in range(400):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            broken[at] = rng.integers(0, 256)
        with contextlib.suppress(DataError):
            as_shown(bytes(broken), accepts=frozenset({JPEG}), max_side=8, name="x")


@pytest.mark.parametrize("data", [encoded(noise(), "JPEG"), encoded(noise(), "PNG"), encoded(noise(channels=1), "PNG")])
def test_accepted_bytes_pass_untouched(data: bytes) -> None:
    prepared = as_shown(data, accepts=frozenset({JPEG, PNG}), max_side=40, max_bytes=len(data))
    assert prepared.data is data
    assert not prepared.changed
    assert (prepared.width, prepared.height) == (40, 30)
    assert prepared.media_type == sniff(data)


# An orientation of 0 is none: the pixels need not be encoded anew.
@pytest.mark.parametrize("data", [jpeg_with_everything(), jpeg_with_everything(0), png_with_everything()])
def test_metadata_is_removed_and_every_pixel_stays(data: bytes) -> None:
    assert CANARY in data
    prepared = as_shown(data, accepts=frozenset({JPEG, PNG}))
    picture = decode(prepared.data, name="x")
    assert prepared.changes == ("metadata removed",)
    assert CANARY not in prepared.data and b"Comment" not in prepared.data and b"Zipped" not in prepared.data
    assert np.array_equal(np.asarray(picture), np.asarray(decode(data, name="x")))
    assert picture.info["icc_profile"] == rebuild_profile(PROFILE)
    assert not picture.getexif()
    assert without_metadata(prepared.data) is prepared.data


def test_an_orientation_that_is_no_number_turns_nothing() -> None:
    tags = b"Exif\0\0MM\0*" + struct.pack(">IHHHI4sI", 8, 1, 0x0112, 2, 2, b"x", 0)
    prepared = as_shown(encoded(noise(), "JPEG", exif=tags))
    assert (prepared.changes, prepared.data) == (("metadata removed",), encoded(noise(), "JPEG"))


def test_metadata_goes_from_a_progressive_jpeg_with_restarts() -> None:
    data = encoded(noise(64, 64), "JPEG", progressive=True, restart_marker_blocks=2, comment=CANARY)
    clean = without_metadata(data)
    assert CANARY not in clean
    assert np.array_equal(np.asarray(decode(clean, name="x")), np.asarray(decode(data, name="x")))


@pytest.mark.parametrize("data", [jpeg_with_everything(), png_with_everything()])
@pytest.mark.parametrize("accepts", [frozenset({JPEG}), frozenset({PNG})])
@pytest.mark.parametrize("limit", [{"max_bytes": 1200}, {"max_side": 20}])
def test_nothing_of_it_comes_back_with_a_conversion(
    data: bytes, accepts: frozenset[str], limit: dict[str, int]
) -> None:
    prepared = as_shown(data, accepts=accepts, **limit)  # type: ignore[arg-type]
    assert "metadata removed" not in prepared.changes
    assert without_metadata(prepared.data) is prepared.data
    assert CANARY not in prepared.data


@pytest.mark.parametrize(("marker", "name"), [(0xE0, b"JFXX\0"), (0xE2, b"MPF\0"), (0xED, b""), (0xEE, b"Other")])
def test_other_application_segments_go(marker: int, name: bytes) -> None:
    data, text = encoded(noise(), "JPEG"), name + CANARY
    segment = bytes([0xFF, marker]) + (len(text) + 2).to_bytes(2, "big") + text
    # Filling before a segment belongs to none.
    assert without_metadata(data[:20] + b"\xff\xff" + segment + data[20:]) == data


def test_what_says_how_to_show_a_png_stays() -> None:
    info = PngInfo()
    shown = {b"gAMA": (45_455).to_bytes(4, "big"), b"cHRM": bytes(range(32))}
    for kind, body in shown.items():
        info.add(kind, body)
    info.add_text("Comment", CANARY.decode())
    clean = without_metadata(encoded(noise().convert("P"), "PNG", transparency=0, pnginfo=info))
    assert CANARY not in clean
    assert all(kind in clean for kind in (*shown, b"tRNS"))


def test_a_thumbnail_in_the_jfif_header_is_dropped() -> None:
    data = encoded(noise(), "JPEG")
    header = data[2:20]
    thumbnail = header[:2] + (16 + 27).to_bytes(2, "big") + header[4:16] + bytes([3, 3]) + b"T" * 27
    assert without_metadata(data[:2] + thumbnail + data[20:]) == data


def test_cutting_off_is_noticed_without_decoding() -> None:
    for format_ in ("JPEG", "PNG"):
        data = encoded(noise(), format_)
        with pytest.raises(TruncatedImage):
            without_metadata(data[: len(data) // 2])


@pytest.mark.parametrize("make", [jpeg_with_everything, png_with_everything])
@pytest.mark.parametrize("orientation", range(2, 9))
def test_orientation_is_applied_then_dropped(make: object, orientation: int) -> None:
    data = make(orientation)  # type: ignore[operator]
    prepared = as_shown(data, accepts=frozenset({PNG}))
    upright = np.asarray(decode(prepared.data, name="x"))
    plain = np.asarray(decode(make(1), name="x"))  # type: ignore[operator]
    turned = {
        2: plain[:, ::-1], 3: plain[::-1, ::-1], 4: plain[::-1], 5: plain.transpose(1, 0, 2),
        6: np.rot90(plain, -1), 7: np.rot90(plain, 2).transpose(1, 0, 2), 8: np.rot90(plain),
    }[orientation]  # fmt: skip
    assert np.array_equal(upright, turned)
    assert "orientation applied" in prepared.changes
    assert CANARY not in prepared.data


def test_alpha_is_laid_over_black() -> None:
    pixels = np.zeros((8, 8, 4), dtype=np.uint8)
    pixels[..., 0] = 200
    pixels[:4, :, 3] = 255
    data = encoded(Image.fromarray(pixels), "PNG")
    prepared = as_shown(data, accepts=frozenset({JPEG}), quality=95)
    assert prepared.changes == ("alpha over black", "JPEG quality 95")
    flat = np.asarray(decode(prepared.data, name="x")).astype(int)
    assert abs(flat[1, 1] - (200, 0, 0)).max() <= 4
    assert flat[6, 6].max() <= 4


def test_a_palette_with_transparency_counts_as_alpha() -> None:
    picture = noise().convert("P")
    data = encoded(picture, "PNG", transparency=0)
    assert has_alpha(decode(data, name="x"))
    assert flatten(decode(data, name="x")).mode == "RGB"


def test_sixteen_bits_keep_their_upper_eight() -> None:
    deep = np.linspace(0, 65_535, 64, dtype=np.uint16).reshape(8, 8)
    flat = flatten(decode(encoded(Image.fromarray(deep), "PNG"), name="x"))
    assert np.array_equal(np.asarray(flat), deep >> 8)


def test_max_side_scales_the_longest_side() -> None:
    prepared = as_shown(encoded(noise(400, 300), "JPEG"), max_side=100)
    assert (prepared.width, prepared.height) == (100, 75)
    assert decode(prepared.data, name="x").size == (100, 75)
    assert prepared.changes == ("resized to 100×75", "JPEG quality 90")
    # 561 × (512 / 561) is 511.999… in floats.
    assert as_shown(encoded(noise(561, 8), "PNG"), max_side=512).width == 512


def test_scaling_is_lanczos_and_keeps_the_colour_profile() -> None:
    prepared = as_shown(encoded(noise(), "PNG", icc_profile=PROFILE), accepts=frozenset({PNG}), max_side=20)
    small = decode(prepared.data, name="x")
    assert np.array_equal(np.asarray(small), np.asarray(noise().resize((20, 15), Image.Resampling.LANCZOS)))
    assert small.info["icc_profile"] == rebuild_profile(PROFILE)


def test_the_profile_of_colours_that_were_converted_is_dropped() -> None:
    data = encoded(noise().convert("CMYK"), "JPEG", icc_profile=b"a profile for ink")
    picture = decode(as_shown(data, max_side=20).data, name="x")
    assert (picture.mode, picture.info.get("icc_profile")) == ("RGB", None)


@pytest.mark.parametrize("accepts", [frozenset({JPEG}), frozenset({PNG})])
@pytest.mark.parametrize("max_bytes", [20_000, 5_000, 1_200])
def test_max_bytes_is_kept_and_the_size_reported_is_true(accepts: frozenset[str], max_bytes: int) -> None:
    prepared = as_shown(encoded(noise(200, 150), "PNG"), accepts=accepts, max_bytes=max_bytes)
    assert len(prepared.data) <= max_bytes
    assert decode(prepared.data, name="x").size == (prepared.width, prepared.height)
    assert frozenset({prepared.media_type}) == accepts == frozenset({sniff(prepared.data)})


def test_quality_falls_before_the_size_does() -> None:
    data = encoded(noise(200, 150), "PNG")
    at_90 = len(as_shown(data, accepts=frozenset({JPEG}), quality=90).data)
    prepared = as_shown(data, accepts=frozenset({JPEG}), quality=90, max_bytes=at_90 - 1)
    assert prepared.changes == ("JPEG quality 80",)
    at_40 = len(as_shown(data, accepts=frozenset({JPEG}), quality=40).data)
    steps = [as_shown(data, accepts=frozenset({JPEG}), max_bytes=limit).changes for limit in (at_40, at_40 - 1)]
    assert steps == [("JPEG quality 40",), ("shrunk to 160×120", "JPEG quality 40")]


def test_a_jpeg_keeps_every_pixel_of_its_colours() -> None:
    picture = decode(as_shown(encoded(noise(), "PNG"), accepts=frozenset({JPEG})).data, name="x")
    assert get_sampling(picture) == 0  # 4:4:4


def test_what_cannot_be_small_enough_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be brought under 10 bytes"):
        as_shown(encoded(noise(), "JPEG"), max_bytes=10, name="x")


def test_conversion_is_deterministic() -> None:
    data = encoded(noise(channels=4), "PNG")
    assert as_shown(data, accepts=frozenset({JPEG})) == as_shown(data, accepts=frozenset({JPEG}))


def test_a_png_that_lacks_only_its_end_is_mended() -> None:
    whole = encoded(noise(), "PNG")
    prepared = as_shown(whole[:-12], accepts=frozenset({PNG}))
    assert prepared.changes == ("PNG",)
    assert np.array_equal(np.asarray(decode(prepared.data, name="x")), np.asarray(noise()))


@pytest.mark.parametrize("bad", [{"quality": 0}, {"quality": 96}, {"max_side": 0}, {"max_bytes": 0},
                                 {"accepts": frozenset({"image/webp"})}])  # fmt: skip
def test_impossible_limits_are_usage_errors(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        as_shown(encoded(noise(), "JPEG"), **bad)  # type: ignore[arg-type]


def test_pixel_digest_sees_pixels_not_files() -> None:
    grey = noise(channels=1)
    one = encoded(grey, "PNG")
    digests = {
        pixel_digest(decode(data, name="x"))
        for data in (one, encoded(grey.convert("RGB"), "PNG", compress_level=1), encoded(grey.convert("RGBA"), "PNG"))
    }
    assert len(digests) == 1
    assert pixel_digest(decode(encoded(noise(channels=1, seed=2), "PNG"), name="x")) not in digests
    assert pixel_digest(noise(20, 10)) != pixel_digest(noise(10, 20))


def test_decoder_versions_name_pillow_and_libjpeg() -> None:
    assert {"Pillow", "libjpeg", "zlib"} <= decoder_versions().keys()
