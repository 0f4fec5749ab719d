"""Readers' tables: every row is used or named, lists are blind, and agreement is measured on what both have read."""

import csv
import json
from fractions import Fraction

import msgspec
import pytest
from openpyxl import load_workbook

from judge_server import JudgeServer, judge_well
from judged_run import RATIONALE, make_discussions, make_run, rewrite
from medthink.cli.command import run_command
from medthink.core.errors import DataError, UsageError
from medthink.core.tables import escape_formula, read_table, unescape_formula, write_table
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import read_factual, read_types
from medthink.judge.rubric import load_rubric
from medthink.judge.session import JudgeSpec, judge_run
from medthink.judge.units import read_units
from medthink.readers.agreement import measure_agreement, read_agreement, write_agreement
from medthink.readers.assignment import PLANTED, ReadingPlan, assign_lists, sheets_of_run
from medthink.readers.lists import COLUMNS, key_path, read_key, write_lists
from medthink.readers.readings import import_tables, parse_case, readable_items
from medthink.runs.manifest import RunSpec
from medthink.runs.run import Run
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from small_benchmark import picture, write_benchmark

TEXT = "There is a mass in the left lung. The margin is WRONG here. So the diagnosis follows."


@pytest.fixture
def run(tmp_path):
    return judged(make_run(tmp_path, cases=4, rationales=[TEXT] * 4))


def judged(run):
    """The run, judged by a good judge: what is not WRONG is supported."""
    with JudgeServer(judge_well) as server:
        judge_run(JudgeSpec(run=run, judges=("server/a",), base_urls=(server.url,), splitter="sentences"))
    return run


def ids(run, case: int = 100) -> tuple[str, ...]:
    return read_units(run)[case, 0, "steps"].ids


def named(labels) -> list[str] | None:
    """The error types that a rater named; None where that is not known."""
    found = [name for name, label in labels.items() if name.startswith("error: ") and label]
    return [name.removeprefix("error: ") for name in found] if labels.get("error: reasoning") is not None else None


def write(path, columns, *rows):
    write_table(path, columns, [dict(zip(columns, row, strict=True)) for row in rows])
    return path


def test_our_own_form_is_read_by_unit_id(run, tmp_path):
    first, second, third = ids(run)
    table = write(
        tmp_path / "t.csv",
        ("reader", "unit", "factual", "critical", "error_types", "note"),
        ("anna", first, "supported", "no", "", "fine"),
        ("anna", second, "contradicted", "yes", "Image Understanding Err; reasoning", ""),
        ("anna", third, "unsure", "", "", ""),
    )
    found = import_tables([table], read_units(run))
    assert [(one.unit, one.labels["factual"], one.labels["critical"], named(one.labels)) for one in found.readings] == [
        (first, True, False, []),
        (second, False, True, ["image understanding", "reasoning"]),
    ]
    assert [(one.kind, one.row) for one in found.problems] == [("unlabelled", 4)]


def test_the_published_form_is_read_by_case_and_words(run, tmp_path):
    steps = [unit.text for unit in read_units(run)[100, 0, "steps"].units]
    columns = ("title", "step1", "human_factual1", "human_critical1", "human_error_types1", "step2", "human_factual2")
    table = write(
        tmp_path / "reader_b.csv",
        columns,
        ("Case number 100", steps[0], "TRUE", "FALSE", "", steps[1], "0"),
        ("Case number 101", steps[0], "True", "", "", "Something else.", "False"),
        ("Case number 999", steps[0], "True", "", "", "", ""),
    )
    found = import_tables([table], read_units(run))
    assert [(one.reader, one.case, one.labels["factual"]) for one in found.readings] == [
        ("reader_b", 100, True),
        ("reader_b", 100, False),
        ("reader_b", 101, True),
    ]
    assert [(one.kind, one.row) for one in found.problems] == [("unmatched", 3), ("unmatched", 4)]


def test_the_published_form_may_name_case_reader_and_unit_in_other_ways(tmp_path):
    run = make_run(tmp_path, rationales=["It grows.  It grows.", RATIONALE, RATIONALE])
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",)))
    second = ids(run)[1]
    columns = ("case", "annotator", "step1", "unit1", "human_factual1", "step2", "human_factual2")
    table = write(
        tmp_path / "t.csv",
        columns,
        ("100", "anna", "It grows.", second, "yes", "It grows.", "no"),
        ("101", "ben", "The  lesion\nis large.", "", "yes", "", ""),
    )
    found = import_tables([table], read_units(run))
    assert [(one.reader, one.unit) for one in found.readings] == [("anna", second), ("ben", ids(run, 101)[0])]
    # Two steps have these words, and nothing says which is meant.
    assert [(one.kind, "several steps" in one.detail) for one in found.problems] == [("unmatched", True)]


