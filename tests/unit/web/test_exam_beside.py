"""Judged numbers in the viewer and on the board show their judge's exam, in the words of the report."""

from pathlib import Path

import msgspec
import pytest

from judged_run import make_run
from medthink.board.judged_profile import JudgedProfile
from medthink.judge.exam.results import (
    BELOW_FLOOR,
    EXAMS_FILE,
    NO_EXAM,
    NO_SETTING_EXAM,
    REWORDED,
    UNTOUCHED,
    ExamResult,
    KindGrades,
    describe_exam,
    keep_results,
)
from medthink.judge.judged import read_judgements
from medthink.judge.judgement import JudgeConfig
from medthink.judge.session import JudgeSpec, judge_run
from medthink.report.judged import judged_markup, score_judgements
from medthink.report.runs import load_entries
from medthink.stats.estimate import Estimate, Undefined
from medthink.web.board.model import make_profile_part
from web_pages import open_viewer, slug


def rate(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.01, high=1.0, level=0.95, n=320, clusters=320, method="made")


def exam_of(seat: JudgeConfig, found: float) -> ExamResult:
    marks = KindGrades(
        asked=100, judged=100, sensitivity=rate(found), found={"side": rate(found)},
        accepted={UNTOUCHED: rate(0.97), REWORDED: rate(0.97)}, same_again=rate(1), kappa_again=rate(1),
        same_reversed=rate(1), guesser=rate(0.5),
    )  # fmt: skip
    return ExamResult(
        judge=seat.judge, setting=seat.setting, exam="e", benchmark="b", prompts={"steps": seat.prompt}, models=(),
        is_smoke_test=True, kinds={"steps": marks}, pairs=None,
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = make_run(tmp_path)
    judge_run(JudgeSpec(run=made, judges=("baseline/rules",), what=("steps",), splitter="sentences"))
    return made


@pytest.mark.parametrize(("found", "words"), [(0.5, f"{BELOW_FLOOR}: finds 50.0 %"), (0.95, "passed: finds 95.0 %")])
def test_the_viewer_says_of_verdicts_how_their_judge_did_as_the_report_does(run: Path, found: float, words: str):
    viewer, client = open_viewer(run.parent, run.parent / "cache")
    case = f"/runs/{slug(viewer, 'run')}/cases/{read_judgements(run)[0].case}"
    places = (f"/runs/{slug(viewer, 'run')}", case)
    for place in places:
        assert NO_EXAM in client.get(place).text, place
    keep_results(run / EXAMS_FILE, [exam_of(read_judgements(run)[0].seat, found)])
    report = "".join(judged_markup(score_judgements(load_entries([run]))))
    assert words in report
    for place in places:
        page = client.get(place).text
        assert words in page and NO_EXAM not in page, place
        assert ('class="warn-text"' in page or "small warn-text" in page) is (BELOW_FLOOR in words), place
    viewer.close()


def test_an_exam_under_another_setting_is_not_that_of_the_judge(run: Path):
    seat = read_judgements(run)[0].seat
    result = exam_of(seat, 0.95)
    other = msgspec.structs.replace(result, setting=msgspec.structs.replace(result.setting, effort="high"))
    assert describe_exam([other], seat, "steps") == NO_SETTING_EXAM
    assert describe_exam([result], seat, "discussion") == "not examined in discussion"


def test_the_boards_profile_marks_a_judge_below_the_floor():
    nothing = Undefined(reason="none", n=0)
    profile = JudgedProfile(
        judge="server/j", is_smoke_test=False, steps=9, judged=rate(1), wrong_steps=rate(0.2),
        wrong_critical_steps=rate(0.2), sound_if_right=nothing, error_types={}, exam=f"{BELOW_FLOOR}: finds 50.0 %",
    )  # fmt: skip
    part = make_profile_part(profile)
    assert part.is_below_floor and part.exam == profile.exam
    assert not msgspec.structs.replace(profile, exam="").is_below_floor
