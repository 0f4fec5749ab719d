import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

from calling import call_command
from made_runs import make_run
from medthink.cli.command import run_command
from medthink.cli.results.report import report
from medthink.core.jsonio import read_json, write_json
from medthink.judge.judged import read_judgements
from medthink.judge.judgement import digest_judgements
from medthink.readers.agreement import RaterPair, RunAgreement, write_agreement
from medthink.report.cases import count_wrong
from medthink.report.exports import csv_table, markdown_tables
from medthink.report.guessing import audit_group, points_with_interval, validity_markup
from medthink.report.judged import judged_markup, score_judgements
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries
from medthink.scoring.scores import rate_text
from medthink.stats import rater_agreement
from medthink.stats.estimate import Estimate, Undefined
from small_benchmark import write_benchmark


@pytest.fixture(scope="module")
def page(groups):
    return report_page(groups, [audit_group(group, trains=False) for group in groups], [])


def test_the_policy_allows_no_script_and_no_network(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src 'none'" in policy and "script-src" not in policy and "img-src data:" in policy
    assert "<script" not in page and "http:" not in page and "https:" not in page
    assert not re.search(r"<(link|iframe|object|embed|form|base)\b", page)
    assert all(source.startswith("data:image/jpeg;base64,") for source in re.findall(r'src="([^"]*)"', page))


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    labels = {name for names in re.findall(r'aria-labelledby="([^"]+)"', page) for name in names.split()}
    assert labels <= set(ids)


def test_headings_leave_no_level_out(page):
    levels = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_every_run_has_its_command_and_fingerprints(page, groups):
    for group in groups:
        for entry in group.entries:
            assert f"--out {entry.name}" in page
            assert entry.manifest.fingerprint in page and entry.manifest.condition.digest() in page


def test_no_place_reaches_the_page(bench, tmp_path):
    run = make_run(tmp_path / "again", bench, skill=0.0)
    write_json(run / "run.json", read_json(run / "run.json") | {"model": "replay//home/CANARY/runs/first"})
    groups = group_entries(load_entries([run]))
    page = report_page(groups, [audit_group(group, trains=False) for group in groups], [])
    assert "replay/first" in page and "medthink run bench " in page
    for text in (page, csv_table(groups), markdown_tables(groups)):
        assert "CANARY" not in text and str(tmp_path) not in text and str(bench) not in text


def test_the_same_runs_make_the_same_page(groups, page):
    assert report_page(groups, [audit_group(group, trains=False) for group in groups], []) == page


def test_a_page_of_discussions_alone_has_no_answers(runs):
    groups = group_entries(load_entries([runs["discussion"]]))
    page = report_page(groups, [audit_group(group, trains=False) for group in groups], [])
    assert ">Discussions<" in page and "there is no accuracy" in page
    assert 'id="wrong"' not in page and 'id="validity"' not in page


def test_differences_are_in_points():
    found = Estimate(value=0.042, low=-0.01, high=0.094, level=0.95, n=9, clusters=9, method="")
    assert points_with_interval(found) == "+4.2 (−1.0 to +9.4)"
    assert points_with_interval(Undefined(reason="", n=0)) == "–"
    assert points_with_interval(Undefined(reason="", n=1, value=0.0)) == "+0.0 (no interval)"


def test_a_run_is_set_against_its_own_blind_run(blind):
    audited = audit_group(blind, trains=False)
    rivals = {entry.name: [rival.name for rival in audit.rivals] for entry, audit in audited.audits}
    guessers = ["longest option", "guesser:options", "guesser:question"]
    assert rivals["share-100"] == [*guessers, "own run without images"]
    assert rivals["share-0"] == guessers


def rows_of(markup, name):
    table = re.search(rf'aria-label="{name}"[^>]*>(<table>.*?</table>)', markup)[1]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)[1:]]


def test_the_gain_stands_beside_accuracy_and_is_over_the_strongest(bench, tmp_path):
    made = {"all": {"skill": 0.6}, "blind": {"image_share": 0.0, "skill": 1.0}, "turned": {"option_order": 2}}
    (group,) = group_entries(load_entries([make_run(tmp_path / name, bench, **one) for name, one in made.items()]))
    audited = audit_group(group, trains=False)
    markup = "".join(validity_markup([("Title", audited)]))
    entry, audit = next(pair for pair in audited.audits if pair[0].name == "all")
    rival = next(one for one in audit.rivals if one.name == audit.strongest_rival)
    assert rival.name == "own run without images"
    row = next(row for row in rows_of(markup, "Diagnostic gain by run") if row[0] == entry.label)
    assert row[1:5] == [
        rate_text(entry.accuracy),
        f"{rival.name}: 100.0 %",
        points_with_interval(audit.diagnostic_gain),
        rate_text(rival.on_misses),
    ]
    (same,) = audit.consistency
    told = rows_of(markup, "Consistency when only the form changes")
    assert [entry.label, "option order 2", rate_text(same.same_answer), points_with_interval(same.difference)] in told