def test_no_row_is_dropped_in_silence(run, tmp_path):
    first, second, third = ids(run)
    other = ids(run, 101)[0]
    table = write(
        tmp_path / "t.csv",
        ("reader", "unit", "factual", "critical", "error_types"),
        ("anna", first, "yes", "no", ""),
        ("anna", first, "yes", "no", ""),
        ("anna", second, "yes", "", ""),
        ("anna", second, "no", "", ""),
        ("anna", third, "yes", "", "reasoning"),
        ("anna", other, "perhaps", "", ""),
        ("anna", "000000000000", "yes", "", ""),
        ("anna", ids(run, 102)[0], "no", "", "bad luck"),
        ("ben", second, "no", "", ""),
    )
    found = import_tables([table], read_units(run))
    assert [(one.reader, one.unit) for one in found.readings] == [("anna", first), ("ben", second)]
    assert [(one.row, one.kind) for one in found.problems] == [
        (3, "duplicate"),
        (4, "contradictory"),
        (5, "contradictory"),
        (6, "contradictory"),
        (7, "invalid"),
        (8, "unmatched"),
        (9, "invalid"),
    ]
    assert len(found.readings) + len(found.problems) == 9


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl"])
def test_every_format_gives_back_what_was_written(form, tmp_path):
    texts = [
        "=1+1",
        "+a",
        "-b",
        "@SUM(A1)",
        "\tx",
        "'quoted",
        "''",
        "＝x",
        ' "=x',
        "plain",
        "a;b,c\nd",
        "µ – é 见",
        "'=x",
        "|x",
    ]
    rows = [{"unit": f"u{k}", "text": text, "score": k} for k, text in enumerate(texts)]
    path = tmp_path / f"t.{form}"
    write_table(path, ("unit", "text", "score"), rows)
    assert [row.cells["text"] for row in read_table(path).rows] == texts
    assert [row.cells["score"] for row in read_table(path).rows] == [str(k) for k in range(len(texts))]
    assert next(row.number for row in read_table(path).rows) == (1 if form == "jsonl" else 2)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "＝1", "＋1", '"=1', " =1", "'=1", "|cmd", "%x"]
)
def test_no_cell_is_a_formula(text, tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, ("text", "score"), [{"text": text, "score": 2}])
    with path.open(encoding="utf-8-sig", newline="") as stream:
        cell, score = list(csv.reader(stream))[1]
    assert cell.startswith("'")
    assert score == "2"
    assert unescape_formula(escape_formula(text)) == text
    write_table(tmp_path / "t.xlsx", ("text", "score"), [{"text": text, "score": 2}])
    sheet = load_workbook(tmp_path / "t.xlsx").active
    assert sheet["A2"].data_type == "s"
    assert sheet["B2"].value == 2


def test_tables_of_spreadsheets_in_other_countries_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffreader;unit;factual\r\nanna;u1;ja\r\n;;\r\n".encode())
    (row,) = read_table(path).rows
    assert row.cells == {"reader": "anna", "unit": "u1", "factual": "ja"}


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"sep=;\r\nreader;unit;note\r\nanna;u1;a,b\r\n", "a,b"),
        ("reader;unit;note\r\nanna;u1;größer\r\n".encode("cp1252"), "größer"),
        (b'"sep=,"\r\nReader,Unit,NOTE\r\nanna,u1,x\r\n', "x"),
    ],
)
def test_separators_encodings_and_capitals_of_spreadsheets_are_read(data, note, tmp_path):
    (tmp_path / "t.csv").write_bytes(data)
    (row,) = read_table(tmp_path / "t.csv").rows
    assert row.cells == {"reader": "anna", "unit": "u1", "note": note}
    assert row.number == (3 if data.lstrip(b'"').startswith(b"sep") else 2)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("t.csv", b"a,a\r\n1,2\r\n", "occurs twice"),
        ("t.csv", b"unit,text\r\nu,x,more\r\n", "more cells than columns"),
        ("t.csv", b"unit\r\n", "no rows"),
        ("t.csv", b"\xff\xfeu\x00n\x00", "neither UTF-8 nor Windows-1252"),
        ("t.csv", b'unit\r\n"open', "not CSV"),
        ("t.csv", b"name,age\r\na,1\r\n", "neither a column"),
        ("t.xlsx", b"PK nothing", "not an XLSX"),
        ("t.jsonl", b"[1]\n", "not an object"),
    ],
)
def test_a_bad_table_is_one_clear_error(name, data, problem, run, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=problem) as caught:
        import_tables([path], read_units(run))
    assert name in str(caught.value)


def test_a_table_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("medthink.core.tables.MAX_BYTES", 20)
    (tmp_path / "t.csv").write_text("unit,factual\nu1,yes\n")
    assert len(read_table(tmp_path / "t.csv").rows) == 1
    (tmp_path / "t.csv").write_text("unit,factual\nu1,yes\nu2,yes\n")
    with pytest.raises(DataError, match="larger than 20 bytes"):
        read_table(tmp_path / "t.csv")


