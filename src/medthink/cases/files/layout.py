"""The layout of a benchmark's folder: which files are splits, and where the images are.

Every `*.jsonl` and `*.parquet` file of the folder is a split named by its stem, `train` first and `test` last of the
usual names. If a split exists in both formats, the JSON Lines file is read: it is lighter, and its errors name lines.
Images are taken from `images/`, else from `images.zip`, else from the parquet files that embed them.
"""

from pathlib import Path

from medthink.cases.case import ImageStore
from medthink.cases.files.tables import CaseTable, JsonlTable, ParquetTable
from medthink.cases.images.embedded import ParquetImages
from medthink.cases.images.stores import FOLDER, FolderImages, NoImages, ZipImages
from medthink.core.errors import DataError

_USUAL_ORDER = ("train", "validation", "test")
_READERS: dict[str, type[JsonlTable] | type[ParquetTable]] = {".jsonl": JsonlTable, ".parquet": ParquetTable}


def find_tables(path: Path) -> tuple[CaseTable, ...]:
    """The splits at this path: one for a file, one per stem for a folder."""
    if path.is_dir():
        return _tables_of_folder(path)
    if not path.exists():
        raise DataError("no such file or folder", file=path, remedy="check the path")
    if path.suffix not in _READERS:
        raise DataError("not a benchmark file", file=path, remedy="give a folder, or a .jsonl or .parquet file")
    return (_table(path),)


def other_forms(path: Path, tables: tuple[CaseTable, ...]) -> list[tuple[CaseTable, CaseTable]]:
    """The splits of a folder that also exist in the other format, each with that other file."""
    if not path.is_dir():
        return []
    files = split_files(path)
    return [
        (table, _table(file))
        for table in tables
        for file in files
        if file.stem == table.split and file.suffix != table.path.suffix
    ]


def find_images(path: Path, tables: tuple[CaseTable, ...]) -> ImageStore:
    """The store of the images of the benchmark at this path."""
    root = path if path.is_dir() else path.parent
    folder, archive = root / FOLDER, root / f"{FOLDER}.zip"
    if _holds_anything(folder):
        return FolderImages(root)
    if archive.exists():
        return ZipImages(archive)
    beside = (ParquetTable(table.path.with_suffix(".parquet"), table.split) for table in tables)
    embedding = tuple(table.path for table in beside if table.path.is_file() and table.has_embedded_images)
    if not embedding:
        return NoImages(root)
    images = ParquetImages(embedding)
    if len(embedding) > 1:
        images.open()
    return images


def _holds_anything(folder: Path) -> bool:
    """Whether a folder contains anything but a file manager's leftovers."""
    try:
        return any(not path.name.startswith(".") for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=folder, remedy="check its permissions") from None


def split_files(folder: Path) -> list[Path]:
    """The files of a folder that are splits, sorted."""
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in _READERS and not file.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=folder, remedy="check its permissions") from None


def _tables_of_folder(folder: Path) -> tuple[CaseTable, ...]:
    files = split_files(folder)
    if not files:
        raise DataError(
            "this folder contains no split", file=folder, remedy="expected train.jsonl, test.jsonl or .parquet files"
        )
    # ".jsonl" sorts before ".parquet", so that the first file of a stem is the one to read.
    chosen: dict[str, Path] = {}
    for file in files:
        chosen.setdefault(file.stem, file)
    return tuple(_table(chosen[split]) for split in sorted(chosen, key=_order))


def _table(path: Path) -> CaseTable:
    if path.exists() and not (path.is_file() or path.is_dir()):
        # A pipe or a device would be read without end; what is wrong with a folder is said when it is opened.
        raise DataError("not a regular file", file=path, remedy="copy its content into one")
    try:
        path.stem.encode()
    except UnicodeEncodeError:
        # The split's name is written into reports and runs, which are UTF-8.
        raise DataError("the name is not valid Unicode", file=ascii(path.name), remedy="rename the file") from None
    return _READERS[path.suffix](path, path.stem)


def _order(split: str) -> tuple[int, str]:
    return (_USUAL_ORDER.index(split) if split in _USUAL_ORDER else len(_USUAL_ORDER), split)
