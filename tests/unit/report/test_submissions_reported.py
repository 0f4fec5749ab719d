"""Submission files in a report, beside runs and alone."""

from medthink.cli.command import run_command
from medthink.core.jsonio import read_jsonl, write_jsonl
from medthink.report.guessing import audit_group
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries


def submission(path, run):
    rows = [line.value for line in read_jsonl(run / "predictions.jsonl")]
    write_jsonl(path, [{"case": row["case"], "prediction": row["prediction"]} for row in rows])
    return path


def test_a_file_stands_among_the_runs_of_the_same_cases(runs, bench, tmp_path):
    file = submission(tmp_path / "theirs.jsonl", runs["low"])
    (group,) = group_entries(load_entries([runs["low"], runs["high"], file], bench))
    by_name = {entry.name: entry for entry in group.entries}
    theirs = next(entry for entry in group.entries if entry.is_submission)
    assert len(group.entries) == 3 and theirs.accuracy == by_name["low"].accuracy
    page = report_page([group], [audit_group(group, bench, trains=False)], [])
    assert "theirs" in page and "made elsewhere" in page and "--out theirs" not in page


def test_files_alone_make_a_report(runs, bench, tmp_path, capfd):
    file = submission(tmp_path / "theirs.jsonl", runs["low"])
    page = tmp_path / "r.html"
    assert run_command(["report", str(file), "-o", str(page)]) == 2
    assert "--data" in capfd.readouterr().err and not page.exists()
    assert run_command(["report", str(file), "-o", str(page), "--data", str(bench)]) == 0
    assert "(texts)" in page.read_text().partition("</header>")[0]
