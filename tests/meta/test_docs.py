"""Pages lead where they say, and the repository speaks of itself alone."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`((?:src|tests|bench|docs)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_source_files_that_a_page_names_exist(page):
    named = {path for path in SOURCE.findall(page.read_text(encoding="utf-8")) if "NAME" not in path}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_readme_leads_to_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in ROOT.glob("docs/*.md") if f"docs/{page.name}" not in text]
    assert missing == []


def test_no_path_of_a_machine_is_tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    homes = re.compile(rb"(?<![\w/.])/(?:root|home/\w+|Users/\w+)/")
    found = [
        name
        for name in listed.stdout.splitlines()
        if Path(ROOT, name).is_file() and homes.search(Path(ROOT, name).read_bytes())
    ]
    assert found == []


def test_the_glossary_lists_no_word_twice():
    rows = re.findall(r"^\| (\*\*.+?) \|", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]
    assert len(words) > 50
    assert {word for word in words if words.count(word) > 1} == set()
