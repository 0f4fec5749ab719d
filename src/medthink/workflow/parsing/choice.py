"""Parsing of free replies: the option that a reply commits to.

Statements have three weights: those marked as final or filled into a form, then those that announce an answer or are
nothing but one, then those that only favour an option. The heaviest kind present decides, if it names one option only.
"""

import re
from collections.abc import Iterator
from typing import Any

from medthink.workflow.ask import Choice, Unparsed
from medthink.workflow.parsing import phrases
from medthink.workflow.parsing.claims import Claim, is_disowned, last_clause, line_before, read_claim
from medthink.workflow.parsing.lines import SENTENCE, read_closing, read_lines, read_whole_list
from medthink.workflow.parsing.options import Options
from medthink.workflow.parsing.plain import fold, make_plain
from medthink.workflow.parsing.replies import find_object, read_object, strip_code_fence

_MAX_NAME = 200
# Where a diagnosis ends and its grounds begin; a full stop after an initial ("E. coli") is no end.
_NAME_END = re.compile(
    r"\n|(?<=\w\w\w)[.;](?:\s|$)|,?\s(?:because|given|based on|due to the|as shown|as seen|since|supported by)(?!\w)",
    re.IGNORECASE,
)
_LEADING = re.compile(r"[\s:=\"'(\[_#-]{0,12}(?:(?:an?|the|most likely|probably|likely) ){0,3}", re.IGNORECASE)


def parse_open(text: str) -> Choice | Unparsed:
    """The one diagnosis that the text commits to, in its own words."""
    form = find_object(text) or {}
    said, explanation = form.get("answer"), form.get("explanation")
    names = [said] if isinstance(said, str) else _names(make_plain(text))
    distinct = {" ".join(name.lower().split()): name.strip() for name in names if name.strip()}
    if not distinct:
        return Unparsed("no diagnosis stated")
    if len(distinct) > 1:
        return Unparsed(f"several diagnoses: {'; '.join(sorted(distinct.values()))[:200]}")
    (name,) = distinct.values()
    return Choice(None, name, explanation if isinstance(explanation, str) else text.strip(), "lenient")


