import io
import re

import msgspec
import PIL.Image
import pytest

from made_runs import make_run
from medthink.report.cases import count_wrong, thumbnail, wrong_cases_markup
from medthink.report.runs import group_entries, load_entries
from medthink.workflow.prediction import TwiSteps
from small_benchmark import write_benchmark


def load(*paths):
    (group,) = group_entries(load_entries(list(paths)))
    return group


def test_what_is_not_shown_is_counted(blind):
    wrong = len(count_wrong(blind.lettered))
    assert wrong > 3
    shown = wrong_cases_markup(blind, 3)
    assert shown.count('class="case"') == 3
    assert f"{wrong} cases of 12 got a wrong answer, or none" in shown
    assert f"the 3 that most runs missed are shown, {wrong - 3} are not" in shown


def test_the_cases_most_runs_got_wrong_come_first(blind):
    shown = re.findall(r"missed by (\d+) of 7 runs", wrong_cases_markup(blind, 99))
    counts = [int(count) for count in shown]
    assert counts == sorted(counts, reverse=True) and len(counts) == len(count_wrong(blind.lettered))


def test_right_and_chosen_options_are_marked(bench, tmp_path):
    group = load(make_run(tmp_path / "wrong", bench, skill=0.0))
    shown = wrong_cases_markup(group, 99)
    assert shown.count("✓ right answer") == 12
    assert shown.count("✗ chosen by made-7b") == 12


def test_steps_stand_beside_the_reference(bench, tmp_path):
    group = load(make_run(tmp_path / "twi", bench, task="twi", skill=0.0, words="The model saw"))
    shown = wrong_cases_markup(group, 1)
    for text in ("Step 1: image 1", "Step 1: image 2", "Step 2: summary", "Step 3: differential"):
        assert text in shown
    assert shown.count("The model saw") == 4
    assert "WITHHELD caption 100.1" in shown and "WITHHELD findings 100" in shown


def reread(group, **changes):
    """The group's first run alone, its predictions changed."""
    entry = group.lettered[0]
    said = [msgspec.structs.replace(one, **changes) for one in entry.material.predictions]
    return group._replace(entries=(entry._replace(material=entry.material._replace(predictions=said)),))


def test_findings_stand_beside_the_image_they_are_about(bench, tmp_path):
    group = load(make_run(tmp_path / "twi", bench, task="twi", skill=0.0))
    steps = TwiSteps(("of two", "of one", "of none"), "", "")
    shown = wrong_cases_markup(reread(group, slots=(2, 1), prediction_twi=steps), 1)
    pairs = re.findall(
        r"<h5>(Step 1: [^<]*)</h5>.*?Model</span><p[^>]*>(.*?)</p>.*?Reference</span><p[^>]*>(.*?)</p>", shown
    )
    assert pairs == [
        ("Step 1: image 2", "of two", "WITHHELD caption 100.2"),
        ("Step 1: image 1", "of one", "WITHHELD caption 100.1"),
        ("Step 1: no such image", "of none", "–"),
    ]


def test_a_letter_without_words_is_said_to_be_one(bench, tmp_path):
    group = load(make_run(tmp_path / "mute", bench, skill=0.0))
    assert "gave a letter without a text" in wrong_cases_markup(reread(group, prediction_rationale=None), 1)
    assert "gave a letter without a text" not in wrong_cases_markup(group, 1)


def test_pictures_beyond_the_most_are_counted(tmp_path):
    bench = write_benchmark(tmp_path / "bench", 1, images=26)
    shown = wrong_cases_markup(load(make_run(tmp_path / "run", bench, skill=0.0)), 1)
    assert shown.count("<img ") == 24 and "2 more images not shown." in shown


def test_a_state_is_shown_with_its_reason(bench, tmp_path):
    group = load(make_run(tmp_path / "silent", bench, silent=12, words="<b>why</b>"))
    shown = wrong_cases_markup(group, 1)
    assert "<b>unparsed</b>: no answer stated: &lt;b&gt;why&lt;/b&gt;" in shown
    assert "No letter from made-7b." in shown


