"""The head of the page: one figure, every pair of runs, cases by runs, and the script that may be asked for."""

import base64
import hashlib
import re

import pytest

from made_runs import make_run
from medthink.cli.command import run_command
from medthink.report.cases import (
    case_matrix_markup,
    choose_cases,
    count_wrong,
    order_by_difficulty,
    other_cases_markup,
    wrong_cases_markup,
)
from medthink.report.guessing import audit_group
from medthink.report.headline import headline_markup
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries
from medthink.report.summary import summarise_group
from medthink.report.tables import pairwise_markup


@pytest.fixture(scope="module")
def audited(blind):
    return audit_group(blind, trains=False)


@pytest.fixture(scope="module")
def all_audited(groups):
    return [audit_group(group, trains=False) for group in groups]


@pytest.fixture(scope="module")
def first_screen(blind, audited):
    return "".join(headline_markup(blind, audited))


def test_every_run_has_accuracy_rival_gain_and_cost_in_one_row(blind, audited, first_screen):
    rows = re.findall(r"<tr>(<th scope=\"row\">.*?)</tr>", first_screen)
    assert len(rows) == len(blind.lettered)
    for row, entry, (_, audit) in zip(rows, blind.lettered, audited.audits, strict=True):
        rival = audit.strongest
        assert entry.label in row and rival.name in row
        assert f"{entry.accuracy.value * 100:.1f} %" in row and f"{rival.accuracy.value * 100:.1f} %" in row
        assert f"{audit.diagnostic_gain.value * 100:+.1f}".replace("-", "−") in row
        assert row.count('class="dot"') == row.count('class="rival"') == row.count('class="interval"') == 1


def test_a_gain_over_guessing_only_is_marked(blind, audited, first_screen):
    rows = dict(zip((entry.name for entry in blind.lettered), first_screen.split("<tr>")[2:], strict=True))
    assert "no image-free run given" not in rows["share-100"]  # its own run without images is here
    assert "no image-free run given" in rows["low"]
    sentence = summarise_group(blind, {entry.label: audit for entry, audit in audited.audits})[1]
    assert "strongest rival" in sentence and "guessing gets 20 %" not in sentence


def test_all_that_is_drawn_lies_on_the_axis(first_screen):
    places = [float(x) for x in re.findall(r'(?:cx|x1|x2)="([\d.]+)"', first_screen)]
    assert places and all(0 <= place <= 260 for place in places)


def test_embedded_baselines_are_folded_away(bench, tmp_path):
    runs = [make_run(tmp_path / "model", bench, model="openai/big")]
    runs.append(make_run(tmp_path / "guess", bench, model="baseline/longest", skill=0.2))
    (group,) = group_entries(load_entries(runs))
    shown = "".join(headline_markup(group, audit_group(group, trains=False)))
    before, _, after = shown.partition("Embedded baselines (1)")
    assert "big" in before and "baseline/longest" not in before and "baseline/longest" in after
    (alone,) = group_entries(load_entries(runs[1:]))
    assert "<details" not in "".join(headline_markup(alone, audit_group(alone, trains=False)))


def test_the_matrix_of_pairs_says_difference_and_verdict(blind):
    shown = pairwise_markup(blind)
    cells = re.findall(r'<td class="(better|worse|same)"[^>]*>([+−][\d.]+) <span class="mark">(.)</span>', shown)
    runs = len(blind.lettered)
    assert len(cells) == runs * (runs - 1)
    different = sum(pair.is_different for pair in blind.ranking.pairs)
    assert sum(kind == "better" for kind, _, _ in cells) == sum(kind == "worse" for kind, _, _ in cells) == different
    assert all(mark == {"better": "▲", "worse": "▼", "same": "≈"}[kind] for kind, _, mark in cells)
    assert "−0.0" not in shown


def test_one_run_has_no_pairs(runs):
    (group,) = group_entries(load_entries([runs["low"]]))
    assert pairwise_markup(group) is None


