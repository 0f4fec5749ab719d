"""The list of what `make quick` leaves out names what is there."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_every_place_left_out_exists() -> None:
    tree = ast.parse((TESTS / "conftest.py").read_text(encoding="utf-8"))
    (places,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "LEFT_OUT"
    )
    assert [place for place in places if not (TESTS / place).exists()] == []
    assert list(places) == sorted(places)
