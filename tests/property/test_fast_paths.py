"""What is done fast for nearly every row, against the plain definition for every row."""

import json
import re
import unicodedata
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from medthink.cases.case import Case, Image, Question, Reference
from medthink.cases.check import cases as one_case
from medthink.cases.check.cases import check_case
from medthink.cases.check.image_files import ImageFileList
from medthink.cases.check.texts import GRAM, SimilarTextFinder, contains_phrase, normalised_words
from medthink.cases.files import rows
from medthink.cases.files.rows import COLUMNS, SLOT_COLUMNS, RowLocation, case_from_row
from medthink.cases.images import stores
from medthink.cases.images.stores import MISSING, FolderImages, NoImages, list_by_folder, path_problem
from medthink.core.errors import DataError
from medthink.core.jsonio import parse_json

quick = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
letters = st.characters(exclude_categories=["Cs"])
STORE = NoImages(Path())
EDGES = (2**64 - 1, 2**64, -(2**63), -(2**63) - 1)


class _Lost(Exception):
    """A key that stands twice, or a whole number of more than 64 bits."""


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _Lost
    return dict(pairs)


def _refuse_long(digits: str) -> int:
    if int(digits) not in range(-(2**63), 2**64):
        raise _Lost
    return int(digits)


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """A JSON text whose objects may say a key twice, with any spacing, escaped or not, compact or not."""
    space = st.sampled_from(["", "", " ", "\n", "\t ", "\r"])
    names = st.sampled_from(["a", "b", '":', "a:", "\\", "é", "\u2028", "", str(2**64)])
    numbers = st.sampled_from(["0", "-1", "1.0", "1.50", "1e3", "1e30", "true", "null", *map(str, EDGES)])

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=draw(st.booleans()))

    def value(depth: int) -> str:
        kind = draw(st.sampled_from(["text", "number", "object", "list"] if depth else ["text", "number"]))
        if kind == "number":
            return draw(numbers)
        if kind == "text":
            return quoted(draw(names))
        count = draw(st.integers(0, 3))
        inner = [value(depth - 1) for _ in range(count)]
        if kind == "object":
            inner = [f"{quoted(draw(names))}{draw(space)}:{draw(space)}{each}" for each in inner]
        mark = "{}" if kind == "object" else "[]"
        return mark[0] + ",".join(draw(space) + each + draw(space) for each in inner) + mark[1]

    return (value(3) + draw(st.sampled_from(["", "", "\n", " ", "}", ' {"a":1}', "x", "\0"]))).encode()


@quick
@given(json_texts())
@example(b'{"a":1,"a":1}\n')
@example(b'{"a":1}\n{"a":1}')
@example(b'{"a":18446744073709551616}\n')
def test_a_text_is_refused_exactly_when_it_is_no_json_or_something_of_it_would_be_lost(text: bytes) -> None:
    try:
        expected = json.loads(text.decode(), object_pairs_hook=_refuse_twice, parse_int=_refuse_long)
    except (_Lost, json.JSONDecodeError):
        with pytest.raises(DataError):
            parse_json(text)
    else:
        assert repr(parse_json(text)) == repr(expected)


@st.composite
def slot_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row with the slots it says, and then one or two things about it changed."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "x") | {"title": "Case number 1", "options": {"A": "a"}}
    row |= {"is_longitudinal": False, "timepoint_count": 1}
    count = draw(st.integers(0, 4))
    row |= {column: draw(st.text(letters, min_size=1, max_size=3)) for column in SLOT_COLUMNS[: 5 * count]}
    odd = st.sampled_from(
        [count, count, count, count + 1, count - 1, True, False, 0, -1, 49, 50, 2**62, 1.0, None, "2"]
    )
    row["image_count"] = draw(odd)
    for _ in range(draw(st.integers(0, 2))):
        column = draw(st.sampled_from([*SLOT_COLUMNS[:30], SLOT_COLUMNS[-1], *COLUMNS, "extra", "image_01"]))
        if draw(st.booleans()):
            row.pop(column, None)
        else:
            row[column] = draw(st.sampled_from(["", " ", "text", None, 0, 5, [], ["x"], False]))
    return row


def _case_or_error(row: dict[str, Any]) -> Any:
    try:
        return case_from_row(row, split="test", store=STORE, place=RowLocation("f", 1))
    except DataError as error:
        return str(error)


