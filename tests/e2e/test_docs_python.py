"""The examples of docs/python.md, run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_examples_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = list(re.finditer(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 8
    names: dict[str, object] = {}
    for block in blocks:
        # Empty lines before the code keep the page's line numbers in a traceback.
        first = PAGE.read_text()[: block.start(1)].count("\n")
        exec(compile("\n" * first + block[1], str(PAGE), "exec"), names)
    assert "('train', 'test') 24" in capsys.readouterr().out
