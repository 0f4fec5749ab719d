"""The page of a case: self-contained, escaped, nothing withheld outside a fold."""

import re
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from medthink.cases.benchmark import Benchmark
from medthink.web.cases.file import case_file

NASTY = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'`${}$title"


class Outline(HTMLParser):
    """The text inside and outside of folds, and every tag and attribute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.depth = 0
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open_text = ""
        self.folded_text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.depth += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "details"

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.folded_text += data
        else:
            self.open_text += data


@pytest.fixture
def page_of(tmp_path: Path, row_maker: Callable[..., Any], folder_maker: Callable[..., Path]) -> Callable[..., str]:
    def make(*, reveal: bool = False, **changes: Any) -> str:
        root = folder_maker(tmp_path / "b", {"test": [row_maker(7, images=2, **changes)]})
        stream = BytesIO()
        Image.new("L", (6, 4), 90).save(stream, "JPEG", comment=b"secret comment")
        (root / "images/case00007/7_1.jpg").write_bytes(stream.getvalue())
        (root / "images/case00007/7_2.jpg").write_bytes(stream.getvalue()[:100])
        return case_file(Benchmark.open(root).case(7), reveal=reveal)

    return make


def test_nothing_withheld_stands_outside_a_fold(page_of: Callable[..., str]) -> None:
    secrets = {
        "IMAGING_FINDINGS": "secret-findings",
        "discussion": "secret-discussion",
        "correct_answer_text": "secret-answer",
        "ICD Category": "secret-category",
        "image_01_caption": "secret-caption",
        "image_01_modality": "secret-modality",
        "image_01_sub_modality": "secret-sub",
        "image_01_id": "secret-id",
    }
    outline = Outline(page_of(**secrets))
    assert "secret-" not in outline.open_text
    assert all(text in outline.folded_text for name, text in secrets.items() if not name.endswith("_id"))
    assert all("secret" not in (value or "") for _, value in outline.attributes)
    assert ("open", None) not in outline.attributes and ("open", "") not in outline.attributes


def test_the_folds_are_open_when_revealed(page_of: Callable[..., str]) -> None:
    nasty = "<details>"
    folded, revealed = (page_of(reveal=reveal, discussion=nasty) for reveal in (False, True))
    assert ("open", None) not in Outline(folded).attributes
    assert Outline(revealed).attributes.count(("open", None)) == Outline(revealed).tags.count("details") == 3
    assert "&lt;details&gt;" in revealed


def test_images_are_inside_and_their_metadata_is_not(page_of: Callable[..., str]) -> None:
    page = page_of()
    assert page.count('src="data:image/jpeg;base64,') == 1
    sources = [value for name, value in Outline(page).attributes if name in ("src", "href")]
    assert all(source is not None and source.startswith("data:image/") for source in sources)
    (picture,) = (b64decode(source.partition(",")[2]) for source in sources if source and source.startswith("data:"))
    assert picture.startswith(b"\xff\xd8") and b"secret comment" not in picture


@pytest.mark.parametrize("flag", [True, False])
def test_the_timeline_is_told_where_there_is_one(page_of: Callable[..., str], flag: bool) -> None:
    page = page_of(is_longitudinal=flag, timepoint_count=2, interval_text="two weeks")
    assert ("<dt>time points</dt><dd>2, two weeks</dd>" in page) == flag


def test_an_image_that_cannot_be_shown_says_why(page_of: Callable[..., str]) -> None:
    assert "cannot be decoded" in Outline(page_of()).open_text


def test_an_image_that_is_not_there_is_not_named_outside_a_fold(page_of: Callable[..., str], tmp_path: Path) -> None:
    page_of(image_02_path="images/case00007/melanoma.jpg")
    (tmp_path / "b/images/case00007/melanoma.jpg").unlink()
    page = Outline(case_file(Benchmark.open(tmp_path / "b").case(7)))
    assert "no such image" in page.open_text
    assert "melanoma" not in page.open_text and "melanoma" in page.folded_text


def test_every_text_is_escaped(page_of: Callable[..., str]) -> None:
    plain = Outline(page_of())
    fields = ("CLINICAL_HISTORY", "IMAGING_FINDINGS", "discussion", "correct_answer", "correct_answer_text",
              "ICD Chapter", "ICD Block", "ICD Category", "interval_text", "image_01_caption", "image_01_modality",
              "image_01_sub_modality")  # fmt: skip
    changes: dict[str, Any] = dict.fromkeys(fields, NASTY)
    changes |= {"title": f"{NASTY} 7".replace("(1)", "()"), "options": {NASTY: NASTY}, "is_longitudinal": True}
    nasty = Outline(page_of(**changes))
    assert "script" not in nasty.tags
    assert sorted(set(nasty.tags)) == sorted(set(plain.tags))
    assert not any(name.startswith("on") for name, _ in nasty.attributes)
    assert NASTY in nasty.open_text


def test_the_policy_forbids_everything_but_inline_images_and_style(page_of: Callable[..., str]) -> None:
    page = page_of()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1] == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert "<script" not in page
