"""The published form is written as it is read: what comes back is what was said, on the coarser scale."""

import pytest

from judged_run import RATIONALE, make_run
from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.core.tables import read_table, write_table
from medthink.judge.session import JudgeSpec, judge_run
from medthink.judge.units import read_units
from medthink.readers.readings import Reading, import_tables, publish_readings

COLUMNS = ("reader", "unit", "factual", "weight", "error_types", "severity", "correction", "note")


@pytest.fixture
def run(tmp_path):
    # Twice the same words in one case: only the unit's id tells these steps apart.
    made = make_run(tmp_path, rationales=["It grows. It grows. It is =large.", RATIONALE, RATIONALE])
    judge_run(JudgeSpec(run=made, judges=("baseline/rules",)))
    return made


def fill_in(path, run):
    first, second, third = read_units(run)[100, 0, "steps"].ids
    rows = [
        ("anna", first, "supported", "decisive", "", "", "", ""),
        ("anna", second, "contradicted", "incidental", "reasoning; image understanding", "minor", "It shrinks.", "hm"),
        ("anna", third, "unverifiable", "contributory", "", "", "", ""),
        ("ben", first, "contradicted", "", "medical knowledge", "none", "No.", ""),
        ("ben", read_units(run)[101, 0, "steps"].ids[1], "supported", "contributory", "", "", "", ""),
    ]
    write_table(path, COLUMNS, [dict(zip(COLUMNS, row, strict=True)) for row in rows])
    return path


def test_every_label_stands_in_its_column(run, tmp_path):
    readings = import_tables([fill_in(tmp_path / "t.csv", run)], read_units(run)).readings
    columns, rows, left_out = publish_readings(readings, read_units(run))
    assert [(row["title"], row["reader"]) for row in rows] == [
        ("Case number 100", "anna"),
        ("Case number 100", "ben"),
        ("Case number 101", "ben"),
    ]
    anna = rows[0]
    assert [anna[f"step{k}"] for k in (1, 2, 3)] == ["It grows.", "It grows.", "It is =large."]
    assert [anna[f"human_factual{k}"] for k in (1, 2, 3)] == ["yes", "no", "unverifiable"], "a gap is another thing"
    assert [anna[f"human_critical{k}"] for k in (1, 2, 3)] == ["yes", "no", "yes"]
    assert anna["human_error_types2"] == "reasoning; image understanding", "the main one first"
    assert "human_factual2" not in rows[1], "what was left open is empty"
    assert columns[:2] == ("title", "reader") and columns[-1] == "human_error_types3"
    assert left_out == 0


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl"])
def test_what_was_exported_is_read_back_on_the_coarser_scale(form, run, tmp_path):
    units = read_units(run)
    first = import_tables([fill_in(tmp_path / "t.csv", run)], units).readings
    table = publish_readings(first, units)
    write_table(tmp_path / f"p.{form}", table.columns, table.rows)
    back = import_tables([tmp_path / f"p.{form}"], units)
    assert not [one for one in back.problems if one.kind != "unlabelled"]
    said = {(one.reader, one.unit): one for one in first}
    assert len(back.readings) == len(said)
    for one in back.readings:
        before = said[one.reader, one.unit]
        is_open = before.labels.get("support") == "unverifiable"
        assert one.labels.get("factual") == before.labels["factual"]
        assert one.labels.get("critical") == before.labels.get("critical")
        assert one.error_types == before.error_types
        assert one.labels.get("support") == ("unverifiable" if is_open else None), "the finer label was guessed"
        assert "weight" not in one.labels
    again = publish_readings(back.readings, units)
    assert again == table, "a second round changes nothing"


def test_what_has_no_column_is_counted(run):
    other = Reading(reader="anna", unit="of a discussion", case=100, labels={"sentence": "correct"})
    table = publish_readings([other], read_units(run))
    assert (table.rows, table.left_out) == ([], 1)


def test_the_command_writes_the_table_once(run, tmp_path, capsys):
    units = read_units(run)
    out = tmp_path / "published.csv"
    words = ["reading", "export", str(run), str(fill_in(tmp_path / "t.csv", run))]
    assert run_command([*words, "-o", str(out)]) == 0
    assert "3 rows" in capsys.readouterr().out
    assert len(read_table(out).rows) == 3
    before = out.read_bytes()
    assert run_command([*words, "-o", str(out)]) == 2, "a table that is there is not written over"
    assert out.read_bytes() == before
    empty = tmp_path / "empty.csv"
    write_table(empty, ("reader", "unit", "factual"), [{"reader": "anna", "unit": units[100, 0, "steps"].ids[0]}])
    assert run_command(["reading", "export", str(run), str(empty), "-o", str(tmp_path / "x.csv")]) == 2
    assert "nothing to write" in capsys.readouterr().err


def test_the_published_table_gives_the_same_agreement_as_the_lists_it_was_made_from(run, tmp_path, capsys):
    table = fill_in(tmp_path / "t.csv", run)
    out = tmp_path / "published.csv"
    assert run_command(["reading", "export", str(run), str(table), "-o", str(out)]) == 0
    capsys.readouterr()
    shown = []
    for one in (table, out):
        assert run_command(["agreement", str(run), str(one)]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("critical ")]
        shown.append([line.split() for line in lines])
    assert shown[0] == shown[1] != []


def test_a_step_with_the_words_of_another_unit_than_the_one_beside_it_is_refused(run, tmp_path):
    units = read_units(run)
    table = publish_readings(import_tables([fill_in(tmp_path / "t.csv", run)], units).readings, units)
    rows = [table.rows[0] | {"unit1": table.rows[0]["unit3"], "unit3": table.rows[0]["unit1"]}, *table.rows[1:]]
    write_table(tmp_path / "p.csv", table.columns, rows)
    with pytest.raises(DataError, match=r"nothing was imported: p\.csv:2 \(step1, step3\)"):
        import_tables([tmp_path / "p.csv"], units)
    assert import_tables([tmp_path / "p.csv"], units, accept=["p.csv:2"]).readings
