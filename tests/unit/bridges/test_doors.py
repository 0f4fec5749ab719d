"""Every odd kind of image through every door: all are shown what a person sees, or told that it is no picture."""

import ast
import base64
import csv
import importlib.util
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image as Pillow

from medthink.bridges.targets import TargetOptions, write_target
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Image
from medthink.cases.images.content import as_shown, flatten
from medthink.cases.notebook import thumbnail
from medthink.core.errors import DataError
from medthink.models.inspect.messages import messages_of
from medthink.models.local import _content
from medthink.models.request import Request
from medthink.readers.lists import _write_images
from medthink.runs.calls.asking import encode_image
from medthink.web.app.images import Renditions
from medthink.web.cases.file import _embed
from medthink.web.runs.case_page import ImageCell
from medthink.workflow.condition import Condition
from small_benchmark import write_benchmark

DOCS = Path(__file__).parents[3] / "docs/images.md"
SIDE = 48
# A JPEG that is written anew differs by rounding; anything seen otherwise differs by far more.
CLOSE, CLOSE_OF_THUMBNAILS = 3.0, 8.0


def smooth(channels: int) -> np.ndarray:
    across, down = np.meshgrid(np.linspace(0, 255, SIDE), np.linspace(0, 255, SIDE // 2))
    planes = [across, down, (across + down) / 2, np.where(across > 127, 255, 60)]
    return np.stack(planes[:channels], axis=-1).squeeze().astype(np.uint8)


def saved(picture: Pillow.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def deep(picture: np.ndarray) -> bytes:
    """A PNG of 16 bits a sample, which Pillow cannot write in colour."""
    import struct
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    wide = (picture.astype(">u2") * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    head = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 16, 2 if picture.ndim == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def cut_stream(data: bytes) -> bytes:
    """A PNG of whole chunks whose pixels end in the middle."""
    import struct
    import zlib

    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    half = zlib.decompressobj().decompress(data[at + 4 : at + 4 + size])
    packer = zlib.compressobj()
    content = packer.compress(half[: len(half) // 2]) + packer.flush()
    crc = struct.pack(">I", zlib.crc32(b"IDAT" + content))
    return data[: at - 4] + struct.pack(">I", len(content)) + b"IDAT" + content + crc + data[at + 8 + size :]


def turned() -> Pillow.Exif:
    exif = Pillow.Exif()
    exif[0x0112], exif[0x010E] = 6, "CANARY"
    return exif


GREY, COLOUR = Pillow.fromarray(smooth(1)), Pillow.fromarray(smooth(3))
ALPHA = Pillow.fromarray(smooth(4), "RGBA")
BLACK_AND_WHITE = GREY.point(lambda value: 255 * (value > 99)).convert("1")
FEW = COLOUR.quantize(16, dither=Pillow.Dither.NONE)
JPEG = saved(COLOUR, "JPEG", quality=95)
RIGHT = Pillow.Transpose.ROTATE_270
# Each kind with what a person sees: a picture, or nothing.
KINDS: dict[str, tuple[bytes, Pillow.Image | None]] = {
    "8-bit grey PNG": (saved(GREY, "PNG"), GREY),
    "8-bit colour JPEG": (JPEG, Pillow.open(io.BytesIO(JPEG))),
    "16-bit grey PNG": (deep(smooth(1)), GREY),
    "16-bit colour PNG": (deep(smooth(3)), COLOUR),
    "1-bit PNG": (
        saved(GREY.point(lambda v: 255 * (v > 99)).convert("1"), "PNG"),
        GREY.point(lambda v: 255 * (v > 99)),
    ),
    "palette PNG": (saved(FEW, "PNG"), FEW.convert("RGB")),
    "PNG with alpha": (saved(ALPHA, "PNG"), Pillow.alpha_composite(Pillow.new("RGBA", ALPHA.size, "black"), ALPHA)),
    "CMYK JPEG": (saved(COLOUR.convert("CMYK"), "JPEG", quality=95), COLOUR.convert("CMYK").convert("RGB")),
    "rotated JPEG, EXIF": (saved(COLOUR, "JPEG", quality=95, exif=turned()), COLOUR.transpose(RIGHT)),
    "rotated PNG, EXIF": (saved(COLOUR, "PNG", exif=turned()), COLOUR.transpose(RIGHT)),
    "PNG cut off": (saved(COLOUR, "PNG")[:-300], None),
    "PNG, stream cut": (cut_stream(saved(COLOUR, "PNG")), None),
    "JPEG cut off": (saved(COLOUR, "JPEG")[:-300], None),
}
Door = Callable[[Path, Path], list[Pillow.Image]]


def opened(data: bytes) -> Pillow.Image:
    """What a program sees that decodes the file and no more: another harness, a trainer, a provider."""
    assert b"CANARY" not in data
    picture = Pillow.open(io.BytesIO(data))
    picture.load()
    return picture


def images(bench: Path) -> Iterator[Image]:
    for case in Benchmark.open(bench).split("test"):
        yield from case.question.images


def export(target: str, bench: Path, out: Path, **options: Any) -> Path:
    write_target(target, Benchmark.open(bench), out, TargetOptions(**options), lambda *_: None)
    return out


def through_wire(bench: Path, out: Path) -> list[Pillow.Image]:
    parts = [encode_image(image, Condition()) for image in images(bench)]
    return [opened(base64.b64decode(part.base64)) for part in parts]


def through_local(bench: Path, out: Path) -> list[Pillow.Image]:
    return [_content(encode_image(image, Condition()))["image"] for image in images(bench)]


def through_lmms(bench: Path, out: Path) -> list[Pillow.Image]:
    folder = export("lmms-eval", bench, out / "lmms")
    spec = importlib.util.spec_from_file_location("lmms_utils_of_doors", folder / "utils.py")
    assert spec is not None and spec.loader is not None
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)
    rows = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    assert not any(b"CANARY" in path.read_bytes() for path in (folder / "images").rglob("*.*"))
    return [picture for row in rows for picture in utils.read_images(row)]


def through_vlmevalkit(bench: Path, out: Path) -> list[Pillow.Image]:
    csv.field_size_limit(sys.maxsize)
    with export("vlmevalkit", bench, out / "T.tsv").open(newline="") as stream:
        cells = [row["image"] for row in csv.DictReader(stream, delimiter="\t")]
    found = [one for cell in cells for one in (ast.literal_eval(cell) if cell.startswith("[") else [cell])]
    return [opened(base64.b64decode(one)) for one in found]


def through_trl(bench: Path, out: Path) -> list[Pillow.Image]:
    folder = export("rl", bench, out / "trl", trainer="trl")
    rows = pq.read_table(folder / "train.parquet")["images"].to_pylist()
    return [opened(one["bytes"]) for row in rows for one in row]


def through_files(trainer: str) -> Door:
    def write(bench: Path, out: Path) -> list[Pillow.Image]:
        folder = export("rl", bench, out / trainer, trainer=trainer)
        rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
        paths = [
            path for row in rows for path in row.get("images") or re.findall(r'"image": "([^"]+)"', json.dumps(row))
        ]
        return [opened((folder / path).read_bytes()) for path in paths]

    return write


def through_room(bench: Path, out: Path) -> list[Pillow.Image]:
    return [opened(Renditions(out / "cache").get(image, "full").data) for image in images(bench)]


def through_notebook(bench: Path, out: Path) -> list[Pillow.Image]:
    found = [re.search(r"base64,([^\"]+)", str(thumbnail(image, "x"))) for image in images(bench)]
    if None in found:
        raise DataError("shown as a text")
    return [opened(base64.b64decode(one[1])) for one in found if one is not None]


TRAINERS = ("TRL", "ms-swift", "neutral")


def through_page(bench: Path, out: Path) -> list[Pillow.Image]:
    cells = [_embed(image, ImageCell(id="", number=1, width=0, height=0, is_sent=True)) for image in images(bench)]
    if problems := [cell.problem for cell in cells if cell.problem]:
        raise DataError(problems[0])
    return [opened(base64.b64decode(cell.source.partition(",")[2])) for cell in cells]


def through_list(bench: Path, out: Path) -> list[Pillow.Image]:
    entry = SimpleNamespace(evidence=SimpleNamespace(images=tuple(images(bench))))
    names = _write_images(out, "sheet", entry)  # type: ignore[arg-type]
    return [opened((out / name).read_bytes()) for name in names.split("\n")]


def through_inspect(bench: Path, out: Path) -> list[Pillow.Image]:
    parts = tuple(encode_image(image, Condition()) for image in images(bench))
    (message,) = messages_of(Request(parts=parts))
    found = re.findall(r"base64,([A-Za-z0-9+/=]+)", message.model_dump_json())
    return [opened(base64.b64decode(one)) for one in found]


DOORS: dict[str, Door] = {
    "model": through_wire,
    "local model": through_local,
    "Inspect": through_inspect,
    "lmms-eval": through_lmms,
    "VLMEvalKit": through_vlmevalkit,
    "TRL": through_trl,
    "ms-swift": through_files("ms-swift"),
    "neutral": through_files("neutral"),
    "room": through_room,
    "page": through_page,
    "reading list": through_list,
    "notebook": through_notebook,
}


def bench_of(folder: Path, data: bytes) -> Path:
    """A benchmark whose one test case and first train case have an image of this kind."""
    root = write_benchmark(folder / "bench", cases=1, images=1)
    (root / "images/case00100/i100x1.jpg").write_bytes(data)
    return root


def train_bench_of(folder: Path, data: bytes) -> Path:
    """A benchmark whose first train case has an image of this kind; in both splits it would be refused."""
    root = write_benchmark(folder / "train", cases=1, images=1)
    (root / "images/case00001/i1x1.jpg").write_bytes(data)
    return root


def difference(found: Pillow.Image, wanted: Pillow.Image) -> float:
    shown, due = (np.asarray(one.convert("RGB"), dtype=float) for one in (found, wanted))
    return float(np.abs(shown - due).mean()) if shown.shape == due.shape else 255.0


def outcome(door: str, kind: str, folder: Path) -> str:
    """What a receiver sees of an image of this kind: the same, something close to it, or nothing."""
    data, wanted = KINDS[kind]
    folder.mkdir()
    is_trainer = door in TRAINERS
    bench = (train_bench_of if is_trainer else bench_of)(folder, data)
    try:
        found = DOORS[door](bench, folder)
    except DataError:
        return "refused"
    if is_trainer and len(found) == 3:
        return "left out"
    assert wanted is not None, f"{kind} went through {door}"
    assert found[0].mode in ("L", "RGB"), f"{kind} through {door} is {found[0].mode}"
    away = difference(found[0], wanted)
    limit = CLOSE_OF_THUMBNAILS if door == "notebook" else CLOSE
    assert away <= limit, f"{kind} through {door}: pixels are off by {away:.1f} on average"
    return "same" if away == 0 else "close"


def test_every_kind_through_every_door_shows_what_a_person_sees(tmp_path: Path) -> None:
    rows = ["| " + " | ".join(("kind", *DOORS)) + " |", "|---" * (len(DOORS) + 1) + "|"]
    for number, kind in enumerate(KINDS):
        cells = [outcome(door, kind, tmp_path / f"{number}-{at}") for at, door in enumerate(DOORS)]
        rows.append("| " + " | ".join((kind, *cells)) + " |")
        assert (KINDS[kind][1] is None) == all(cell in ("refused", "left out") for cell in cells), rows[-1]
    table = "\n".join(rows)
    assert table in DOCS.read_text(encoding="utf-8"), f"docs/images.md should have this table:\n{table}"


def test_what_passes_as_it_is_is_eight_bit_and_opaque() -> None:
    untouched = [kind for kind, (data, seen) in KINDS.items() if seen is not None and as_shown(data).data == data]
    assert untouched == ["8-bit grey PNG", "8-bit colour JPEG"]
    for kind, (data, seen) in KINDS.items():
        if seen is not None and data.startswith(b"\x89PNG"):
            assert difference(flatten(opened(as_shown(data).data)), seen) == 0, kind