def test_cells_without_end_are_problems_like_any_other(run, tmp_path):
    unit = ids(run)[0]
    deep = write(tmp_path / "deep.csv", ("unit", "factual", "error_types"), (unit, "no", "[" * 100_000))
    columns = ("case", "step1", "human_factual1")
    long = write(tmp_path / "long.csv", columns, ("9" * 5000, "words", "yes"))
    imported = import_tables([deep], read_units(run))
    assert [problem.kind for problem in imported.problems] == ["invalid"]
    assert imported.readings == ()
    with pytest.raises(DataError, match="no row of the table belongs to this run"):
        import_tables([long], read_units(run))
    with pytest.raises(DataError, match="neither a column"):
        import_tables([write(tmp_path / "far.csv", ("case", "step" + "1" * 5000), ("1", "words"))], read_units(run))


def test_words_are_read_and_never_guessed():
    assert read_factual("Supported") == (True, "supported")
    assert read_factual("Unverifiable") == (False, "unverifiable")
    assert read_factual("FALSE") == (False, None)
    assert read_factual(" ") == (None, None)
    assert read_types("Reasoning Err, Medical Knowledge Err") == ("reasoning", "medical_knowledge")
    assert read_types("['Clinical Scenario Err']") == ("clinical_scenario",)
    assert read_types("none") == ()
    assert KINDS["discussion"].read_cells("education", {"score": "2"})["education"] == 2
    assert KINDS["discussion"].read_cells("sentence", {"label": "Correct"}) == {"sentence": "correct"}
    for what, form, cells in [
        ("steps", "step", {"factual": "maybe"}),
        ("discussion", "education", {"score": "3"}),
        ("discussion", "sentence", {"label": "yes"}),
    ]:
        with pytest.raises(ValueError, match=":"):
            KINDS[what].read_cells(form, cells)
    assert [parse_case(text) for text in ("Case number 12", "00012", "12", "Case twelve")] == [12, 12, 12, None]


def test_types_that_were_not_named_are_none_of_an_unsupported_step_and_not_known_of_a_wrong_one():
    words = ("supported", "unverifiable", "contradicted", "no", "")
    labels = [KINDS["steps"].read_cells("step", {"factual": word}) for word in words]
    assert [named(one) for one in labels] == [[], [], None, None, None]


def test_of_a_statement_yes_and_no_say_too_little_to_compare():
    findings = KINDS["findings"]
    assert findings.read_cells("statement", {"factual": "Unverifiable"}) == {"statement": "unverifiable"}
    for word in ("yes", "no"):
        with pytest.raises(ValueError, match="is not one of supported, contradicted, not described, unverifiable"):
            findings.read_cells("statement", {"factual": word})


def test_reading_lists_are_blind_shuffled_double_read_and_the_same_for_the_same_seed(run, tmp_path):
    sheets = sheets_of_run(run)
    plan = ReadingPlan(readers=("anna", "ben", "cleo"), seed=3, again_share=0.5, planted_share=0.5)
    key = write_lists(tmp_path / "a", sheets, plan)
    write_lists(tmp_path / "b", list(reversed(sheets)), plan)
    for path in (tmp_path / "a").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    real = [code for code in key.codes.values() if code.planted is None and not code.is_again]
    readers_of = {unit: {code.reader for code in real if code.unit == unit} for unit in ids(run)}
    assert all(len(readers) == 2 for readers in readers_of.values())
    assert any(code.is_again for code in key.codes.values())
    assert {code.planted for code in key.codes.values()} >= {None, True}
    hidden = ["baseline", "case001", "Case number", *ids(run), *(sheet.run for sheet in sheets), "planted", "i100x1"]
    for name in ("anna.csv", "ben.csv", "cleo.csv"):
        text = (tmp_path / "a" / name).read_text()
        assert not [word for word in hidden if word in text]
    sheets_seen = {
        row.cells["sheet"] for name in ("anna", "ben", "cleo") for row in read_table(tmp_path / f"a/{name}.csv").rows
    }
    assert {path.name.rsplit("-", 1)[0] for path in (tmp_path / "a/images").iterdir()} == sheets_seen
    assert key.runs == {sheets[0].run: "baseline/random"}


def test_what_is_read_again_comes_in_the_second_half(run):
    sheets = sheets_of_run(run)
    for seed in range(40):
        plan = ReadingPlan(readers=("anna",), per_sheet=1, seed=seed, again_share=0.3, planted_share=0)
        entries = assign_lists(sheets, plan)["anna"]
        places = [place for place, entry in enumerate(entries) if entry.is_again]
        assert places and min(places) >= (len(entries) - len(places)) // 2
        for place in places:
            assert any(one.lines == entries[place].lines for one in entries[:place]), "read again before the first time"


