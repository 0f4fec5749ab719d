"""docs/architecture.md agrees with the import contract, the folders and the code."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/medthink"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)


def test_the_rooms_are_those_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    contract = [(len(layers) - at, re.findall(r"\w+", layer)) for at, layer in enumerate(layers)]
    expected = {(level, room) for level, rooms in contract for room in rooms}
    assert {(int(level), room) for level, room, _ in ROOMS} == expected
    assert [int(level) for level, *_ in ROOMS] == sorted((level for level, _ in expected), reverse=True)


def test_every_room_names_its_folders() -> None:
    for _, room, contents in ROOMS:
        folders = {path.parent.name for path in PACKAGE.glob(f"{room}/*/__init__.py")}
        named = set(re.findall(r"`(\w+)`", contents))
        assert folders <= named, (room, folders - named)


def test_what_the_page_points_to_exists() -> None:
    paths = {path.partition("NAME")[0] for path in re.findall(r"`((?:src|tests|bench)/[^`]+)`", PAGE)}
    assert len(paths) > 12
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    for name, path in re.findall(r"`(\w+)` in `(src/[^`]+)`", PAGE):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *(async def |def |class )?{name}\b", text, re.MULTILINE), (name, path)
