"""What judges say on the page: every score, and beside every number how far readers bear it out."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec.structs import replace

from judge_server import JudgeServer, judge_well
from judged_run import SECTIONS, make_discussions, make_run
from made_runs import make_run as make_steps
from medthink.cli.command import run_command
from medthink.judge.exam.results import ExamResult, KindGrades
from medthink.judge.judged import read_judgements
from medthink.judge.judgement import digest_judgements
from medthink.judge.rubric import SENTENCE_LABELS
from medthink.readers.agreement import RaterPair, RunAgreement, write_agreement
from medthink.report.figures.judged import discussion_drawing, profile_drawing
from medthink.report.figures.style import draw_markup
from medthink.report.guessing import audit_group
from medthink.report.judged import judged_markup, score_judgements
from medthink.report.judged_tables import (
    NO_PANEL,
    NO_READER,
    NO_SHARED,
    OUTDATED,
    JudgeRow,
    coverage_table,
    kind_tables,
)
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries
from medthink.stats import ordered_agreement, rater_agreement
from medthink.stats.estimate import Estimate, Undefined

SOUND = "The lesion is large. So the diagnosis follows."
FLAWED = "The lesion is large. The margin is WRONG here. So the diagnosis follows."
MUTE = "The lesion is MUTE. So it is."
CASES = 6
SEAT = "server/good · with images"


def judge_but_mute(nonce, data, outside):
    if any("MUTE" in unit["text"] for unit in data.get("units", [])):
        return json.dumps({"call": nonce, "verdicts": []})
    return judge_well(nonce, data, outside)


def judge(run, *judges):
    with JudgeServer(judge_but_mute) as server:
        words = [word for name in judges for word in ("--judge", name)]
        assert run_command(["judge", str(run), *words, "--base-url", server.url]) in (0, 1)
    return run


@pytest.fixture(scope="module")
def steps_run(tmp_path_factory):
    rationales = [SOUND, FLAWED, FLAWED, FLAWED, FLAWED, MUTE]
    return judge(make_run(tmp_path_factory.mktemp("s"), cases=CASES, rationales=rationales), "server/good")


@pytest.fixture(scope="module")
def discussion_run(tmp_path_factory):
    return judge(make_discussions(tmp_path_factory.mktemp("d"), cases=4), "server/good")


def score(run):
    groups = group_entries(load_entries([run]))
    return groups, score_judgements(groups[0].entries)


def shown(run):
    return "".join(judged_markup(score(run)[1]))


def seat_of(run, kind, agreements=None):
    (one, *_) = score(run)[1][0].scores[kind]
    return JudgeRow("run", one.label, one, agreements)


def rows_under(markup, name):
    """The cells of the table of that name, row by row."""
    table = re.search(rf'aria-label="{re.escape(name)}"[^>]*>(<table>.*?</table>)', markup, re.DOTALL)[1]
    rows = ElementTree.fromstring(table).find("tbody").findall("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def pair(aspect, *, a="anna", b=SEAT, place=("", ""), labels=(True, False), is_ordered=False, is_turned=False):
    first = list(labels) * 6
    second = first[::-1] if is_turned else [*first[:-1], first[0]]
    rng = np.random.default_rng(0)
    ordered = ordered_agreement(first, second, categories=(0, 1, 2), rng=rng) if is_ordered else None
    found = rater_agreement(first, second, rng=rng)
    return RaterPair(
        kind="reader–judge", a=a, b=b, aspect=aspect, slicing=place[0], value=place[1], nominal=found, ordered=ordered
    )


def agreed(*pairs, run=None):
    made_from = digest_judgements(read_judgements(run)) if run else ""
    return RunAgreement(judgements=made_from, raters={}, pairs=pairs, panels=(), biases=(), checks=(), problems={})


def test_the_error_profile_has_every_type_among_critical_and_other_steps(steps_run):
    drawing = profile_drawing(seat_of(steps_run, "steps"), 1)
    assert len(drawing.table.rows) == 4 * 2
    cells = {(row[0], row[1]): row[2:5] for row in drawing.table.rows}
    assert cells["image understanding", "critical steps"][0] == "4"
    assert cells["image understanding", "critical steps"][1].startswith("100.0 % (")
    assert cells["image understanding", "other steps"][1].startswith("0.0 % (")
    svg = draw_markup(drawing, prefix="judged")
    assert "critical steps (n = 4)" in svg and "other steps (n = 10)" in svg and "medical knowledge" in svg


def test_right_and_wrong_answers_are_told_apart_by_their_reasons(steps_run):
    rows = rows_under(shown(steps_run), "Right for the right reasons, judged")
    one = score(steps_run)[1][0].scores["steps"][0]
    expected = [(one.sound_if_right.every_step, "right"), (one.sound_if_wrong.every_step, "wrong")]
    assert [row[4] for row in rows] == [f"{measured.n} {word}" for measured, word in expected]
    assert sum(measured.n for measured, _ in expected) == CASES - 1
    for row, (measured, _) in zip(rows, expected, strict=True):
        assert row[5].startswith("–" if measured.value is None else f"{measured.value * 100:.1f} %")


def test_the_first_wrong_step_is_counted(steps_run):
    ((_, _, _, _, *cells),) = rows_under(shown(steps_run), "First error of the reasoning, judged")
    assert cells[:6] == ["1", "0", "4", "0", "0", "0"] and cells[6].startswith("66.7 %")


def test_what_is_unjudged_has_its_reason_and_makes_scores_incomplete(steps_run, discussion_run):
    ((_, _, what, judged, _, why, _, verdict),) = rows_under(shown(steps_run), "Judged and unjudged, judged")
    assert (what, judged, why) == ("steps", "5 of 6 (incomplete)", "1 wrong ids")
    assert verdict.startswith("incomplete")
    assert rows_under(shown(discussion_run), "Judged and unjudged, judged")[0][-1] == "complete"


def test_discussions_have_five_dimensions_and_six_sections(discussion_run):
    drawing = discussion_drawing(seat_of(discussion_run, "discussion"), 1)
    assert [row[2][:4] for row in drawing.table.rows[:5]] == ["1.00"] * 5
    assert {row[3] for row in drawing.table.rows[:5]} == {"0 with 0, 4 with 1, 0 with 2"}
    sections = drawing.table.rows[5:]
    assert [row[0] for row in sections[:: len(SENTENCE_LABELS)]] == [name.replace("_", " ") for name in SECTIONS]
    assert all(row[2].startswith("50.0 %") for row in sections if row[1] in ("correct", "incorrect"))
    svg = draw_markup(drawing, prefix="judged")
    assert "transferable learning" in svg and "teaching points" in svg and ">50.0<" in svg


@pytest.mark.parametrize("name", ["steps_run", "discussion_run"])
def test_every_slice_of_the_cases_has_a_row(name, request):
    run = request.getfixturevalue(name)
    markup = shown(run)
    title = re.search(r'aria-label="(By slice: [^"]+)"', markup)[1]
    rows = rows_under(markup, title)
    assert all(row[1].endswith(" (small)") for row in rows)
    kinds = {row[0].partition(":")[0] for row in rows}
    assert {"modality", "sub-modality", "images per case", "longitudinal", "ICD chapter"} <= kinds


def rate(value):
    return Estimate(value=value, low=value, high=value, level=0.95, n=50, clusters=50, method="")


def cells(table):
    """The row of each seat by its columns, shares without their interval."""
    return [dict(zip(table.columns, (cell.partition(" (")[0] for cell in row), strict=True)) for row in table.rows]


def table_of(what, heading, seats):
    return kind_tables(what, seats)[heading][1]


def seated(one, **changes):
    return [JudgeRow(one.run, one.judge, replace(one.scores, **changes), None)]


def test_every_number_of_the_steps_stands_under_its_name(steps_run):
    one = seat_of(steps_run, "steps")
    (row,) = cells(
        table_of(
            "steps",
            "Steps of the reasoning",
            seated(one, errors=rate(0.1), critical=rate(0.2), critical_errors=rate(0.3)),
        )
    )
    assert (row["Wrong steps"], row["Critical steps"], row["Wrong critical steps"]) == ("10.0 %", "20.0 %", "30.0 %")
    sound = [
        replace(one.scores.sound_if_right, every_step=rate(a), no_wrong_step=rate(b))
        for a, b in ((0.4, 0.5), (0.6, 0.7))
    ]
    rows = cells(
        table_of("steps", "Right for the right reasons", seated(one, sound_if_right=sound[0], sound_if_wrong=sound[1]))
    )
    assert [(row["Answers"], row["Every step supported"], row["No step contradicted"]) for row in rows] == [
        ("50 right", "40.0 %", "50.0 %"),
        ("50 wrong", "60.0 %", "70.0 %"),
    ]
    found = replace(one.scores.first_errors, by_step={1: 2, 4: 3, 5: 4, 9: 5}, without=6)
    (row,) = cells(table_of("steps", "First error of the reasoning", seated(one, first_errors=found)))
    assert (row["No error"], row["Step 1"], row["Step 4"], row["Step 5 or later"]) == ("6", "2", "3", "9")
    coverage = replace(one.scores.coverage, unjudged={"wrong_ids": 1}, missing=2)
    (row,) = cells(coverage_table([("steps", seated(one, coverage=coverage)[0])]))
    assert row["Why not"] == "1 wrong ids, 2 never asked"


def test_every_number_of_discussions_and_findings_stands_under_its_name(discussion_run, bench, tmp_path):
    labels = {"correct": rate(0.1), "incorrect": rate(0.2), "not described": rate(0.3), "unverifiable": rate(0.4)}
    (row,) = cells(
        table_of(
            "discussion", "Discussions", seated(seat_of(discussion_run, "discussion"), labels=labels, total=rate(4.0))
        )
    )
    assert (row["Correct"], row["Incorrect"], row["Education value (0–10)"]) == ("10.0 %", "20.0 %", "4.0")
    run = make_steps(tmp_path / "twi", bench, task="twi", words="Opacity in the left lung.")
    assert run_command(["judge", str(run), "--judge", "baseline/rules", "--kinds", "findings"]) == 0
    images, summary = (
        {"supported": rate(a), "contradicted": rate(b), "not described": rate(0), "unverifiable": rate(0)}
        for a, b in ((0.1, 0.2), (0.3, 0.4))
    )
    (row,) = cells(
        table_of("findings", "Findings and summaries", seated(seat_of(run, "findings"), images=images, summary=summary))
    )
    assert [row[f"Images: {word}"] for word in ("supported", "contradicted")] == ["10.0 %", "20.0 %"]
    assert [row[f"Summary: {word}"] for word in ("supported", "contradicted")] == ["30.0 %", "40.0 %"]


@pytest.mark.parametrize("name", ["steps_run", "discussion_run"])
def test_no_judged_number_stands_without_its_agreement(name, request):
    markup = shown(request.getfixturevalue(name))
    tables = re.findall(r'<div class="box" role="region" aria-label="([^"]+)"', markup)
    assert len(tables) >= 4
    for table in tables:
        if not table.startswith(("Judged and unjudged", "Agreement between judges")):
            assert all(NO_READER in row for row in rows_under(markup, table)), table
    for caption in re.findall(r"<figcaption>(.*?)</figcaption>", markup):
        assert NO_READER in caption


def test_measured_agreement_stands_there_instead(steps_run):
    pairs = [pair("factual"), pair("critical"), pair("factual", place=("modality", "CT"))]
    one = seat_of(steps_run, "steps", agreed(*pairs))
    assert re.fullmatch(r"κ 0\.83 \(.+–.+\), n\s=\s12 with anna", one.agreement("factual"))
    assert one.agreement("factual", "critical").count("κ 0.83") == 2
    assert one.agreement("factual", "support").endswith("support: not measured")
    assert one.slice_agreement("factual", "modality", "CT").startswith("κ 0.83")
    assert one.slice_agreement("factual", "modality", "MRI").startswith("all cases: κ 0.83")


def test_the_majority_of_readers_goes_before_single_ones(steps_run):
    pairs = [pair("factual"), pair("factual", a="readers together")]
    assert "anna" not in seat_of(steps_run, "steps", agreed(*pairs)).agreement("factual")
    both = agreed(pair("factual"), pair("factual", a="ben"))
    found = seat_of(steps_run, "steps", both).agreement("factual")
    assert "with anna" in found and "with ben" in found


def test_scores_have_a_weighted_kappa(discussion_run):
    found = agreed(pair("education", labels=(0, 1, 2), is_ordered=True))
    assert seat_of(discussion_run, "discussion", found).agreement("education").startswith("weighted κ 0.")


def test_kappa_is_never_left_alone_where_it_misleads_or_is_undefined(steps_run):
    uneven = agreed(pair("factual", labels=(True,) * 8 + (False,), is_turned=True), pair("critical", labels=(True,)))
    one = seat_of(steps_run, "steps", uneven)
    assert "AC1" in one.agreement("factual")
    assert "κ undefined (" in one.agreement("critical")


def examined(run, *, finds):
    """The judged runs, with an exam in which the judge finds this share of errors."""
    none = Undefined(reason="not asked", n=0)
    marks = KindGrades(
        asked=1, judged=1, sensitivity=rate(finds), found={}, accepted={}, same_again=none, kappa_again=none,
        same_reversed=none, guesser=none,
    )  # fmt: skip
    (judged,) = score(run)[1]
    seat = judged.scores.kinds["steps"][0].seat
    exam = ExamResult(
        judge=seat.judge, setting=seat.setting, exam="e", benchmark="b", prompts={"steps": seat.prompt}, models=(),
        is_smoke_test=False, kinds={"steps": marks}, pairs=None,
    )  # fmt: skip
    return [judged._replace(exams=(exam,))]


def test_the_numbers_of_a_judge_below_the_floor_are_grey_and_in_no_figure(steps_run):
    good, bad = ("".join(judged_markup(examined(steps_run, finds=finds))) for finds in (0.99, 0.5))
    assert "passed: " in good and "uncounted" not in good and "Error profile: " in good
    assert "BELOW THE FLOOR" in bad and "Error profile: " not in bad
    table = re.search(r'aria-label="[^"]*, judged"[^>]*>(<table>.*?</table>)', bad, re.DOTALL)[1]
    classes = [cell.get("class") for cell in ElementTree.fromstring(table).find("tbody").iter("td")]
    assert "number uncounted" in classes and "number" not in classes and "words" in classes


def test_another_judge_s_agreement_is_not_borrowed(steps_run):
    one = seat_of(steps_run, "steps", agreed(pair("factual", b="server/other · with images")))
    assert one.agreement("factual") == NO_SHARED == one.slice_agreement("factual", "modality", "CT")
    assert seat_of(steps_run, "steps", agreed()).agreement("factual") == NO_READER


def test_a_panel_s_numbers_are_not_vouched_for_by_its_members(tmp_path):
    run = judge(make_run(tmp_path, rationales=[FLAWED] * 3), "server/good", "server/other")
    write_agreement(run, agreed(pair("support"), run=run))
    rows = rows_under(shown(run), "Steps of the reasoning, judged")
    assert {row[1].partition(" ·")[0]: row[2] for row in rows}["panel"] == NO_PANEL
    assert "κ 0.83" in rows[[row[1] for row in rows].index(SEAT)][2]
    assert rows_under(shown(run), "Agreement between judges, judged")[0][2].startswith("0.0 %")


def test_names_of_readers_and_judges_stay_text(tmp_path):
    name = "<img src=x onerror=alert(1)>"
    run = judge(make_run(tmp_path, rationales=[FLAWED] * 3), f"server/{name}")
    write_agreement(run, agreed(pair("factual", a=name, b=f"server/{name} · with images"), run=run))
    markup = shown(run)
    assert "<img" not in markup and markup.count("&lt;img src=x onerror=alert(1)&gt;") > 5


def test_no_reader_s_name_reaches_the_page(tmp_path):
    run = judge(make_run(tmp_path, rationales=[FLAWED] * 3), "server/good")
    places = [("", ""), ("modality", "CT")]
    pairs = [pair("factual", a=f"CANARY-{name}", place=place) for name in ("anna", "ben") for place in places]
    write_agreement(run, agreed(*pairs, run=run))
    groups, judged = score(run)
    page = report_page(groups, [audit_group(group, trains=False) for group in groups], judged)
    assert "CANARY" not in page
    assert "with reader 1" in page and "with reader 2" in page
    told = rows_under(page, "Agreement of judges with readers, judged")
    assert [row[2] for row in told] == ["reader 1", "reader 2"]


def test_agreement_measured_before_the_run_was_judged_again_is_not_shown(tmp_path):
    run = judge(make_run(tmp_path, rationales=[FLAWED] * 3), "server/good")
    write_agreement(run, agreed(pair("support"), run=run))
    assert "κ 0.83" in shown(run) and OUTDATED not in shown(run)
    judge(run, "server/good", "server/other")
    assert "κ 0.83" not in shown(run) and OUTDATED in shown(run)
    write_agreement(run, agreed(pair("support"), run=run))
    assert "κ 0.83" in shown(run) and OUTDATED not in shown(run)


def test_the_page_is_the_same_bytes_twice_with_every_id_once(steps_run):
    def page():
        groups, judged = score(steps_run)
        return report_page(groups, [audit_group(group, trains=False) for group in groups], judged)

    first = page()
    assert first == page()
    ids = re.findall(r' id="([^"]+)"', first)
    assert len(ids) == len(set(ids)) and "judged-errors-1" in ids