def test_a_benchmark_that_has_moved_is_found_by_data_and_another_is_refused(bench, tmp_path, capfd):
    run = make_run(tmp_path / "run", shutil.copytree(bench, tmp_path / "old"))
    moved = (tmp_path / "old").rename(tmp_path / "new")
    page = tmp_path / "r.html"
    assert run_command(["report", str(run), "-o", str(page)]) == 2
    assert "--data" in capfd.readouterr().err and not page.exists()
    other = write_benchmark(tmp_path / "other", 7)
    assert run_command(["report", str(run), "-o", str(page), "--data", str(other)]) == 2
    assert not page.exists()
    assert run_command(["report", str(run), "-o", str(page), "--data", str(moved), "--audit"]) == 0
    assert "majority letter" in page.read_text()


def test_all_groups_together_show_so_many_wrong_cases(groups, monkeypatch):
    monkeypatch.setattr("medthink.report.page.MOST_CASES", 4)
    page = report_page(groups, [audit_group(group, trains=False) for group in groups], [])
    missed = page.split("Missed by the largest number of runs")[1:]
    counts = [
        part.partition("<h4>Cases on which")[0].partition("<h4>Right in")[0].count('class="case"') for part in missed
    ]
    assert len(groups) == 2 and counts == [2, min(2, len(count_wrong(groups[1].lettered)))]


def test_trained_guessers_join_when_asked_for(runs):
    (group,) = group_entries(load_entries([runs["low"]]))
    audited = audit_group(group, trains=True)
    ((_, audit),) = audited.audits
    assert [rival.name for rival in audit.rivals] == ["longest option", "guesser:options", "guesser:question"]
    shown = "".join(validity_markup([("Title", audited)]))
    assert "majority letter" in shown and "raises" in shown and "--audit" not in shown
    assert "--audit" in "".join(validity_markup([("Title", audited._replace(benchmark=None))]))


def test_what_judges_say_is_shown_with_what_is_not_judged(bench, tmp_path):
    run = make_run(tmp_path / "judged", bench, task="twi", words="Opacity in the left lung.")
    assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
    groups = group_entries(load_entries([run]))
    judged = score_judgements(groups[0].entries)
    shown = "".join(judged_markup(judged))
    assert "12 of 12" in shown and "smoke test" in shown and "Wrong steps" in shown
    assert 'id="judged"' in report_page(groups, [audit_group(groups[0], trains=False)], judged)


def test_how_far_a_judge_agrees_with_readers_stands_beside_it(bench, tmp_path):
    run = make_run(tmp_path / "agreed", bench, task="twi", words="Opacity in the left lung.")
    assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
    labels = ["supported", "contradicted"] * 6
    found = rater_agreement(labels, [*labels[:-1], "supported"], rng=np.random.default_rng(0))
    pair = RaterPair(kind="reader–judge", a="reader <1>", b="the judge", aspect="factual", nominal=found, ordered=None)
    made_from = digest_judgements(read_judgements(run))
    agreements = RunAgreement(
        judgements=made_from, raters={}, pairs=(pair,), panels=(), biases=(), checks=(), problems={}
    )
    write_agreement(run, agreements)
    shown = "".join(judged_markup(score_judgements(group_entries(load_entries([run]))[0].entries)))
    assert "of judges with readers" in shown and "reader 1" in shown and "91.7 %" in shown


def test_the_command_writes_everything(runs, tmp_path):
    files = {name: tmp_path / name for name in ("r.html", "o.svg", "t.csv", "t.md", "t.tex")}
    words = [str(runs["low"]), str(runs["high"]), "-o", str(files["r.html"]), "--figure", str(files["o.svg"])]
    words += ["--csv", str(files["t.csv"]), "--markdown", str(files["t.md"]), "--latex", str(files["t.tex"])]
    result = call_command(report, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert all(path.stat().st_size > 100 for path in files.values())


def test_a_strange_figure_and_a_strange_run_are_refused(runs, tmp_path, capfd):
    page = tmp_path / "r.html"
    assert run_command(["report", str(runs["low"]), "-o", str(page), "--figure", "o.gif"]) == 2
    assert run_command(["report", str(tmp_path), "-o", str(page)]) == 2
    assert run_command(["report", str(runs["discussion"]), "-o", str(page), "--figure", str(tmp_path / "o.svg")]) == 2
    assert "no overview" in capfd.readouterr().err
    assert not page.exists()
