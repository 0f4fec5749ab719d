"""A run in which nothing was answered has no score: every command says so, with the reason and what to do."""

import pytest

from medthink.cli.command import run_command
from medthink.runs.run import Run
from processes import Server, finish, medthink
from small_benchmark import write_benchmark
from web_pages import open_viewer, slug


@pytest.fixture
def unanswered(tmp_path):
    """A run whose server refuses every request for its schema, stopped after five cases."""
    bench = write_benchmark(tmp_path / "bench", cases=9)
    server = Server("--script", ",".join(["400"] * 40))
    words = ("run", bench, "--model", "server/m", "--base-url", f"{server.url}/v1", "--no-preflight")
    code, _, said = finish(medthink(*words, "--concurrency", 1, "-o", tmp_path / "run"))
    assert code == 3, said
    yield tmp_path, words, server
    server.stop()


def test_a_run_that_answered_nothing_has_no_score_and_says_why(unanswered, capsys):
    root, _, _ = unanswered
    run = str(root / "run")
    for words in (
        ["score", run],
        ["compare", run, run],
        ["report", run, "-o", str(root / "page.html")],
        ["submission", "pack", run, "-o", str(root / "s.jsonl")],
        ["board", "add", run, "--data", str(root / "bench"), "--team", "T", "--store", str(root / "b.sqlite")],
    ):
        capsys.readouterr()
        assert run_command(words) == 2, words
        said = capsys.readouterr().err
        assert "nothing was answered, so there is no score: " in said, words
        assert "the first 5 cases failed in the same way" in said and "the same --out" in said, words
    assert run_command(["status", run]) == 0
    assert "the first 5 cases failed" in capsys.readouterr().out
    viewer, client = open_viewer(root / "run", root)
    with client:
        page = client.get(f"/runs/{slug(viewer, 'run')}").text
    assert "Accuracy" not in page and "Nothing was answered" in page and "the first 5 cases failed" in page


def test_a_run_that_answered_nothing_may_be_replaced_in_its_folder(unanswered):
    root, _, _ = unanswered
    server = Server()
    words = ("run", root / "bench", "--model", "server/m", "--base-url", f"{server.url}/v1", "--no-schema")
    code, _, said = finish(medthink(*words, "-o", root / "run"))
    server.stop()
    assert code == 0, said
    manifest = Run.open(root / "run").manifest
    assert manifest.progress.states == {"ok": 9} and manifest.condition.use_schema is False
    assert manifest.progress.calls == {"done": 9}
