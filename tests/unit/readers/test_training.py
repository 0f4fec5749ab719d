"""Training: readers judge sentences whose truth is known, are told why, and pass or do not."""

import json

import pytest

from expert_benchmark import write_expert_benchmark
from medthink.cases.benchmark import Benchmark
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.core.tables import read_table, write_table
from medthink.judge.edits import INVENTED, OPTION
from medthink.judge.exam.make import ExamPlan, make_exam
from medthink.judge.exam.results import REWORDED, UNTOUCHED
from medthink.judge.units import split_source
from medthink.readers.training import draw_training, give_feedback, mark_training


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_expert_benchmark(tmp_path_factory.mktemp("training") / "bench")


@pytest.fixture(scope="module")
def sheets(bench):
    return make_exam(Benchmark.open(bench)["test"], ExamPlan(items=8))


def test_half_of_the_items_are_true_and_each_text_has_at_most_one_change(sheets):
    training = draw_training(sheets, items=10)
    truths = list(training.truths.values())
    assert [sum(one.change.is_true is word for one in truths) for word in (True, False)] == [5, 5]
    edits = [one.change.edit for one in truths if not one.change.is_true]
    assert len(set(edits)) == 5 and edits.count(INVENTED) == 1
    assert {one.change.edit for one in truths if one.change.is_true} == {REWORDED, UNTOUCHED}
    bench_sentences = {sheet.texts[0][a:b] for sheet in sheets for a, b in sheet.spans}
    bench_sentences |= {change.before for sheet in sheets for change in sheet.changes}
    for item in training.items:
        (unit,) = item.units.units
        change = training.truths[item.code].change
        ((_, text),) = item.source.parts.items()
        assert text[unit.start : unit.end] == unit.text
        assert change.before != unit.text
        others = [one.text for one in split_source(item.source).units if one.start != unit.start]
        assert all(other in bench_sentences for other in others)
        assert not any(sheet.change_of(place).is_true is False and sheet.texts[0][a:b] in others
                       for sheet in sheets for place, (a, b) in enumerate(sheet.spans))  # fmt: skip


def test_the_same_seed_draws_the_same_items(sheets):
    codes = [[item.code for item in draw_training(sheets, seed=seed).items] for seed in (0, 0, 1)]
    assert codes[0] == codes[1] != codes[2]
    assert len(set(codes[0])) == 10
    with pytest.raises(DataError, match="no sentences to train on"):
        draw_training([])


def test_an_item_tells_nothing_of_its_truth(sheets, bench):
    training = draw_training(sheets)
    cases = {case.id: case for case in Benchmark.open(bench)["test"]}
    for item in training.items:
        entry = item.entry(cases[item.case])
        assert len(entry.lines) == 1 and entry.lines[0].planted is None
        shown = repr((item, entry.lines, entry.source, entry.units))
        change = training.truths[item.code].change
        assert "edit" not in shown and "is_true" not in shown
        assert not change.before or change.before not in shown


def test_feedback_says_what_is_right_and_why(sheets):
    training = draw_training(sheets, items=24)
    for code, truth in training.truths.items():
        right = give_feedback(code, truth, truth.expected)
        assert right.is_right
        assert not give_feedback(code, truth, None).is_right
        wrong = "contradicted" if truth.expected == "supported" else "supported"
        told = give_feedback(code, truth, wrong)
        assert not told.is_right and told.expected == truth.expected
        if truth.change.edit == INVENTED:
            assert truth.expected == "not described" and "does not mention this finding" in told.why
        elif truth.change.edit == OPTION:
            assert "The diagnosis is a different one" in told.why
        elif truth.change.edit != UNTOUCHED:
            assert truth.change.before in told.why


def test_four_of_five_right_pass_and_what_is_open_is_not_right(sheets):
    truths = draw_training(sheets, items=10).truths
    answers = {code: truth.expected for code, truth in truths.items()}
    assert mark_training(truths, answers).is_passed
    open_ones = dict.fromkeys(list(answers)[:2])
    eight = mark_training(truths, answers | open_ones)
    assert (eight.right, eight.needed, eight.is_passed) == (8, 8, True)
    seven = mark_training(truths, answers | dict.fromkeys(list(answers)[:3]))
    assert (seven.right, seven.is_passed) == (7, False)
    assert not mark_training({}, {}).is_passed


