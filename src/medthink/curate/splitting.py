"""A stated differential diagnosis as a list of names: the right one protected first, then split outside brackets."""

import re

_CITATION = re.compile(r"\s*\[\d+(?:\s*[,–-]\s*\d+)*\]")
_MARKER = re.compile(r"^\s*(?:[-*•·–—]+|\(?\d{1,2}[.):]|[a-zA-Z][.)])\s+")
_LAST = re.compile(r"^(?:and|or)\s+", re.I)
# Fragments that continue the previous item: lower-case text, or the number of a type, grade or stage.
_GOES_ON = re.compile(r"[a-zß-ÿ]|(?i:type|grade|stage|group|WHO)\b")
_PROTECTED = "\0"


def split_differential(stated: str | tuple[str, ...], gold: str) -> list[str]:
    """The distinct names of the list, in order."""
    if not isinstance(stated, str):
        return _tidy(list(stated))
    protected = _protect(stated, gold)
    items = _split(protected)
    return _tidy([item.replace(_PROTECTED, gold) for item in items])


def _protect(stated: str, gold: str) -> str:
    """The list with a placeholder for the right name, which may contain commas."""
    start = stated.find(gold) if gold else -1
    while start >= 0:
        end = start + len(gold)
        is_whole = (start == 0 or not stated[start - 1].isalnum()) and (end == len(stated) or not stated[end].isalnum())
        before, after = stated[:start].rstrip(), stated[end:].lstrip()
        if is_whole and (not before or before[-1] in ",;\n|.-•") and (not after or after[0] in ",;\n|."):
            return stated[:start] + _PROTECTED + stated[end:]
        start = stated.find(gold, end)
    return stated


def _split(stated: str) -> list[str]:
    """By the strongest separator there is: double semicolons, lines, bars, semicolons, else commas."""
    if ";;" in stated:
        return stated.split(";;")
    lines = [line for line in stated.splitlines() if line.strip()]
    if len(lines) > 1:
        return lines
    for separator in ("|", ";"):
        if separator in stated:
            return _outside_brackets(stated, separator)
    return _join_fragments(_outside_brackets(stated, ","))


def _outside_brackets(text: str, separator: str) -> list[str]:
    items, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]" and depth > 0)
        if sign == separator and depth == 0:
            items.append("")
        else:
            items[-1] += sign
    return items


def _join_fragments(items: list[str]) -> list[str]:
    joined: list[str] = []
    for item in items:
        # In lists of only lower-case names they are not fragments: the first item is lower-case too.
        goes_on = joined and _PROTECTED not in joined[-1] and _is_fragment(item.strip(), joined[0].strip())
        if goes_on and not _LAST.match(item.strip()):
            joined[-1] += "," + item
        else:
            joined.append(item)
    return joined


def _is_fragment(item: str, first: str) -> bool:
    if item.startswith(_PROTECTED) or not item:
        return False
    starts = _GOES_ON.match(item)
    if starts is None:
        return False
    is_lower = item[0].islower()
    return not is_lower or not first[:1].islower()


def _tidy(items: list[str]) -> list[str]:
    found: dict[str, str] = {}
    for item in items:
        name = _LAST.sub("", _MARKER.sub("", _CITATION.sub("", item)).strip()).strip(" .;,\t")
        if name:
            found.setdefault(name.casefold(), name)
    return list(found.values())
