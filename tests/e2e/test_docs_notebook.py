"""The notebook of the docs runs from top to bottom, shows its tables and figures, and keeps the answer folded."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Every output of the notebook, run in an empty folder."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    assert (folder / "report.html").is_file()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def shown_as(outputs: list[Any], kind: str) -> list[str]:
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def test_every_value_shows_itself_as_html_and_in_a_line(outputs: list[Any]) -> None:
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    pages = "".join(shown_as(outputs, "text/html"))
    for piece in ("<progress", "accuracy (95 %)", "Accuracy, paired by case", "Ranks", "Image 1", "warnings"):
        assert piece in pages, piece
    lines = [
        line for line in shown_as(outputs, "text/plain") if line.startswith(("Bench", "Case", "Run", "Sc", "Comp"))
    ]
    assert len(lines) == 5 and max(map(len, lines)) < 200


def test_the_figures_are_drawn(outputs: list[Any]) -> None:
    assert len(shown_as(outputs, "image/png")) == 1
    assert "retrieval" in shown_as(outputs, "image/svg+xml")[0]


def test_the_case_keeps_its_reference_folded(outputs: list[Any]) -> None:
    (page,) = (page for page in shown_as(outputs, "text/html") if "Image 1" in page)
    folded = re.search(r"<details>.*?</details>", page, re.DOTALL)
    assert folded is not None
    (letter,) = re.findall(r"<b>([A-E]) · ", folded[0])
    assert f"<b>{letter} · " not in page.replace(folded[0], "")


def test_it_is_kept_without_outputs() -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