def test_as_many_sheets_are_drawn_read_twice_and_planted_as_the_plan_says(run):
    sheets = sheets_of_run(run)
    entries = assign_lists(sheets, ReadingPlan(readers=("anna", "ben")))["anna"]
    # A tenth and a twentieth of four sheets are one each: a list without a check would check nothing.
    assert (len(entries), sum(one.is_again for one in entries)) == (6, 1)
    assert sum(one.run == "planted" for one in entries) == 1
    none = ReadingPlan(readers=("anna", "ben"), sheets=3, again_share=0, planted_share=0)
    drawn = [assign_lists(sheets, msgspec.structs.replace(none, seed=seed))["anna"] for seed in range(6)]
    assert all(len({entry.case.id for entry in entries}) == len(entries) == 3 for entries in drawn)
    assert {entry.case.id for entries in drawn for entry in entries} == {100, 101, 102, 103}, "not drawn by the seed"


def test_every_reader_has_an_order_of_one_s_own(run):
    plan = ReadingPlan(readers=("anna", "ben"), again_share=0, planted_share=0)
    orders = set()
    for seed in range(6):
        lists = assign_lists(sheets_of_run(run), msgspec.structs.replace(plan, seed=seed))
        orders |= {(reader, *(entry.case.id for entry in entries)) for reader, entries in lists.items()}
    assert len({order[1:] for order in orders if order[0] == "anna"}) > 2
    assert {order[1:] for order in orders if order[0] == "anna"} != {o[1:] for o in orders if o[0] == "ben"}


def test_a_planted_check_is_the_judged_text_with_one_statement_edited(run, tmp_path):
    key = write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("a", "b"), planted_share=1))
    rows = read_table(tmp_path / "a/a.csv").rows
    sheets = {row.cells["sheet"]: [] for row in rows}
    for row in rows:
        sheets[row.cells["sheet"]].append((row.cells, key.codes[row.cells["unit"]]))
    planted = [found for found in sheets.values() if found[0][1].run == "planted"]
    edits = {"There is a mass in the right lung.": False, "There is no mass in the left lung.": False}
    truths = []
    texts = {row.cells["sheet"]: row.cells["whole_text"] for row in read_table(tmp_path / "a/a-cases.csv").rows}
    for found in planted:
        assert len(found) == 3, "as many rows as the text it was made from"
        assert {cells["kind"] for cells, _ in found} == {"step"}
        ((cells, code),) = [pair for pair in found if pair[1].planted is not None]
        assert code.planted == edits.get(cells["text"], cells["text"] == "A mass is seen in the left lung.")
        assert f"«1» {cells['text']} «/1» «2» The margin" in texts[cells["sheet"]]
        truths.append(code.planted)
    assert sorted(truths) == [False, False, True, True], "as many twins as edits"


def test_planted_checks_are_made_of_supported_statements_only(tmp_path):
    run = make_run(tmp_path, cases=2, rationales=["There is a WRONG mass in the left lung."] * 2)
    key = write_lists(tmp_path / "a", sheets_of_run(judged(run)), ReadingPlan(readers=("a", "b"), planted_share=1))
    assert not [code for code in key.codes.values() if code.planted is not None]


def test_planted_checks_of_discussions_are_sentences(tmp_path):
    run = judged(make_discussions(tmp_path, sections={"background": "It shows a mass. It is WRONG."}))
    key = write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("a", "b"), planted_share=1))
    assert {code.form for code in key.codes.values() if code.planted is not None} == {"sentence"}
    fill(tmp_path / "a", "a", key, "csv")
    result, problems = measure_agreement(
        run, [tmp_path / "a/a.csv"], Run.open(run).cases(), slices={}, key=key_path(tmp_path / "a")
    )
    assert problems == ()
    assert (result.checks[0].right.value, result.checks[0].right.n) == (1.0, 2)


def test_the_key_is_never_in_the_readers_folder(run, tmp_path):
    write_lists(tmp_path / "lists", sheets_of_run(run), ReadingPlan(readers=("anna", "ben")))
    assert (tmp_path / "lists-key.json").is_file()
    assert not [path for path in (tmp_path / "lists").rglob("*") if "key" in path.name]


@pytest.mark.parametrize("key", [None, "other"])
def test_a_wrong_or_missing_key_is_refused_and_keeps_the_old_agreement(run, tmp_path, key, capsys):
    for name in ("a", "other"):
        made = write_lists(tmp_path / name, sheets_of_run(run), ReadingPlan(readers=("anna", "ben"), seed=len(name)))
        fill(tmp_path / name, "anna", made, "csv")
    table = str(tmp_path / "a/anna.csv")
    assert run_command(["agreement", str(run), table, "--key", str(key_path(tmp_path / "a"))]) == 0
    before = (run / "agreement.json").read_bytes()
    words = ["--key", str(key_path(tmp_path / key))] if key else []
    assert run_command(["agreement", str(run), table, *words]) == 2
    assert "no row of the table belongs to this run" in capsys.readouterr().err
    assert (run / "agreement.json").read_bytes() == before


