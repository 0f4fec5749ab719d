"""Workbooks that are small on disk and large in memory are refused before they are."""

import io
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from openpyxl import Workbook

from medthink.core.errors import DataError
from medthink.core.tables import MAX_BYTES, Layout, read_table, write_table


def save(path, cells):
    book = Workbook()
    for place, value in cells.items():
        book.active[place] = value
    book.save(path)


def test_a_workbook_that_unpacks_to_too_much_is_refused_unopened(tmp_path, monkeypatch):
    path = tmp_path / "bomb.xlsx"
    save(path, {"A1": "unit"})
    with ZipFile(path, "a", ZIP_DEFLATED) as archive, archive.open("xl/media/zeros", "w") as member:
        for _ in range(MAX_BYTES // 2**20 + 1):
            member.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    monkeypatch.setattr("openpyxl.load_workbook", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(DataError, match=r"bomb.xlsx: unpacks to more than 67,108,864 bytes\n.*right file"):
        read_table(path)


def test_a_sheet_that_claims_all_its_cells_is_refused(tmp_path):
    path = tmp_path / "wide.xlsx"
    save(path, {"A1": "unit", "XFD1048576": "far"})
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match="unpacks to more than 20,000,000 cells"):
        read_table(path)


def test_a_workbook_as_large_as_allowed_is_read(tmp_path, monkeypatch):
    path = tmp_path / "table.xlsx"
    write_table(path, ("unit", "note"), [{"unit": "a", "note": "x"}])
    with ZipFile(io.BytesIO(path.read_bytes())) as archive:
        size = sum(member.file_size for member in archive.infolist())
    monkeypatch.setattr("medthink.core.tables.MAX_BYTES", size)
    monkeypatch.setattr("medthink.core.tables.MAX_CELLS", 4)
    assert [row.cells for row in read_table(path).rows] == [{"unit": "a", "note": "x"}]


def test_merged_names_hold_for_all_their_rows_and_other_merged_cells_are_listed(tmp_path):
    path = tmp_path / "t.xlsx"
    book = Workbook()
    sheet = book.active
    for row in (("Reader", "unit", "factual"), ("anna", "u1", "yes"), (None, "u2", "no"), ("ben", "u3", "yes")):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    sheet.merge_cells("C3:C4")
    book.save(path)
    table = read_table(path, Layout(merged=("reader",)))
    assert [row.cells["reader"] for row in table.rows] == ["anna", "anna", "ben"]
    assert [(one.row, one.detail[:5]) for one in table.unread] == [(3, "C3:C4")]


def test_a_formula_whose_value_was_not_saved_is_listed(tmp_path):
    path = tmp_path / "t.xlsx"
    save(path, {"A1": "unit", "B1": "factual", "A2": "u1", "B2": '=IF(1,"yes","no")'})
    table = read_table(path)
    assert table.unread == ((2, "B2 is a formula whose value was not saved"),)
