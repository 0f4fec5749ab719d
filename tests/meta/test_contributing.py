"""The table of additions in CONTRIBUTING.md names files and registries that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| [a-z]", line)
]


def test_every_addition_has_its_row() -> None:
    named = [row.split("|")[1].strip() for row in ROWS if "to add a" not in row]
    assert named == [
        "provider", "text metric", "condition", "task", "figure", "command", "check", "prompt", "slice",
        "kind of judging", "stage of curation",
    ]  # fmt: skip


def test_the_files_that_are_named_exist() -> None:
    paths = {name.split("NAME")[0] for row in ROWS for name in re.findall(r"`((?:src|docs|tests)/[^`]+)`", row)}
    assert len(paths) > 15
    assert [name for name in sorted(paths) if not (ROOT / name).exists()] == []


def test_the_registries_that_are_named_stand_in_their_files() -> None:
    found = [pair for row in ROWS for pair in re.findall(r"`(_?[A-Za-z]+)` in `(src/[^`]+)`", row)]
    assert len(found) >= 8
    for name, path in found:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE), (name, path)


def test_no_addition_touches_more_than_two_code_files_besides_its_registry() -> None:
    for row in ROWS:
        _, name, write, listed, *_ = row.split("|")
        if name.strip() == "to add a":
            continue
        files = set(re.findall(r"`(src/[^`]+)`", write))
        assert len(files) <= 2, (name, files)
        assert len(set(re.findall(r"`(src/[^`]+)`", listed))) <= 1, (name, listed)