def test_lists_that_nobody_filled_in_are_refused_and_keep_the_old_agreement(run, tmp_path, capsys):
    write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("anna", "ben")))
    assert run_command(["agreement", str(run)]) == 0
    before = (run / "agreement.json").read_bytes()
    assert (
        run_command(["agreement", str(run), str(tmp_path / "a/anna.csv"), "--key", str(key_path(tmp_path / "a"))]) == 2
    )
    assert "the tables are empty" in capsys.readouterr().err
    assert (run / "agreement.json").read_bytes() == before


def test_labels_without_a_step_and_columns_that_nobody_reads_are_listed(run, tmp_path):
    columns = ("case", "step1", "human_factual1", "step2", "human_factual2", "human_critical2", "factaul")
    first = read_units(run)[100, 0, "steps"].units[0].text
    table = write(tmp_path / "t.csv", columns, ("100", first, "yes", "", "no", "yes", "no"))
    found = import_tables([table], read_units(run))
    assert [(one.kind, one.row, one.detail) for one in found.problems] == [
        ("unread", 1, "the column 'factaul' is unknown and is ignored"),
        ("unmatched", 2, "human_factual2 has no step2"),
        ("unmatched", 2, "human_critical2 has no step2"),
    ]
    assert len(found.readings) == 1


def test_names_of_columns_may_be_written_in_capitals(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(f"Reader,UNIT,Factual\nanna,{ids(run)[0]},yes\n")
    assert [one.reader for one in import_tables([table], read_units(run)).readings] == ["anna"]


def test_what_has_too_many_units_is_not_read(tmp_path):
    run = make_run(tmp_path, cases=2, rationales=["It is so. " * 16, RATIONALE])
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",)))
    assert [sheet.case.id for sheet in sheets_of_run(run)] == [101]


def test_readers_get_the_meaning_of_every_word_they_may_write(run, tmp_path):
    write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("anna", "ben")))
    page = (tmp_path / "a/how-to-read.txt").read_text(encoding="utf-8")
    assert load_rubric().page in page, "judges and readers read the same page"
    words = [column.name for kind in KINDS.values() for column in kind.columns]
    assert not [word for word in (*words, "note") if word not in page]
    assert "baseline" not in page and "$" not in page


def test_lists_of_runs_under_other_conditions_cannot_be_told_apart(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=3, images=3)
    sheets = []
    for share in (Fraction(0), Fraction(1)):
        run = tmp_path / f"CANARY-{share}"
        condition = Condition(image_share=share, image_order="reversed")
        run_session(RunSpec(benchmark=bench, model="baseline/random", out=run, condition=condition))
        rewrite(run, [{"prediction_rationale": TEXT}] * 3)
        sheets += sheets_of_run(judged(run))
    out = tmp_path / "lists"
    key = write_lists(out, sheets, ReadingPlan(readers=("anna", "ben"), again_share=0.5, planted_share=1))
    rows = [row for name in ("anna", "ben") for row in read_table(out / f"{name}.csv").rows]
    assert sorted(row.cells["unit"] for row in rows) == sorted(key.codes), "two rows have one code"
    for name in ("anna", "ben"):
        cases = read_table(out / f"{name}-cases.csv").rows
        assert {row.cells["images"].count("\n") for row in cases} == {2}
        assert {row.cells["captions"].count("WITHHELD caption") for row in cases} == {3}
        for row in cases:
            # The n-th picture is the one that the n-th caption is about.
            numbers = [int(text.rsplit(".", 1)[1]) for text in row.cells["captions"].splitlines()]
            case = int(row.cells["diagnosis"][-3:])
            shown = [(out / path).read_bytes() for path in row.cells["images"].splitlines()]
            assert shown == [picture(case * 100 + number) for number in numbers]
    hidden = ["CANARY", "baseline", "random", "share", "reversed", "100 %", "i100x", "case00", "Case number", "ICD"]
    for path in out.rglob("*"):
        text = path.name + (path.read_bytes().decode("latin-1") if path.is_file() and path.suffix == ".csv" else "")
        assert not [word for word in hidden if word in text], path


def test_filled_in_lists_are_not_written_over(run, tmp_path):
    sheets = sheets_of_run(run)
    key = write_lists(tmp_path / "a", sheets, ReadingPlan(readers=("anna", "ben")))
    fill(tmp_path / "a", "anna", key, "csv")
    filled = (tmp_path / "a/anna.csv").read_bytes()
    with pytest.raises(UsageError, match="already contains reading lists"):
        write_lists(tmp_path / "a", sheets, ReadingPlan(readers=("anna", "ben"), seed=1))
    assert read_key(key_path(tmp_path / "a")) == key
    key_path(tmp_path / "a").rename(tmp_path / "key.json")
    with pytest.raises(UsageError, match="already contains reading lists"):
        write_lists(tmp_path / "a", sheets, ReadingPlan(readers=("anna", "ben"), seed=1))
    assert (tmp_path / "a/anna.csv").read_bytes() == filled