def test_the_matrix_of_cases_leads_to_the_cases_shown(blind):
    shown = choose_cases(blind, 3)
    matrix = case_matrix_markup(blind, shown.all, "group-1")
    folds = wrong_cases_markup(blind, 3, "group-1") + "".join(other_cases_markup(blind, shown, "group-1"))
    links, ids = re.findall(r'href="#([^"]+)"', matrix), re.findall(r'<details[^>]* id="([^"]+)"', folds)
    assert sorted(links) == sorted(ids) and len(ids) == len(shown.all)
    assert matrix.count("<g>") == len(blind.lettered)
    wrong = sum(one.right == 0 for entry in blind.lettered for one in entry.scores.cases)
    filled = "".join(re.findall(r'<path class="wrong" d="([^"]+)"', matrix))
    assert filled.count("M") == wrong


def test_cases_stand_by_difficulty_and_are_chosen_of_three_kinds(blind):
    wrong, order = count_wrong(blind.lettered), order_by_difficulty(blind)
    right = {
        case: sum(one.right for e in blind.lettered for one in e.scores.cases if one.case == case) for case in order
    }
    assert [right[case] for case in order] == sorted(right.values())
    shown = choose_cases(blind, 2)
    assert len(set(shown.all)) == len(shown.all)
    assert all(0 < wrong[case] < len(blind.lettered) for case in shown.divided) and shown.divided
    assert all(case not in wrong for case in shown.right)


def test_right_cases_are_shown_too(bench, tmp_path):
    (group,) = group_entries(load_entries([make_run(tmp_path / "good", bench, skill=1.0)]))
    shown = choose_cases(group, 8)
    assert shown.missed == shown.divided == () and len(shown.right) == 4
    markup = "".join(other_cases_markup(group, shown, "g"))
    assert "Right in every run" in markup and markup.count('class="case"') == 4


def test_outputs_stand_side_by_side_with_the_expert(bench, tmp_path):
    made = (("a", "Words of a"), ("b", "Words of b"))
    runs = [make_run(tmp_path / n, bench, model=f"openai/{n}", task="twi", skill=0.0, words=w) for n, w in made]
    (group,) = group_entries(load_entries(runs))
    shown = wrong_cases_markup(group, 1)
    table = re.search(r'<table class="outputs">.*?</table>', shown)[0]
    row = next(row for row in table.split("<tr>") if "Step 2: summary" in row)
    assert re.search("WITHHELD findings .*Words of a.*Words of b", row)
    assert table.count('class="letter-mark bad"') == 2


def test_the_head_names_benchmark_fingerprint_and_date(groups, all_audited):
    page = report_page(groups, all_audited, [])
    head = page.partition("</header>")[0]
    manifest = groups[0].entries[0].manifest
    for text in (groups[0].benchmark, manifest.fingerprint[:12], manifest.created_at[:10], "12 cases"):
        assert text in head


def test_the_script_comes_only_when_asked_for_and_is_the_only_one_allowed(groups, all_audited):
    page = report_page(groups, all_audited, [], interactive=True)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert f"script-src 'sha256-{digest}'" in policy and "unsafe-eval" not in policy
    assert "fetch" not in script and "http" not in script and "innerHTML" not in script
    assert "<script" not in report_page(groups, all_audited, [])


def test_the_command_takes_interactive(runs, tmp_path):
    assert run_command(["report", str(runs["low"]), "-o", str(tmp_path / "r.html"), "--interactive"]) == 0
    assert "<script>" in (tmp_path / "r.html").read_text()


def test_what_only_the_embedded_judge_says_is_folded_away(bench, tmp_path):
    from medthink.report.judged import score_judgements

    run = make_run(tmp_path / "judged", bench, task="twi", words="Opacity in the left lung.")
    assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
    groups = group_entries(load_entries([run]))
    page = report_page(groups, [], score_judgements(groups[0].entries))
    assert "<summary>Only the embedded judge was asked" in page
