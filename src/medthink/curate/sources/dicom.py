"""DICOM files as pictures: 8-bit frames, and only allow-listed values of the header.

Grey values are shown through the window that the file states, as a workstation shows them; the slices of one series
share a window, so that a tissue is as bright in one as in the next.

Compressed syntaxes are decoded by python-gdcm and pyjpegls (extra `[dicom]`). A header is text that someone typed: only
a few coded elements are read, and only values on our own list are accepted.
"""

import io
import logging
import warnings
from collections.abc import Iterator
from math import isfinite
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
# Whose series are stacks of slices.
STACKED = frozenset(("CT", "MRI", "Nuclear medicine & Molecular imaging"))
BODY_PARTS = frozenset((
    "ABDOMEN", "ANKLE", "ARM", "BRAIN", "BREAST", "CHEST", "CLAVICLE", "COCCYX", "CSPINE", "ELBOW", "EYE",
    "FEMUR", "FOOT", "HAND", "HEAD", "HEART", "HIP", "KIDNEY", "KNEE", "LEG", "LIVER", "LSPINE", "LUNG",
    "NECK", "PELVIS", "PROSTATE", "SHOULDER", "SKULL", "SPINE", "SSPINE", "THORAX", "THYROID", "TSPINE",
    "UTERUS", "WRIST",
))  # fmt: skip
VIEWS = frozenset(("AP", "PA", "LL", "RL", "RLD", "LLD", "RLO", "LLO", "CC", "MLO", "ML", "LM", "LATERAL"))
_TYPICAL = (0.5, 99.5)


class GreyWindow(NamedTuple):
    """The values, after the modality's rescaling, that are shown black and white, and whether by a sigmoid curve."""

    low: float
    high: float
    is_sigmoid: bool = False


class DicomHeader(NamedTuple):
    """The values read from a header: words from our own lists, and whether names may be burned into the pixels.

    `series` is a number and an id that tell series apart; they are sorted by and never stored.
    """

    modality: str
    body_part: str
    view: str
    series: tuple[int, str]
    instance: int
    frames: int
    is_burned_in: bool
    window: GreyWindow | None


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
        window=_stated_window(dataset),
    )


def read_frames(data: bytes, *, name: str, most: int, window: GreyWindow | None = None) -> Iterator["PillowImage"]:
    """At most this many frames of the file, evenly spaced, as they are meant to be displayed.

    `window` is that of the series; without one the file's own is used, or else one for all of these frames.
    """
    dataset = _open(data, name)
    chosen = evenly(_number(dataset, "NumberOfFrames", 1), most)
    if window is None and not _has_own_greys(dataset):
        window = typical_window(data, name=name, most=most)
    for index in chosen:
        yield _picture(dataset, index, name, window)


def typical_window(data: bytes, *, name: str, most: int) -> GreyWindow | None:
    """A window for a grey file that states none: between the usual extremes of its frames."""
    import numpy as np

    dataset = _open(data, name)
    chosen = evenly(_number(dataset, "NumberOfFrames", 1), most)
    extremes = []
    for index in chosen:
        pixels = _pixels(dataset, index, name)
        if pixels.ndim == 3 or "PALETTE" in str(dataset.PhotometricInterpretation):
            return None
        try:
            values, inside = _values(dataset, pixels)
            extremes.append(np.percentile(values[inside] if inside.any() else values, _TYPICAL))
        except _FAILURES as error:
            raise _unreadable(name, error) from None
    low, high = np.median(extremes, axis=0)
    return GreyWindow(float(low), float(high))


def _has_own_greys(dataset: "Dataset") -> bool:
    """Whether the file says how its values are shown, or has colours."""
    is_grey = str(dataset.get("PhotometricInterpretation")).startswith("MONOCHROME")
    return not is_grey or "VOILUTSequence" in dataset or _stated_window(dataset) is not None


def _stated_window(dataset: "Dataset") -> GreyWindow | None:
    """The first window that the header states; DICOM counts it from the middle of a value (PS3.3 C.11.2.1.2)."""
    center, width = (_first_number(dataset, keyword) for keyword in ("WindowCenter", "WindowWidth"))
    if center is None or width is None or width <= 0:
        return None
    function = _word(dataset, "VOILUTFunction")
    if function in ("LINEAR_EXACT", "SIGMOID"):
        return GreyWindow(center - width / 2, center + width / 2, function == "SIGMOID")
    return GreyWindow(center - 0.5 - (width - 1) / 2, center - 0.5 + (width - 1) / 2)


def _first_number(dataset: "Dataset", keyword: str) -> float | None:
    value = dataset.get(keyword)
    first = value if isinstance(value, int | float | str) else next(iter(value or ()), None)
    try:
        found = float(str(first))
    except ValueError:
        return None
    return found if isfinite(found) else None


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


def _pixels(dataset: "Dataset", index: int, name: str) -> Any:
    from pydicom.pixels.utils import pixel_array

    if _number(dataset, "Rows", 0) * _number(dataset, "Columns", 0) > MAX_PIXELS:
        raise DataError(f"over {MAX_PIXELS // 1_000_000} megapixels", file=name, remedy="scale the image down")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # padding behind the pixels, and the like
            return pixel_array(dataset, index=index)
    except _FAILURES as error:
        raise _unreadable(name, error) from None


def _picture(dataset: "Dataset", index: int, name: str, window: GreyWindow | None) -> "PillowImage":
    from PIL import Image

    pixels = _pixels(dataset, index, name)
    try:
        kind = str(dataset.PhotometricInterpretation)
        is_colour = pixels.ndim == 3 or "PALETTE" in kind
        shown = _in_colour(dataset, pixels, kind) if is_colour else _in_grey(dataset, pixels, window)
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


def _in_grey(dataset: "Dataset", pixels: Any, window: GreyWindow | None) -> Any:
    """8-bit grey, through the file's own table, else through the window."""
    import numpy as np

    values, inside = _values(dataset, pixels)
    window = window or _stated_window(dataset)
    shown = _through_table(dataset, values) if window is None else _through_window(values, window)
    if str(dataset.PhotometricInterpretation) == "MONOCHROME1":
        shown = 255 - shown
    return np.where(inside, shown, 0).round().astype(np.uint8)


def _values(dataset: "Dataset", pixels: Any) -> tuple[Any, Any]:
    """The values that the modality means, and which of the pixels are no padding."""
    import numpy as np
    from pydicom.pixels.processing import apply_modality_lut

    padding = dataset.get("PixelPaddingValue")
    inside = np.ones(pixels.shape, bool) if padding is None else pixels != padding
    return apply_modality_lut(pixels, dataset).astype(np.float64), inside


def _through_window(values: Any, window: GreyWindow) -> Any:
    import numpy as np

    share = (values - window.low) / (window.high - window.low or 1.0)
    return 255 / (1 + np.exp(-4 * (share - 0.5))) if window.is_sigmoid else np.clip(share, 0, 1) * 255


def _through_table(dataset: "Dataset", values: Any) -> Any:
    """The values through the file's table of greys, whose entries have so many bits."""
    from pydicom.pixels.processing import apply_voi_lut

    bits = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
    return apply_voi_lut(values.astype("int64"), dataset).astype("float64") / (2**bits - 1) * 255


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