def test_a_list_given_twice_counts_its_planted_checks_once(run, tmp_path):
    key = write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("anna", "ben"), planted_share=1))
    fill(tmp_path / "a", "anna", key, "csv")
    planted = sum(code.planted is not None and code.reader == "anna" for code in key.codes.values())
    imported = import_tables([tmp_path / "a/anna.csv"] * 2, read_units(run), key)
    assert len(imported.checks) == planted > 0
    assert {problem.kind for problem in imported.problems} == {"duplicate"}


def test_a_reader_who_calls_every_check_true_is_found_out(run, tmp_path):
    key = write_lists(tmp_path / "a", sheets_of_run(run), ReadingPlan(readers=("anna", "ben"), planted_share=1))
    rows = [dict(row.cells) | {"factual": "yes"} for row in read_table(tmp_path / "a/anna.csv").rows]
    write_table(tmp_path / "a/anna.csv", COLUMNS, rows)
    truths = [code.planted for code in key.codes.values() if code.reader == "anna" and code.planted is not None]
    result, _ = measure_agreement(
        run, [tmp_path / "a/anna.csv"], Run.open(run).cases(), slices={}, key=key_path(tmp_path / "a")
    )
    (check,) = result.checks
    assert (check.right.n, check.right.value) == (len(truths), pytest.approx(sum(truths) / len(truths)))
    assert False in truths


def test_another_benchmark_is_refused_for_reading_and_comparing(run, tmp_path):
    (tmp_path / "other").mkdir()
    other = write_benchmark(tmp_path / "other/bench", cases=4, images=1)
    rows = (other / "test.jsonl").read_text()
    (other / "test.jsonl").write_text(rows.replace("WITHHELD findings 100", "OTHER findings 100"))
    for open_it in (sheets_of_run, lambda path, data: Run.open(path).cases(data)):
        with pytest.raises(UsageError, match="was made on it: case 100\n"):
            open_it(run, other)


def test_codes_differ_between_readers_and_another_seed_gives_another_order(run, tmp_path):
    sheets = sheets_of_run(run)
    one = write_lists(tmp_path / "a", sheets, ReadingPlan(readers=("anna", "ben"), seed=1))
    two = write_lists(tmp_path / "b", sheets, ReadingPlan(readers=("anna", "ben"), seed=2))
    assert not one.codes.keys() & two.codes.keys()
    by_reader = {name: {code for code, what in one.codes.items() if what.reader == name} for name in ("anna", "ben")}
    assert not by_reader["anna"] & by_reader["ben"]
    tables = [read_table(tmp_path / place).rows for place in ("a/anna.csv", "a/ben.csv", "b/anna.csv")]
    marks = [{row.cells["sheet"] for row in table} for table in tables]
    assert not marks[0] & marks[1] and not marks[0] & marks[2]
    assert not [code for code in {*one.codes, *marks[0]} if code[0].isdigit()], "a spreadsheet may take it for a number"


def test_bad_plans_are_refused(run, tmp_path):
    with pytest.raises(UsageError, match="distinct names"):
        ReadingPlan(readers=("anna", "anna"))
    with pytest.raises(UsageError, match="distinct names"):
        ReadingPlan(readers=("../anna", "ben"))
    with pytest.raises(UsageError, match="cannot go to 2 of them"):
        ReadingPlan(readers=("anna",))
    with pytest.raises(UsageError, match="nothing to read"):
        write_lists(tmp_path / "x", [], ReadingPlan(readers=("anna", "ben")))