@quick
@given(slot_rows())
def test_texts_taken_at_one_stroke_are_those_of_any_row(row: dict[str, Any]) -> None:
    fast = _case_or_error(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_regular_texts", lambda _: None)
        assert fast == _case_or_error(row)


options = st.dictionaries(st.sampled_from("ABCDEF"), st.sampled_from(["a", "b", "", None, 1]), max_size=6)
LETTERS_IN_ANY_ORDER = st.permutations("ABCDE").map(lambda letters: dict.fromkeys(letters, "text"))


@quick
@given(options | LETTERS_IN_ANY_ORDER)
def test_options_as_released_are_those_of_any_row(value: dict[str, Any]) -> None:
    row = dict.fromkeys(COLUMNS, "x") | {"title": "Case number 1", "is_longitudinal": False, "timepoint_count": 1}
    row |= {"image_count": 0, "options": value}
    fast = _case_or_error(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_LETTERS", [])
        assert fast == _case_or_error(row)
    if isinstance(fast, Case):
        assert [*fast.question.options] == sorted(fast.question.options)


parts = st.sampled_from(["images", "case00007", "case7", "case00008", "a", "a.b", "a.", ".a", "a.jpg", "jpg", "é", ""])
image_paths = st.lists(parts, max_size=4).map("/".join) | parts.map(lambda name: f"images/case00007/{name}.jpg")


@quick
@given(image_paths, st.sampled_from(["a", "a.b", "", "case00007/a", "a."]))
@example("images/case00007/a.b.jpg", "a")
@example("images/case00007/a.b/c.jpg", "a")
@example("images/case00007/.jpg", "")
def test_a_path_that_agrees_at_a_glance_agrees_when_looked_at(path: str, name: str) -> None:
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "x") | {"title": "Case number 7", "options": {"A": "a"}}
    row |= {"is_longitudinal": False, "timepoint_count": 1, "image_count": 1, "image_01_modality": "CT"}
    case = case_from_row(
        row | {"image_01_id": name, "image_01_path": path}, split="test", store=STORE, place=RowLocation("f", 1)
    )
    found = [finding for finding in check_case(case, b"") if finding.code == "image-path-disagrees"]
    assert found == [*one_case._check_path(case, case.question.images[0])]


class Listed(NoImages):
    """A store that lists what it is told, and can read what of it may be opened."""

    def __init__(self, listed: set[str]) -> None:
        super().__init__(Path())
        self._listed = listed

    def listing(self) -> dict[str, list[str]]:
        return list_by_folder(self._listed)

    def problem(self, path: str) -> str:
        return path_problem(path) or ("" if path in self._listed else MISSING)


FILES = st.sampled_from([f"images/{folder}{name}.jpg" for folder in ("", "a/", "b/", "../", "a/b/") for name in "xy"])


@quick
@given(st.sets(FILES), st.lists(st.lists(FILES, max_size=3), max_size=4))
def test_files_struck_out_by_folder_are_those_struck_out_one_by_one(listed: set[str], cases: list[list[str]]) -> None:
    store = Listed(listed)
    by_folder, one_by_one = ImageFileList(store), ImageFileList(store)
    for number, paths in enumerate(cases):
        images = tuple(Image(slot, "x", path, store) for slot, path in enumerate(paths, start=1))
        case = Case(number, "", "test", Question("", images, {}), cast("Reference", None), len(paths), {})
        alone = [one_by_one._claim(image) for image in images]
        assert by_folder.check(case) == [finding for finding in alone if finding is not None]
    assert [*by_folder.extras()] == [*one_by_one.extras()]


pieces = st.sampled_from(["images", "case00001", "a.jpg", ".", "..", "", ".hidden", "a b", "é", "~", "-x", "\\", "\n"])
paths = st.lists(pieces | st.text(max_size=4), max_size=4).map("/".join)


@quick
@given(paths | paths.map(lambda path: f"images/{path}"))
@example("images/" + "a" * 300)
@example("images/a\n")
def test_a_plain_path_is_one_with_nothing_against_it(path: str) -> None:
    fast = path_problem(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "_PLAIN", re.compile("(?!)"))
        assert fast == path_problem(path)


def _words_of(text: str) -> list[str]:
    """The words by definition: what is neither letter nor digit parts them."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parted = "".join(each if each.isalnum() else " " for each in folded)
    return [word for word in parted.split(" ") if word]


def _grams(text: str) -> set[tuple[str, ...]]:
    words = _words_of(text)
    return {tuple(words[at : at + GRAM]) for at in range(max(1, len(words) - GRAM + 1))} if words else set()


awkward = st.sampled_from([*" _-\n\0\x1c\x85\u2028\u00a0\u0301", "  ", *"İßﬁ²ÀÞÖàÿ÷µ", *"’…≤°×\u0338"])
histories = st.lists(awkward | st.sampled_from(["a", "b", "A", "é", "9"]), max_size=24).map("".join)


@quick
@given(histories | st.text(letters))
def test_a_text_is_spelled_as_defined(text: str) -> None:
    assert [word for word in normalised_words(text).decode().split(" ") if word] == _words_of(text)


@quick
@given(histories, histories)
def test_a_phrase_is_found_as_defined(history: str, phrase: str) -> None:
    words, sought = _words_of(history), _words_of(phrase)
    starts = range(len(words) - len(sought) + 1)
    expected = bool(sought) and any(words[at : at + len(sought)] == sought for at in starts)
    assert contains_phrase(normalised_words(history), phrase) is expected


@quick
@given(st.lists(st.tuples(st.sampled_from("abcdefg"), histories), max_size=12))
@example([("a", ""), ("b", ""), ("a", "x"), ("b", "x")])
def test_nearly_identical_texts_are_those_of_the_definition(texts: list[tuple[str, str]]) -> None:
    finder = SimilarTextFinder()
    expected = []
    for second, (split, text) in enumerate(texts):
        finder.add(split, normalised_words(text))
        best = (0.0, 0)
        for first, (other_split, other) in enumerate(texts[:second]):
            union = _grams(text) | _grams(other)
            if split != other_split and union:
                best = max(best, (len(_grams(text) & _grams(other)) / len(union), -first))
        if best[0] >= 0.8:
            expected.append((-best[1], second, best[0]))
    assert [tuple(match) for match in finder.matches()] == expected


@quick
@given(
    st.sets(
        st.lists(st.sampled_from(["a", "b", ".c", "d e", "é", "\\"]), min_size=1, max_size=3).map(tuple), max_size=9
    )
)
def test_the_listed_files_are_those_that_stand_there(tmp_path_factory: pytest.TempPathFactory, names: set[Any]) -> None:
    root = tmp_path_factory.mktemp("listing")
    (root / "images").mkdir()
    for name in names:
        file = root.joinpath("images", *(f"{part}_" for part in name[:-1]), name[-1])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = (file.relative_to(root) for file in (root / "images").rglob("*") if file.is_file())
    seen = {str(file) for file in found if not any(part.startswith(".") for part in file.parts)}
    listed = [*chain(*FolderImages(root).listing().values())]
    assert set(listed) == seen and len(listed) == len(seen)