def _names(plain: str) -> list[str]:
    """The diagnoses announced as final, else those announced, else the reply itself where it is but a name."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for match in phrases.ANNOUNCED.finditer(plain):
        name = _name_at(plain, match.end()) if match["link"] else ""
        before = plain[max(0, match.start() - 30) : match.start()].rpartition("\n")[2]
        if name and not phrases.DISOWNED.search(before):
            found[bool(phrases.FINAL.search(before + match[0]))].append(name)
    if found[True] or found[False]:
        return found[True] or found[False]
    whole = plain.strip()
    return [_name_at(whole, 0)] if len(whole) <= _MAX_NAME and "\n" not in whole else []


def _name_at(plain: str, place: int) -> str:
    window = plain[place : place + 2 * _MAX_NAME]
    leading = _LEADING.match(window)
    name = window[leading.end() if leading else 0 :]
    end = _NAME_END.search(name)
    name = name[: end.start() if end else None].strip(" .\"'_)]")
    return name if len(name) <= _MAX_NAME else ""


_FIELD = re.compile(
    r"[\"'](?:(?:final|correct|selected|chosen|predicted|best|primary|most likely)[_ ]?)?"
    r"(?:answer|choice|prediction|option|letter|diagnosis|答案|答え|회답|정답)(?:[_ ]?(?:letter|option|choice))?[\"']"
    r"\s{0,4}:\s{0,4}"
    r"(?:\"((?:[^\"\\\n]|\\.){0,400})\"|'([^'\n]{0,400})')"
    r"(?!\s{0,2}(?:or|and|/|\|)\s)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?P<tag>(?:final_?)?(?:answer|diagnosis|choice)|conclusion)>([^<]{0,2000})</(?P=tag)>", re.IGNORECASE
)
# Tags that may hold other things: only a short text in them is an answer.
_SHORT_TAG = re.compile(
    r"<(?P<tag>final(?:_choice)?|option|prediction|result|output|ans|response|solution"
    r"|verdict)>\s{0,4}([^<\n]{1,60}?)\s{0,4}"
    r"</(?P=tag)>",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\s{0,2}\{(?:\s{0,2}\\[a-z]{1,12}\s{0,2}\{)?([^{}\n]{1,300})\}", re.IGNORECASE)
_OTHER_NAMES = ("result", "response", "output", "verdict", "decision", "label", "pred", "ans", "selected", "solution")
_NAMED_BY_LETTER = re.compile(r"(?<![\w'-])([a-z])[.:)\]]{1,2}\s?$")
_PLACEHOLDER = re.compile(
    r"|\.{2,3}|…|<.{0,60}>|\[[^\]]{2,60}\]|(?:[A-Z]\s{0,2}[|/,]\s{0,2}){3,25}(?:or )?[A-Z]|letter", re.IGNORECASE
)
# A letter that closes a word group ("hepatitis B") is part of a name, unless one of these words leads up to it.
_LEADS_ON = re.compile(r"(?<!\bthat)(?<!\bbecause)(?<!\bthink)(?<!\bbelieve)(?<=[A-Za-zÀ-ɏ0-9])[\s\"'(\[]{0,3}$")
# What may come between the start of a clause and an option's text that is its subject.
_JOINED = re.compile(r"(?<![A-Za-z])[A-Z]\s?(?:か|と|或|和|、|または|または選択肢|또는|나)\s?$")
_ASKED = re.compile(r"[^.。!\n]{0,12}\?")
_SHORT = 60
_ENDS_IN_LETTER = re.compile(r"(?:^|[\s(,;])\(?([A-Z])[\s.!?\"')]*$")
_ADDED = re.compile(r"(?<![a-z])or (?:perhaps |maybe |possibly |rather ){1,2}(?:option )?[A-Z]\W*$", re.IGNORECASE)
# What comes before a letter that is set against the answer, or is no option's.
_SPARED = re.compile(
    r"(?<![a-z])(?:not|no|nor|over|instead|than|from|like|unlike|exclude[sd]?|rules?|against|vs|versus|less|least"
    r"|runner-up|second"
    r"|next|alternativ\w*|differential|followed|possib\w+|other|others|hepatitis|type|vitamin|group|grade|class|stage"
    r"|segment|images?|figures?|panels?|category|kerley|wrong|incorrect|discuss\w*|consider\w*|compared"
    r"|and)(?![a-z])|n't",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"[\s\"'(\[-]*(?:(?:an?|the|that|i (?:think|believe)|i am sure|clearly|(?:option )?[a-z][.:)]|option [a-z])\s)*"
    r"[\s\"'(\[-]*"
)
_ANSWER_NAME = re.compile(
    r"(?:(?:final|correct|selected|chosen|predicted|best|primary|most_likely)_?)?"
    r"(?:answer|choice|prediction|option|letter|diagnosis|答案|答え|정답)(?:_?(?:letter|option|choice))?",
    re.IGNORECASE,
)


def parse_choice(text: str, options: dict[str, str]) -> Choice | Unparsed:
    """The option that the text commits to; without options, the diagnosis it names."""
    if not options:
        return parse_open(text)
    known = Options.of(options)
    letters = _committed(text, known)
    if isinstance(letters, Unparsed):
        return letters
    if len(letters) > 1:
        return Unparsed(f"several answers: {', '.join(sorted(letters))}")
    (letter,) = letters
    return Choice(letter, options[letter], _explanation(text), "lenient")


def _committed(text: str, known: Options) -> frozenset[str] | Unparsed:
    """The letters named by the heaviest kind of statement in the text."""
    whole = read_object(strip_code_fence(text)) or {}
    fields = [value for name, value in whole.items() if _ANSWER_NAME.fullmatch(name.replace(" ", "_"))]
    fields = fields or [whole[name] for name in _OTHER_NAMES if name in whole]
    if fields:
        return _in_fields(fields, known)
    if known.letters == set(whole):
        return _affirmed(whole)
    plain = make_plain(text)
    filled = list(_filled_in(plain))
    claims = [Claim(letters, end) for value, end in filled if (letters := _read_value(value, known))]
    announced = list(_announced(plain, known))
    final = [claim for claim in announced if claim.is_final]
    # Words that call an answer final outweigh the forms filled in before them.
    first_final = min((claim.end for claim in final), default=0)
    claims = [claim for claim in claims if claim.end >= first_final] + final
    if not claims and filled:
        return Unparsed(_no_option(filled[-1][0]))
    if not claims and text.lstrip().startswith('{"') and not text.rstrip("`\n ").endswith("}"):
        return Unparsed("a JSON object that breaks off before its answer")
    claims = claims or [
        *announced,
        *_otherwise_stated(plain, known),
        *read_lines(plain, known),
        *read_whole_list(plain, known),
    ]
    claims = claims or list(_after(phrases.FAVOURED, plain, known)) or list(read_closing(plain, known))
    return _settle(claims, plain, known)


def _in_fields(fields: list[Any], known: Options) -> frozenset[str] | Unparsed:
    """What the answer fields of a JSON object name together; a further field in other words adds nothing."""
    said = [text for value in fields for text in _texts_of(value)]
    named = [read_claim(make_plain(text), known) for text in said]
    if not said or not named[0]:
        return Unparsed(_no_option(said[0] if said else ""))
    return frozenset().union(*(letters for letters in named if letters))


def _affirmed(verdicts: dict[str, Any]) -> frozenset[str] | Unparsed:
    """The one option that is true, or has more than half, in an object with an entry for each."""
    shares = {letter: float(said) for letter, said in verdicts.items() if isinstance(said, bool | int | float)}
    best = [letter for letter, share in shares.items() if share > sum(shares.values()) / 2]
    return frozenset(best) if len(shares) == len(verdicts) and best else Unparsed("no option stands out")


def _texts_of(value: Any) -> list[str]:
    """The texts in a field that may also hold a list of them, or a letter beside its text."""
    if isinstance(value, dict):
        value = list(value.values())
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]


def _settle(claims: list[Claim], plain: str, known: Options) -> frozenset[str] | Unparsed:
    if not claims:
        return Unparsed("no answer stated")
    if phrases.REVISED.search(plain, max(claim.end for claim in claims)):
        return Unparsed("the answer is taken up again without a clear end")
    letters = frozenset[str]().union(*(claim.letters for claim in claims))
    others = _named_afterwards(plain[max(claim.end for claim in claims) :]) & known.letters - letters
    return letters | others


def _named_afterwards(rest: str) -> frozenset[str]:
    """The letters that the rest of the sentence, or a short one after it, ends on: "B. Rather C."."""
    found = set()
    for place, sentence in enumerate(SENTENCE.split(rest)):
        match = _ENDS_IN_LETTER.search(sentence)
        is_near = place == 0 or len(sentence) < _SHORT
        if match and is_near and (_ADDED.search(sentence) or not _SPARED.search(sentence)):
            found.add(match[1])
    return frozenset(found)


def _no_option(value: str) -> str:
    return f"the answer given is no option: {value.strip()[:80]!r}"


def _explanation(text: str) -> str:
    said = (find_object(text) or {}).get("explanation")
    return said if isinstance(said, str) else text.strip()


def _filled_in(plain: str) -> Iterator[tuple[str, int]]:
    """Values in an answer field, an answer tag or a box; a form's own placeholder is none."""
    for pattern in (_FIELD, _TAG, _SHORT_TAG, _BOXED):
        for match in pattern.finditer(plain):
            value = next(group for group in match.groups()[::-1] if group is not None)
            is_shown = phrases.TEMPLATE.search(line_before(plain, match.start())) or phrases.TEMPLATE_AFTER.match(
                plain, match.end()
            )
            if not _PLACEHOLDER.fullmatch(value.strip()) and not is_shown:
                yield value, match.end()