def fill(folder, reader: str, key, form: str) -> None:
    """Read as a good reader would: what is WRONG is wrong, planted checks are known."""
    rows = [dict(row.cells) for row in read_table(folder / f"{reader}.{form}").rows]
    for row in rows:
        planted = key.codes[row["unit"]].planted
        is_right = planted if planted is not None else "WRONG" not in row["text"]
        if row["kind"] == "education":
            row["score"] = 1
        elif row["kind"] == "sentence":
            row["label"] = "correct" if is_right else "incorrect"
        else:
            row["factual"] = "supported" if is_right else "contradicted"
            row["weight"] = "incidental" if is_right else "decisive"
            row["error_types"] = "" if is_right else "image understanding"
            row["severity"] = "" if is_right else "significant"
            row["correction"] = "" if is_right else "It is otherwise."
    write_table(folder / f"{reader}.{form}", COLUMNS, rows)


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl"])
def test_lists_come_back_and_readers_and_judges_are_compared(form, tmp_path):
    run = make_run(tmp_path, cases=4, rationales=[TEXT] * 4)
    with JudgeServer(judge_well) as server:
        judge_run(
            JudgeSpec(
                run=run, judges=("server/a", "server/b"), base_urls=(server.url,), splitter="sentences", repeats=2
            )
        )
    folder = tmp_path / "reading"
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",)))
    key = write_lists(folder, sheets_of_run(run), ReadingPlan(readers=("anna", "ben"), again_share=0.5), form=form)
    for reader in ("anna", "ben"):
        fill(folder, reader, key, form)
    tables = [folder / f"{reader}.{form}" for reader in ("anna", "ben")]
    slices = {case: {"modality": ("CT",)} for case in range(100, 104)}
    result, problems = measure_agreement(run, tables, Run.open(run).cases(), slices=slices, key=key_path(folder))
    assert problems == ()
    assert {pair.kind for pair in result.pairs} == {
        "reader–reader", "reader–itself", "reader–judge", "judge–judge", "judge–itself",
    }  # fmt: skip
    judge = "server/a · with images"
    (factual,) = [pair for pair in result.validity(judge) if pair.aspect == "factual"]
    assert factual.a == "readers together"
    assert factual.nominal.confusion == ((8, 0), (0, 4))
    assert factual.nominal.kappa.value == 1.0
    assert {one.right.value for one in result.checks} == {1.0}
    bias = next(one for one in result.biases if one.judge == judge)
    assert (bias.validated, bias.reported.value) == (12, pytest.approx(1 / 3))
    assert bias.corrected.value is None, "four wrong units say too little of the judge's errors"
    assert any(pair.slicing == "modality" for pair in result.pairs)
    themselves = {(pair.kind, pair.a, pair.b) for pair in result.pairs if pair.kind.endswith("itself")}
    assert themselves == {
        *(("reader–itself", name, f"{name} (again)") for name in ("anna", "ben")),
        *(("judge–itself", f"server/{name} · with images", f"server/{name} · with images #2") for name in "ab"),
    }
    assert {panel.raters for panel in result.panels} == {("anna", "ben"), (judge, "server/b · with images")}
    write_agreement(run, result)
    assert read_agreement(run) == result
    assert read_key(key_path(folder)) == key


@pytest.fixture
def filled(tmp_path):
    """A run, and the filled-in lists of two readers with their key."""
    run = make_run(tmp_path, cases=4, rationales=[TEXT] * 4)
    judge_run(JudgeSpec(run=run, judges=("baseline/rules",)))
    folder = tmp_path / "reading"
    key = write_lists(folder, sheets_of_run(run), ReadingPlan(readers=("anna", "ben")))
    for reader in ("anna", "ben"):
        fill(folder, reader, key, "csv")
    return run, folder, key


def rows_of(path):
    return [dict(row.cells) for row in read_table(path).rows]


@pytest.mark.parametrize("has_key", [True, False])
def test_a_table_with_one_column_sorted_by_itself_is_refused(filled, has_key, tmp_path):
    run, folder, key = filled
    rows = rows_of(folder / "anna.csv")
    if not has_key:
        rows = [{**row, "unit": key.codes[row["unit"]].unit} for row in rows if key.codes[row["unit"]].run != PLANTED]
    codes = sorted(row["unit"] for row in rows)
    for row, code in zip(rows, codes, strict=True):
        row["unit"] = code
    write_table(tmp_path / "sorted.csv", COLUMNS, rows)
    with pytest.raises(DataError, match="rows do not fit the unit that the code names") as told:
        import_tables([tmp_path / "sorted.csv"], read_units(run), key if has_key else None)
    assert "sorted by itself" in told.value.remedy


@pytest.mark.parametrize("column", ["text", "number", "sheet"])
def test_a_row_with_the_cell_of_another_unit_is_imported_only_if_it_is_accepted(column, filled, tmp_path):
    run, folder, key = filled
    rows = rows_of(folder / "anna.csv")
    # Also planted rows are compared; an edited text is not in the key.
    a, b = 0, next(place for place, row in enumerate(rows) if row[column] != rows[0][column])
    rows[a][column], rows[b][column] = rows[b][column], rows[a][column]
    path = tmp_path / "anna.csv"
    write_table(path, COLUMNS, rows)
    with pytest.raises(DataError, match=rf"not fit .* nothing was imported: anna\.csv:2.*\({column}\)"):
        import_tables([path, folder / "ben.csv"], read_units(run), key)
    with pytest.raises(DataError, match="a row does not fit"):
        import_tables([path], read_units(run), key, [f"anna.csv:{b + 2}"])
    both = import_tables([path], read_units(run), key, ["anna.csv:2", f"{path}:{b + 2}-{b + 2}"])
    right = import_tables([folder / "anna.csv"], read_units(run), key)
    assert [(one.unit, one.labels) for one in both.readings] == [(one.unit, one.labels) for one in right.readings]
    with pytest.raises(UsageError, match="does not read 'anna'"):
        import_tables([path], read_units(run), key, ["anna"])


