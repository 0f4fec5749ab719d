"""DICOM files as pictures: 8-bit frames, and only allow-listed values of the header.

Compressed syntaxes are decoded by python-gdcm and pyjpegls (extra `[dicom]`). A header is text that someone typed: only
a few coded elements are read, and only values on our own list are accepted.
"""

import io
import logging
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from medthink.cases.images.jpeg import MAX_PIXELS
from medthink.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from pydicom import Dataset

LEVEL_ONE = {
    "CT": "CT", "MR": "MRI", "CR": "X-ray", "DX": "X-ray", "DR": "X-ray", "XA": "X-ray", "RF": "X-ray", "MG": "X-ray",
    "PX": "X-ray", "IO": "X-ray", "RG": "X-ray", "US": "Ultrasound", "IVUS": "Ultrasound", "SM": "Pathology",
    "GM": "Pathology", "XC": "Clinical photography", "DMS": "Clinical photography", "OP": "Clinical photography",
    "NM": "Nuclear medicine & Molecular imaging", "PT": "Nuclear medicine & Molecular imaging", "ES": "Endoscopy",
}  # fmt: skip
BODY_PARTS = frozenset((
    "ABDOMEN", "ANKLE", "ARM", "BRAIN", "BREAST", "CHEST", "CLAVICLE", "COCCYX", "CSPINE", "ELBOW", "EYE",
    "FEMUR", "FOOT", "HAND", "HEAD", "HEART", "HIP", "KIDNEY", "KNEE", "LEG", "LIVER", "LSPINE", "LUNG",
    "NECK", "PELVIS", "PROSTATE", "SHOULDER", "SKULL", "SPINE", "SSPINE", "THORAX", "THYROID", "TSPINE",
    "UTERUS", "WRIST",
))  # fmt: skip
VIEWS = frozenset(("AP", "PA", "LL", "RL", "RLD", "LLD", "RLO", "LLO", "CC", "MLO", "ML", "LM", "LATERAL"))
_TYPICAL = (0.5, 99.5)


class DicomHeader(NamedTuple):
    """What is taken from a header: words from our own lists, and whether names may be burned into the pixels.

    `series` is a number and an id that tell series apart; they are sorted by and never stored.
    """

    modality: str
    body_part: str
    view: str
    series: tuple[int, str]
    instance: int
    frames: int
    is_burned_in: bool


def read_header(data: bytes, *, name: str) -> DicomHeader:
    """The allow-listed elements of a header."""
    dataset = _open(data, name)
    return DicomHeader(
        modality=LEVEL_ONE.get(_word(dataset, "Modality"), ""),
        body_part=_listed(dataset, "BodyPartExamined", BODY_PARTS),
        view=_listed(dataset, "ViewPosition", VIEWS),
        series=(_number(dataset, "SeriesNumber", 0), str(dataset.get("SeriesInstanceUID") or "")),
        instance=_number(dataset, "InstanceNumber", 0),
        frames=_number(dataset, "NumberOfFrames", 1),
        is_burned_in=_word(dataset, "BurnedInAnnotation") == "YES",
    )


def read_frames(data: bytes, *, name: str, most: int) -> Iterator["PillowImage"]:
    """At most this many frames of the file, evenly spaced, as they are meant to be displayed."""
    dataset = _open(data, name)
    frames = _number(dataset, "NumberOfFrames", 1)
    for index in evenly(frames, most):
        yield _picture(dataset, index, name)


def evenly(count: int, most: int) -> list[int]:
    """At most this many of `count` positions, evenly spaced and centred."""
    if count <= most:
        return list(range(count))
    return [(2 * at + 1) * count // (2 * most) for at in range(most)]


def _open(data: bytes, name: str) -> "Dataset":
    try:
        from pydicom import config, dcmread
        from pydicom.errors import InvalidDicomError
    except ImportError:
        raise UsageError("DICOM files need pydicom", remedy='pip install "medthink[dicom]"') from None
    config.settings.reading_validation_mode = config.IGNORE
    logging.getLogger("pydicom").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # harmless errors in headers
            return dcmread(io.BytesIO(data))
    except (InvalidDicomError, *_FAILURES) as error:
        raise _unreadable(name, error) from None


def _picture(dataset: "Dataset", index: int, name: str) -> "PillowImage":
    from PIL import Image
    from pydicom.pixels.utils import pixel_array

    if _number(dataset, "Rows", 0) * _number(dataset, "Columns", 0) > MAX_PIXELS:
        raise DataError(f"over {MAX_PIXELS // 1_000_000} megapixels", file=name, remedy="scale the image down")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # padding behind the pixels, and the like
            pixels = pixel_array(dataset, index=index)
        kind = str(dataset.PhotometricInterpretation)
        shown = (
            _in_colour(dataset, pixels, kind) if pixels.ndim == 3 or "PALETTE" in kind else _in_grey(dataset, pixels)
        )
    except _FAILURES as error:
        raise _unreadable(name, error) from None
    return Image.fromarray(shown)


def _in_colour(dataset: "Dataset", pixels: Any, kind: str) -> Any:
    """8-bit RGB; pydicom has already converted YBR to RGB."""
    import numpy as np
    from pydicom.pixels.processing import apply_color_lut

    if "PALETTE" in kind:
        pixels = apply_color_lut(pixels, dataset)
    bits = 16 if pixels.dtype.itemsize > 1 else 8
    return (pixels >> (bits - 8)).astype(np.uint8) if bits > 8 else pixels.astype(np.uint8)


def _in_grey(dataset: "Dataset", pixels: Any) -> Any:
    """8-bit grey, windowed by the file's own window or table, else between the usual extremes."""
    import numpy as np
    from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut

    padding = dataset.get("PixelPaddingValue")
    inside = np.ones(pixels.shape, bool) if padding is None else pixels != padding
    values = apply_modality_lut(pixels, dataset).astype(np.float64)
    if "WindowCenter" in dataset or "VOILUTSequence" in dataset:
        values = apply_voi_lut(apply_modality_lut(pixels, dataset), dataset).astype(np.float64)
        low, high = float(values.min()), float(values.max())
    else:
        low, high = np.percentile(values[inside] if inside.any() else values, _TYPICAL)
    shown = np.clip((values - low) / (high - low or 1.0), 0, 1) * 255
    if str(dataset.PhotometricInterpretation) == "MONOCHROME1":
        shown = 255 - shown
    return np.where(inside, shown, 0).round().astype(np.uint8)


def _word(dataset: "Dataset", keyword: str) -> str:
    value = dataset.get(keyword)
    return value.strip().upper() if isinstance(value, str) else ""


def _listed(dataset: "Dataset", keyword: str, known: frozenset[str]) -> str:
    word = _word(dataset, keyword)
    return word if word in known else ""


def _number(dataset: "Dataset", keyword: str, otherwise: int) -> int:
    """A count in the header; real files may contain "1A"."""
    try:
        return max(otherwise, int(str(dataset.get(keyword))))
    except ValueError:
        return otherwise


def _unreadable(name: str, error: BaseException) -> DataError:
    problem = f"the DICOM file cannot be decoded: {type(error).__name__}: {error}".split("\n")[0]
    return DataError(problem[:300], file=name, remedy="replace the file or convert it to PNG")


# What pydicom and its decoders raise on broken files; one file must not end the whole import.
_FAILURES = (
    AttributeError, ValueError, KeyError, IndexError, TypeError, NotImplementedError, RuntimeError, OSError, EOFError,
    OverflowError, MemoryError,
)  # fmt: skip
