import os
import shutil

import pytest

from made_runs import make_run
from medthink.core.errors import UsageError
from medthink.core.jsonio import read_json, write_json
from medthink.report.runs import group_entries, load_entries
from medthink.runs.manifest import RunSpec
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from small_benchmark import picture, write_benchmark


def names(group):
    return {entry.name for entry in group.entries}


def test_an_expert_cued_run_is_in_a_group_of_its_own(groups):
    assert [group.kind for group in groups] == ["unaided", "expert-cued"]
    assert names(groups[1]) == {"cued"}
    assert "cued" not in {entry.name for entry, _ in groups[0].ranked()}


def test_runs_are_ranked_best_first_and_those_without_letters_last(blind):
    assert blind.entries[-1].name == "discussion"
    values = [entry.accuracy.value for entry in blind.lettered]
    assert values == sorted(values, reverse=True)
    assert {entry.name for entry, _ in blind.ranked()} == names(blind) - {"discussion"}
    for entry, place in blind.ranked():
        assert place.mean.value == pytest.approx(entry.accuracy.value)


def test_one_run_is_not_ranked(groups):
    assert groups[1].ranking is None


def test_another_benchmark_or_selection_makes_another_group(runs, tmp_path):
    other = write_benchmark(tmp_path / "other", 7)
    strange = make_run(tmp_path / "strange", other)
    found = group_entries(load_entries([runs["low"], strange, runs["high"]]))
    assert [names(group) for group in found] == [{"low", "high"}, {"strange"}]
    assert [group.n_cases for group in found] == [12, 7]


def test_the_same_numbers_with_other_words_pictures_or_fewer_cases_make_another_group(bench, tmp_path):
    other = {name: shutil.copytree(bench, tmp_path / name) for name in ("words", "pictures")}
    rows = other["words"] / "test.jsonl"
    rows.write_text(rows.read_text().replace("with pain", "with fever"))
    (other["pictures"] / "images/case00100/i100x1.jpg").write_bytes(picture(1))
    fewer = RunSpec(
        benchmark=bench, model="baseline/random", out=tmp_path / "few", selection=Selection(split="test", limit=5)
    )
    run_session(fewer)
    paths = [make_run(tmp_path / f"run-{name}", place) for name, place in (other | {"own": bench}).items()]
    found = group_entries(load_entries([*paths, fewer.out]))
    assert sorted(map(sorted, map(names, found))) == [["few"], ["run-own"], ["run-pictures"], ["run-words"]]


def test_runs_that_saw_less_are_set_apart_from_those_that_saw_all(bench, tmp_path):
    made = {
        "all": {},
        "part": {"image_share": 0.5},
        "no-history": {"show_history": False},
        "swap": {"swap_images": True},
    }
    paths = [make_run(tmp_path / name, bench, **condition) for name, condition in made.items()]
    (group,) = group_entries(load_entries(paths))
    assert [entry.name for entry in group.unhindered] == ["all"]
    (hindered,) = group_entries(load_entries(paths[1:]))
    assert hindered.unhindered == hindered.lettered and len(hindered.lettered) == 3


def test_one_case_ranks_nobody(bench, tmp_path):
    for name in ("random", "longest"):
        run_session(
            RunSpec(
                benchmark=bench,
                model=f"baseline/{name}",
                out=tmp_path / name,
                selection=Selection(split="test", limit=1),
            )
        )
    (group,) = group_entries(load_entries([tmp_path / "random", tmp_path / "longest"]))
    assert group.ranking is None and len(group.lettered) == 2


def test_no_two_runs_of_a_page_have_one_label(bench, tmp_path):
    paths = [make_run(tmp_path / name, bench, **options) for name, options in {
        "blind": {"task": "twi"}, "cued": {"task": "twi", "findings": "expert", "summary": "expert"},
    }.items()]  # fmt: skip
    labels = [entry.label for group in group_entries(load_entries(paths)) for entry in group.entries]
    assert sorted(labels) == ["made-7b (blind)", "made-7b (cued)"]


def test_the_order_of_runs_changes_nothing(runs):
    paths = [runs[name] for name in ("low", "high", "small", "share-100")]
    first, second = (group_entries(load_entries(order)) for order in (paths, paths[::-1]))
    assert [entry.name for entry in first[0].entries] == [entry.name for entry in second[0].entries]
    assert first[0].ranking == second[0].ranking


@pytest.fixture
def scored(runs, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(runs["low"], copy)
    load_entries([copy])
    return copy


def poison(run):
    """Change the accuracy in scores.json, to see whether the file is believed."""
    found = read_json(run / "scores.json")
    found["answers"]["accuracy"]["value"] = 0.123
    write_json(run / "scores.json", found)


def accuracy(run):
    (entry,) = load_entries([run])
    return entry.accuracy.value


def test_scores_that_are_still_true_are_not_made_again(scored):
    poison(scored)
    assert accuracy(scored) == 0.123


def test_scores_older_than_the_predictions_are_made_again(scored):
    poison(scored)
    later = (scored / "scores.json").stat().st_mtime_ns + 1_000_000
    os.utime(scored / "predictions.jsonl", ns=(later, later))
    assert accuracy(scored) != 0.123


@pytest.mark.parametrize(("field", "value"), [("scorer", "0"), ("package", "0.0.0"), ("format", 99), ("answers", 3)])
def test_scores_of_another_scorer_or_shape_are_made_again(scored, field, value):
    poison(scored)
    write_json(scored / "scores.json", read_json(scored / "scores.json") | {field: value})
    assert accuracy(scored) != 0.123


def test_the_same_run_twice_is_refused(runs):
    with pytest.raises(UsageError, match="twice"):
        load_entries([runs["low"], runs["low"] / ".." / "low"])