def _read_value(value: str, known: Options) -> frozenset[str] | None:
    letters = read_claim(value, known)
    if letters is None:
        said = [*_announced(value, known), *_otherwise_stated(value, known)]
        return frozenset().union(*(claim.letters for claim in said)) or None
    return letters


def _announced(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "the answer is …"."""
    for match in phrases.ANNOUNCED.finditer(plain):
        letters = read_claim(known.window(plain, match.end()), known) if match["link"] or match["answer"] else None
        if letters is None:
            continue
        if not is_disowned(plain, match.start()):
            words = last_clause(plain[max(0, match.start() - 25) : match.start()]) + match[0]
            yield Claim(letters, match.end(), bool(phrases.FINAL.search(words)))


def _otherwise_stated(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "I choose …", "Therefore, …" and "… is correct"."""
    yield from _after(phrases.CHOSEN, plain, known)
    yield from _after(phrases.CONCLUDED, plain, known)
    yield from _praised(plain, known)
    yield from _praised_texts(plain, known)


def _after(pattern: re.Pattern[str], plain: str, known: Options) -> Iterator[Claim]:
    for match in pattern.finditer(plain):
        letters = read_claim(known.window(plain, match.end()), known)
        if letters and not is_disowned(plain, match.start()):
            yield Claim(letters, match.end())


def _praised(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "(C) is correct"; a letter inside a name ("hepatitis B is …") is none."""
    for match in phrases.PRAISED.finditer(plain):
        letter = match[1].upper()
        if letter not in known.letters:
            continue
        before = plain[max(0, match.start() - 25) : match.start()]
        if _JOINED.search(before):
            continue
        before = last_clause(before)
        is_alone = match[1].isupper() and not _LEADS_ON.search(before)
        is_denied = phrases.DENIED.match(plain, match.end(1)) or _ASKED.match(plain, match.end())
        if (is_alone or phrases.NAMED.search(before)) and not is_denied and not is_disowned(plain, match.start()):
            yield Claim(frozenset(letter), match.end())


def _praised_texts(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "Sarcoidosis is the most likely diagnosis"; the end of a longer name is none."""
    lowered = fold(plain)
    for letter, text in known.names:
        place = lowered.find(text)
        while place >= 0:
            praise = phrases.PRAISE.match(lowered, place + len(text))
            before = last_clause(lowered[max(0, place - 25) : place])
            if praise and _OPENS.fullmatch(before) and not is_disowned(lowered, place):
                yield Claim(frozenset(letter) | _headed(lowered, place, known), praise.end())
            place = lowered.find(text, place + len(text))


def _headed(lowered: str, place: int, known: Options) -> frozenset[str]:
    """The letter before a text as its name: "B: Lymphoma is …"."""
    match = _NAMED_BY_LETTER.search(lowered, max(0, place - 8), place)
    return frozenset(match[1].upper()) & known.letters if match else frozenset()
