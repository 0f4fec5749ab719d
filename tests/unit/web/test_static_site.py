"""`medthink board build`: a site that any web server can serve, the same bytes from the same store."""

import csv
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from made_runs import make_run
from medthink.board.checking import LoadedBenchmark
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.submissions import list_submissions
from medthink.cli.command import run_command
from medthink.store.engine import Store, store_url
from small_benchmark import write_benchmark


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("board")
    bench = write_benchmark(root / "bench", cases=6)
    opened = Store(store_url(root / "board.sqlite"))
    held = LoadedBenchmark.open(bench, "test")
    for name, skill in (("good", 0.9), ("poor", 0.2)):
        run = make_run(root / name, bench, model=f"server/{name}", skill=skill)
        add_to_board(opened, held, DirectSubmission(source=run, team="=HYPERLINK(1)"), actor="test")
    opened.close()
    return root / "board.sqlite"


@pytest.fixture
def site(store: Path, tmp_path: Path) -> Path:
    assert run_command(["board", "build", "-o", str(tmp_path / "site"), "--store", str(store)]) == 0
    return tmp_path / "site"


def contents(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_every_link_leads_to_a_file_of_the_site(site: Path):
    for page in site.rglob("*.html"):
        text = page.read_text()
        for target in re.findall(r'(?:href|src)="([^"#]*)', text):
            assert not target.startswith(("/", "http", "?")), (page, target)
            path = page.parent / urlsplit(target).path
            assert (path / "index.html").is_file() if path.is_dir() else path.is_file(), (page, target)


def test_the_pages_say_what_the_served_ones_say(site: Path):
    text = (site / "index.html").read_text()
    assert text.index("server/good") < text.index("server/poor") and "59 results" in text
    assert "<form" not in text and "aria-sort" not in text
    assert len(list((site / "models").glob("*/index.html"))) == 2
    assert "not distinguishable" in (site / "compare/1-2/index.html").read_text()
    assert "server/poor" in (site / "all/index.html").read_text()


def test_the_same_store_gives_the_same_bytes(site: Path, store: Path, tmp_path: Path):
    before = contents(site)
    times = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}
    assert run_command(["board", "build", "-o", str(site), "--store", str(store)]) == 0
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert run_command(["board", "build", "-o", str(tmp_path / "again"), "--store", str(store)]) == 0
    assert contents(tmp_path / "again") == before


def test_tokens_and_gold_are_nowhere(site: Path, store: Path):
    opened = Store(store_url(store))
    tokens = [one.token for one in list_submissions(opened)]
    opened.close()
    everything = b"".join(data for name, data in contents(site).items() if not name.startswith("static/"))
    assert tokens and not [token for token in tokens if token.encode() in everything]
    assert b"gold" not in everything and b"WITHHELD" not in everything


def test_data_stands_beside_the_pages(site: Path):
    rows = json.loads((site / "leaderboard.json").read_bytes())["rows"]
    assert [row["model"] for row in rows] == ["server/good", "server/poor"]
    table = list(csv.DictReader((site / "leaderboard.csv").read_text().splitlines()))
    assert table[0]["team"] == "'=HYPERLINK(1)" and float(table[0]["accuracy"]) == pytest.approx(rows[0]["accuracy"])


def test_a_page_that_is_no_longer_there_is_removed(site: Path, store: Path):
    stray = site / "models/99/index.html"
    stray.parent.mkdir()
    stray.write_text("old")
    assert run_command(["board", "build", "-o", str(site), "--store", str(store)]) == 0
    assert not stray.parent.exists()


def test_a_folder_of_something_else_is_refused(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "thesis.tex").write_text("")
    assert run_command(["board", "build", "-o", str(tmp_path), "--store", str(store)]) == 2
    assert "not a board's site" in capsys.readouterr().err