def test_a_list_filled_in_under_another_reader_s_name_is_refused(filled, tmp_path):
    run, folder, key = filled
    rows = [row | {"reader": "ben"} for row in rows_of(folder / "anna.csv")]
    write_table(tmp_path / "ben.csv", COLUMNS, rows)
    with pytest.raises(DataError, match="rows of anna's list are filled in under the name ben"):
        import_tables([folder / "anna.csv", tmp_path / "ben.csv"], read_units(run), key)


def test_rows_of_a_list_that_are_not_in_the_file_are_counted(filled, tmp_path):
    run, folder, key = filled
    rows = rows_of(folder / "anna.csv")
    write_table(tmp_path / "anna.csv", COLUMNS, rows[:5])
    (problem,) = import_tables([tmp_path / "anna.csv"], read_units(run), key).problems
    due = sum(one.reader == "anna" and one.run != PLANTED for one in key.codes.values())
    assert problem.kind == "missing" and problem.detail.endswith(f" of {due} rows of anna's list are not in the file")


def test_a_majority_is_of_two_readers_or_more_and_types_are_compared_where_both_are_known(run, tmp_path):
    first, second, third = ids(run)
    table = write(
        tmp_path / "t.csv",
        ("reader", "unit", "factual", "error_types"),
        ("anna", first, "no", "reasoning"),
        ("anna", second, "no", ""),
        ("anna", third, "yes", ""),
        ("ben", first, "no", "reasoning"),
        ("ben", second, "no", "reasoning"),
    )
    result, problems = measure_agreement(run, [table], Run.open(run).cases(), slices={})
    assert problems == ()
    counts = {name: count for name, count in result.raters.items() if "server" not in name}
    assert counts == {"anna": 3, "ben": 2, "readers together": 2}
    compared = {pair.aspect: pair.nominal.n for pair in result.pairs if (pair.a, pair.b) == ("anna", "ben")}
    assert (compared["factual"], compared["error: reasoning"]) == (2, 1)


def test_discussions_are_read_and_compared_by_sentence_and_score(tmp_path):
    run = make_discussions(tmp_path)
    with JudgeServer(judge_well) as server:
        judge_run(JudgeSpec(run=run, judges=("server/a",), base_urls=(server.url,)))
    folder = tmp_path / "reading"
    key = write_lists(folder, sheets_of_run(run), ReadingPlan(readers=("anna", "ben"), planted_share=0))
    for reader in ("anna", "ben"):
        fill(folder, reader, key, "csv")
    result, problems = measure_agreement(
        run, [folder / "anna.csv", folder / "ben.csv"], Run.open(run).cases(), slices={}, key=key_path(folder)
    )
    assert problems == ()
    by_aspect = {pair.aspect: pair for pair in result.validity("server/a · with images")}
    assert by_aspect["sentence"].nominal.percent.value == 1.0
    assert by_aspect["education"].ordered is not None
    assert by_aspect["education"].nominal.n == 10
    assert by_aspect["education"].nominal.caution is not None


def test_blinded_rows_of_another_run_are_counted_apart(run, tmp_path):
    other_root = tmp_path / "other"
    other_root.mkdir()
    other = make_discussions(other_root)
    judge_run(JudgeSpec(run=other, judges=("baseline/rules",)))
    folder = tmp_path / "reading"
    key = write_lists(folder, [*sheets_of_run(run), *sheets_of_run(other)], ReadingPlan(readers=("anna", "ben")))
    fill(folder, "anna", key, "csv")
    _, problems = measure_agreement(run, [folder / "anna.csv"], Run.open(run).cases(), slices={}, key=key_path(folder))
    assert {problem.kind for problem in problems} == {"other_run"}


def test_a_run_that_was_never_cut_cannot_be_read(tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(UsageError, match="not segmented into units"):
        sheets_of_run(run)


def test_the_catalogue_names_every_unit_once(run):
    known = readable_items(read_units(run))
    assert len(known) == 12
    assert {one.text for one in known.values()} == {
        "There is a mass in the left lung.",
        "The margin is WRONG here.",
        "So the diagnosis follows.",
    }
    assert json.loads(msgspec.json.encode(list(known.values())))
    assert " ".join(one.text for one in list(known.values())[:3]) == TEXT


def test_swapped_headers_are_told_in_one_line(filled, tmp_path):
    run, folder, key = filled
    rows = [row | {"factual": row["weight"], "weight": row["factual"]} for row in rows_of(folder / "anna.csv")]
    for number, row in enumerate(rows):
        row["factual"] = ("decisive", "incidental")[number % 2]
        row["weight"] = ("supported", "contradicted")[number % 2]
    write_table(tmp_path / "swapped.csv", COLUMNS, rows)
    with pytest.raises(DataError, match="the column factual looks like weight; the column weight looks like factual"):
        import_tables([tmp_path / "swapped.csv"], read_units(run), key)
