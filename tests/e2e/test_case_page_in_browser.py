"""The page of a case in a real browser: folds hide, nothing runs, nothing leaves."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from chromium import open_chromium
from medthink.cases.benchmark import Benchmark
from medthink.core.jsonio import write_jsonl
from medthink.web.cases.file import case_file

pytestmark = pytest.mark.browser

CANARY = (
    "<script>document.title='run'</script><img src=http://198.51.100.7/x onerror=\"document.title='run'\">"
    "<svg onload=\"document.title='run'\"><a href=\"javascript:document.title='run'\">x</a>"
    "<style>@import 'http://198.51.100.7/y';</style><iframe src=http://198.51.100.7/z></iframe>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    row = {
        "title": "Case number 7", "CLINICAL_HISTORY": f"Fever. {CANARY}", "IMAGING_FINDINGS": f"the findings {CANARY}",
        "discussion": f"the discussion {CANARY}", "options": {letter: f"{letter} {CANARY}" for letter in "ABCDE"},
        "correct_answer": "B", "correct_answer_text": f"B {CANARY}", "ICD Chapter": CANARY, "ICD Block": CANARY,
        "ICD Category": CANARY, "is_longitudinal": False, "timepoint_count": 1, "interval_text": "", "image_count": 1,
        "image_01_id": "a", "image_01_path": "images/case00007/a.jpg", "image_01_caption": f"the caption {CANARY}",
        "image_01_modality": "CT", "image_01_sub_modality": "the sub-modality",
    }  # fmt: skip
    write_jsonl(root / "test.jsonl", [row])
    (root / "images/case00007").mkdir(parents=True)
    stream = BytesIO()
    Image.new("L", (640, 480), 120).save(stream, "JPEG")
    (root / "images/case00007/a.jpg").write_bytes(stream.getvalue())
    page = root / "case.html"
    page.write_text(case_file(Benchmark.open(root).case(7)), encoding="utf-8")
    return page


@pytest.fixture
def tab(browser: Any, page_file: Path) -> Iterator[Any]:
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    tab.asked, tab.complaints = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.goto(page_file.as_uri())
    yield tab
    tab.close()


def test_withheld_parts_are_hidden_until_asked_for(tab: Any) -> None:
    for text in ("the caption", "the findings", "the discussion", "the sub-modality"):
        assert not tab.get_by_text(text).first.is_visible(), text
    assert tab.get_by_text("Fever.").is_visible()
    tab.get_by_text("Caption", exact=True).click()
    assert tab.get_by_text("the caption").is_visible()
    assert not tab.get_by_text("the findings").is_visible()
    tab.locator("summary", has_text="Reference").click()
    assert tab.get_by_text("the findings").is_visible() and tab.get_by_text("the discussion").is_visible()


def test_folds_open_from_the_keyboard(tab: Any) -> None:
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    assert tab.get_by_text("the caption").is_visible()


def test_nothing_runs_and_nothing_is_fetched(tab: Any, page_file: Path) -> None:
    for fold in tab.locator("summary").all():
        fold.click()
    assert tab.title() == "Case number 7"
    assert tab.complaints == []
    assert [url for url in tab.asked if not url.startswith("data:")] == [page_file.as_uri()]


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_image_is_shown_and_nothing_runs_over_the_side(tab: Any, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    for fold in tab.locator("summary").all():
        fold.click()
    assert tab.evaluate("document.images[0].naturalWidth") == 640
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