@pytest.mark.parametrize("kind", ["connection", "timeout"])
def test_a_call_that_failed_does_not_tell_where_the_server_is(blind, kind):
    entry = blind.lettered[0]
    lost = [
        msgspec.structs.replace(one, state="failed", prediction=None, detail=f"{kind}: http://10.0.0.7:8000/v1: gone")
        for one in entry.material.predictions
    ]
    entry = entry._replace(material=entry.material._replace(predictions=lost))
    shown = wrong_cases_markup(blind._replace(entries=(entry,)), 99)
    assert f"<b>failed</b>: {kind}</p>" in shown and "10.0.0.7" not in shown


def test_findings_about_another_case_have_no_caption_beside_them(bench, tmp_path):
    group = load(make_run(tmp_path / "swapped", bench, task="twi", skill=0.0, swap_images=True))
    shown = wrong_cases_markup(group, 1)
    first, *_ = re.findall(r"Step 1: image 1 of another case.*?Reference</span>(<p[^>]*>.*?</p>)", shown)
    assert "WITHHELD" not in first


def test_of_several_samples_the_first_wrong_one_is_shown(blind):
    thrice = next(entry for entry in blind.lettered if entry.name == "thrice")
    wrong = [one for one in thrice.scores.cases if one.right < 1]
    assert wrong
    shown = wrong_cases_markup(load(thrice.path), 99)
    for one in wrong:
        assert f"said {', '.join(one.letters)}" in shown
        first = next(letter for letter in one.letters if letter != one.gold)
        own = shown.partition(f"Case number {one.case}<")[2].partition('class="case"')[0]
        assert f"so {first}." in own and own.count("chosen by dice") == len(set(one.letters))


def test_thumbnails_are_small_jpegs(blind):
    image = next(iter(blind.entries[0].material.cases.values())).question.images[0]
    assert re.match(r'<img src="data:image/jpeg;base64,[\w+/=]+" width="24" height="24" alt="Image 1">', thumbnail(
        image, "Image 1"
    ))  # fmt: skip


def test_a_large_picture_is_made_small(blind):
    class Store:
        def read(self, path):
            stream = io.BytesIO()
            PIL.Image.new("L", (400, 200)).save(stream, "PNG")
            return stream.getvalue()

    image = next(iter(blind.entries[0].material.cases.values())).question.images[0]
    assert 'width="176" height="88"' in thumbnail(msgspec.structs.replace(image, store=Store()), "Image 1")


@pytest.mark.parametrize("damage", ["gone", "<script>alert(1)</script>"])
def test_an_image_that_cannot_be_shown_says_why(blind, damage):
    class Store:
        def read(self, path):
            return b"GIF89a" if damage != "gone" else b""

    image = next(iter(blind.entries[0].material.cases.values())).question.images[0]
    shown = thumbnail(msgspec.structs.replace(image, store=Store(), path=damage), "Image 1")
    assert shown.startswith('<span class="absent"') and "neither JPEG nor PNG" in shown and "<script" not in shown


def test_captions_are_called_unseen_only_where_no_model_saw_them(blind, groups):
    cued = next(group for group in groups if group.kind == "expert-cued")
    unseen = "captions that no model saw"
    assert unseen in wrong_cases_markup(blind, 1)
    assert unseen not in wrong_cases_markup(cued, 1)


def test_a_case_without_an_answer_is_not_marked_as_wrong(bench, tmp_path):
    runs = (
        make_run(tmp_path / "silent", bench, silent=12, words="no idea"),
        make_run(tmp_path / "wrong", bench, skill=0.0),
    )
    shown = wrong_cases_markup(load(*runs), 1)
    assert " unparsed</span>" in shown and "unparsed ✗" not in shown
    assert "missed by 2 of 2 runs" in shown and re.search(r" [A-E] ✗</span>", shown)