def answer(path, key, reader, *, wrong=0):
    """Fill a training list in, so many items wrongly."""
    rows = [dict(row.cells) for row in read_table(path).rows]
    for place, row in enumerate(rows):
        change = key["readers"][reader][row["unit"]]["change"]
        right = "supported" if change["is_true"] else "contradicted"
        if change["edit"] == INVENTED:
            right = "not described"
        other = "contradicted" if right == "supported" else "supported"
        row["factual"] = other if place < wrong else right
    write_table(path, list(rows[0]), rows)


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_lists_are_filled_in_and_marked(form, bench, tmp_path, capsys):
    out = tmp_path / "training"
    words = ["reading", "training", str(bench), "--split", "test", "--readers", "anna,ben", "--out", str(out)]
    assert run_command([*words, "--format", form]) == 0
    assert not list(out.rglob("*key*")), "the truth lies in the readers' folder"
    key_file = tmp_path / "training-key.json"
    key = json.loads(key_file.read_text())
    tables = [out / f"{name}.{form}" for name in ("anna", "ben")]
    orders = [[row.cells["text"] for row in read_table(path).rows] for path in tables]
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]
    text = "".join(str(row.cells) for path in tables for row in read_table(path).rows)
    assert "Case number" not in text and "edit" not in text and "case00" not in text
    answer(tables[0], key, "anna", wrong=1)
    answer(tables[1], key, "ben", wrong=4)
    capsys.readouterr()
    assert run_command(["reading", "mark", str(tables[0]), "--key", str(key_file)]) == 0
    shown = capsys.readouterr().out
    assert "anna: 9 of 10 right, 8 needed: passed" in shown and "answered:" in shown
    assert run_command(["reading", "mark", *map(str, tables), "--key", str(key_file)]) == 1
    told = capsys.readouterr()
    assert "ben: 6 of 10 right, 8 needed: NOT PASSED" in told.out and "not passed: ben" in told.err
    feedback = [row.cells for row in read_table(out / f"ben-feedback.{form}").rows]
    assert [row["right"] for row in feedback].count("no") == 4
    assert all(row["expected"] and row["why"] and row["text"] for row in feedback)
    assert run_command([*words, "--format", form]) == 2, "lists that may be filled in are not written over"


def test_lists_that_cannot_be_marked_are_refused_or_named(bench, tmp_path, capsys):
    out = tmp_path / "training"
    words = ["reading", "training", str(bench), "--split", "test", "--readers", "anna,ben", "--count", "4"]
    assert run_command([*words, "--out", str(out)]) == 0
    key_file = tmp_path / "training-key.json"
    rows = [dict(row.cells) for name in ("anna", "ben") for row in read_table(out / f"{name}.csv").rows]
    write_table(tmp_path / "both.csv", list(rows[0]), rows)
    assert run_command(["reading", "mark", str(tmp_path / "both.csv"), "--key", str(key_file)]) == 2
    assert "not one reader's training list" in capsys.readouterr().err
    rows = [dict(row.cells) | {"factual": "perhaps"} for row in read_table(out / "anna.csv").rows]
    write_table(out / "anna.csv", list(rows[0]), [*rows, rows[0] | {"unit": "uffffffffffff"}])
    assert run_command(["reading", "mark", str(out / "anna.csv"), "--key", str(key_file)]) == 1
    told = capsys.readouterr().err
    assert "anna.csv:2: factual: 'perhaps' is neither" in told and "anna.csv:6: no such item" in told
    key_file.write_text("{}")
    assert run_command(["reading", "mark", str(out / "anna.csv"), "--key", str(key_file)]) == 2
    assert "not a key of training lists" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["unit", "text", "sheet"])
def test_a_training_list_with_one_column_sorted_is_marked_only_if_its_rows_are_accepted(
    column, bench, tmp_path, capsys
):
    out = tmp_path / "training"
    words = ["reading", "training", str(bench), "--split", "test", "--readers", "anna", "--count", "4"]
    assert run_command([*words, "--out", str(out)]) == 0
    rows = [dict(row.cells) for row in read_table(out / "anna.csv").rows]
    moved = [row[column] for row in rows]
    for row, cell in zip(rows, [*moved[1:], moved[0]], strict=True):
        row[column] = cell
    write_table(out / "anna.csv", list(rows[0]), rows)
    mark = ["reading", "mark", str(out / "anna.csv"), "--key", str(tmp_path / "training-key.json")]
    assert run_command(mark) == 2
    assert "rows do not fit" in capsys.readouterr().err and not (out / "anna-feedback.csv").exists()
    assert run_command([*mark, "--accept", "anna.csv:2-5"]) == 1
    assert (out / "anna-feedback.csv").exists()


def test_training_is_made_from_an_exam_a_run_or_the_train_split(bench, tmp_path, capsys):
    exam = tmp_path / "exam"
    assert run_command(["exam", str(bench), "--judge", "baseline/rules", "--count", "3", "--out", str(exam)]) == 0
    assert run_command(["reading", "training", str(exam), "--readers", "anna", "--out", str(tmp_path / "a")]) == 0
    assert run_command(["reading", "training", str(bench), "--readers", "anna", "--out", str(tmp_path / "b")]) == 2
    # The train split of this benchmark has no sentences that can be edited; nobody falls back to the test cases.
    assert "none of the expert's sentences can be edited" in capsys.readouterr().err
