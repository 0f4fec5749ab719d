"""The list of what `make quick` leaves out names what is there, and leaves something of every room."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def _left_out() -> list[str]:
    tree = ast.parse((TESTS / "conftest.py").read_text(encoding="utf-8"))
    (places,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "LEFT_OUT"
    )
    return list(places)


def test_every_place_left_out_exists() -> None:
    places = _left_out()
    assert [place for place in places if not (TESTS / place).is_file()] == []
    assert places == sorted(places)


def test_every_room_is_tested_quickly() -> None:
    left_out = {TESTS / place for place in _left_out()}
    rooms = [room for room in (TESTS / "unit").iterdir() if list(room.glob("test_*.py"))]
    assert [room.name for room in rooms if not set(room.glob("test_*.py")) - left_out] == []
