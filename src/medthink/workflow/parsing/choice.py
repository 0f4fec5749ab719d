"""Which option a free reply commits to.

Statements are collected by weight: what calls itself final or fills in a form, then what announces an answer or is
nothing but one, then what merely favours one. The heaviest kind present decides, and only if it names one option.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from medthink.workflow.ask import Choice, Unparsed
from medthink.workflow.parsing import phrases
from medthink.workflow.parsing.claims import Options, make_plain, read_claim
from medthink.workflow.parsing.phrases import NOT_THIS_BUT
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


_LEADS = (
    # English
    "so", "then", "well", "definitely", "certainly", "clearly", "surely", "obviously", "undoubtedly", "presumably",
    "no doubt", "without (?:a |any )?doubt", "(?:almost certainly|most probably|most likely|probably|likely)",
    "it's", "it is", "it must be", "it has to be", "it would be", "this is", "that's", "that is",
    "i'm (?:confident|certain|sure)(?: that)?", "i am (?:confident|certain|sure)(?: that)?",
    # German, French
    "definitiv", "eindeutig", "sicher", "ganz klar", "auf jeden fall", "am ehesten", "wahrscheinlich", "es ist",
    "das ist", "ich tippe auf", "certainement", "sans (?:aucun )?doute", "probablement", "c'est", "je dirais",
    # Spanish, Italian, Portuguese, Dutch
    "sin duda", "definitivamente", "seguramente", "probablemente", "es", "la correcta es", "(?:yo )?diría", "elegiría",
    "sicuramente", "certamente", "probabilmente", "è", "direi", "com certeza", "provavelmente", "é", "eu diria",
    "zeker", "waarschijnlijk",
)  # fmt: skip
_LEAD = re.compile(
    rf"(?:(?:(?:{'|'.join(_LEADS)})(?![a-zà-ÿ]),?|{NOT_THIS_BUT})\s{{0,2}}){{0,4}}"
    r"(?:(?:my pick|my vote|ans|dx|gabarito)\s?[:=.-]\s?)?"
    r"(?:(?:肯定|应该|應該|一定)是|おそらく)?"
    r"(?-i:(?:[Tt]he|an?|[Dd]ie|[Dd]er|[Dd]as|[Ll]e|[Ll]a|[Ee]l|[Ii]l|o)\s(?=\w))?"
    r"(?:(?:option|choice|letter|answer|antwort|réponse|lettre|opción|letra|opzione|lettera|opção|alternativa"
    r"|optie|вариант)\s{1,2}|选项|選項|選択肢|보기\s{0,2})?",
    re.IGNORECASE,
)
_TRAIL = re.compile(r"(?:,?\s(?:it is|it's|for sure|definitely|without (?:a )?doubt|ist es)|正确|正確)$", re.IGNORECASE)
_MARKS = " \t\"'()[]{}.,:;!_$#<>。！，"
_LETTER_AND_TEXT = re.compile(r"([A-Za-z])[\s.:)(\]\"',-]{1,4}(.+)")


def read_short_statement(line: str, options: Options) -> frozenset[str] | None:
    """The option that the line states, or None where it says anything beside that."""
    said = line.strip(_MARKS)
    if named := options.spelled(said):
        # An option may itself begin with a word that leads on: "Likely reactive node".
        return named
    said = _TRAIL.sub("", said[_end_of_lead(said) :]).strip(_MARKS)
    if len(said) == 1:
        # A small letter may be a word of its own.
        return frozenset({said} & options.letters) or None
    both = _LETTER_AND_TEXT.fullmatch(said)
    named = options.spelled(said)
    if both and not named:
        named = options.spelled(both[2]) & {both[1].upper()}
    return named or None


def _end_of_lead(said: str) -> int:
    lead = _LEAD.match(said)
    return lead.end() if lead else 0


_FIELD = re.compile(
    r"[\"'](?:final[_ ]?)?(?:answer|choice|prediction|option|letter)(?:[_ ]?(?:letter|option|choice))?[\"']"
    r"\s{0,4}:\s{0,4}"
    r"(?:\"((?:[^\"\\\n]|\\.){0,400})\"|'([^'\n]{0,400})')"
    r"(?!\s{0,2}(?:or|and|/|\|)\s)",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(?:final_)?answer>([^<]{0,2000})</(?:final_)?answer>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s{0,2}\{(?:\s{0,2}\\[a-z]{1,12}\s{0,2}\{)?([^{}\n]{1,300})\}", re.IGNORECASE)
_LINE_LETTER = re.compile(r"^[ \t>#(\[-]{0,6}(?:option |choice )?([A-Za-z])[.):\]]", re.MULTILINE | re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.!?\n,;:。，；]|(?<![a-z])(?:so|therefore|thus|hence|but|and)(?![a-z])", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"|\.{2,3}|…|<.{0,60}>|\[[^\]]{2,60}\]|(?:[A-Z]\s{0,2}[|/,]\s{0,2}){3,25}(?:or )?[A-Z]|letter", re.IGNORECASE
)
# A letter that closes a word group ("hepatitis B") is part of a name, unless one of these words leads up to it.
_LEADS_ON = re.compile(r"(?<!\bthat)(?<!\bbecause)(?<!\bthink)(?<!\bbelieve)(?<=\w)[\s\"'(\[]{0,3}$")
# What may stand between the start of a clause and an option's text that is its subject.
_OPENS = re.compile(r"[\s\"'(\[-]*(?:(?:an?|the|that|i think|option [a-z][.:)]?)\s)*[\s\"'(\[-]*")
_ANSWER_NAMES = ("answer", "final_answer", "choice", "prediction", "option", "letter")


class Claim(NamedTuple):
    """The letters that one statement names, where it ends, and whether it calls itself final."""

    letters: frozenset[str]
    end: int
    is_final: bool = False


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
    for name in _ANSWER_NAMES:
        if isinstance(value := whole.get(name), str):
            return read_claim(make_plain(value), known) or Unparsed(_no_option(value))
    plain = make_plain(text)
    filled = list(_filled_in(plain))
    claims = [Claim(letters, end) for value, end in filled if (letters := _read_value(value, known))]
    announced = list(_announced(plain, known))
    claims += [claim for claim in announced if claim.is_final]
    if not claims and filled:
        return Unparsed(_no_option(filled[-1][0]))
    claims = claims or [*announced, *_otherwise_stated(plain, known), *_lines(plain, known)]
    claims = claims or list(_after(phrases.FAVOURED, plain, known))
    return _settle(claims, plain)


def _settle(claims: list[Claim], plain: str) -> frozenset[str] | Unparsed:
    if not claims:
        return Unparsed("no answer stated")
    if phrases.REVISED.search(plain, max(claim.end for claim in claims)):
        return Unparsed("the answer is taken up again without a clear end")
    return frozenset().union(*(claim.letters for claim in claims))


def _no_option(value: str) -> str:
    return f"the answer given is no option: {value.strip()[:80]!r}"


def _explanation(text: str) -> str:
    said = (find_object(text) or {}).get("explanation")
    return said if isinstance(said, str) else text.strip()


def _filled_in(plain: str) -> Iterator[tuple[str, int]]:
    """Values in an answer field, an answer tag or a box; a form's own placeholder is none."""
    for pattern in (_FIELD, _TAG, _BOXED):
        for match in pattern.finditer(plain):
            value = next(group for group in match.groups() if group is not None)
            if not _PLACEHOLDER.fullmatch(value.strip()):
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
        if not _is_disowned(plain, match.start()):
            words = _last_clause(plain[max(0, match.start() - 25) : match.start()]) + match[0]
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
        if letters and not _is_disowned(plain, match.start()):
            yield Claim(letters, match.end())


def _praised(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "(C) is correct"; a letter inside a name ("hepatitis B is …") is none."""
    for match in phrases.PRAISED.finditer(plain):
        letter = match[1].upper()
        if letter not in known.letters:
            continue
        before = _last_clause(plain[max(0, match.start() - 25) : match.start()])
        is_alone = match[1].isupper() and not _LEADS_ON.search(before)
        if (is_alone or phrases.NAMED.search(before)) and not _is_disowned(plain, match.start()):
            yield Claim(frozenset(letter), match.end())


def _praised_texts(plain: str, known: Options) -> Iterator[Claim]:
    """Statements such as "Sarcoidosis is the most likely diagnosis"; the end of a longer name is none."""
    lowered = plain.lower()
    for letter, text in known.texts:
        place = lowered.find(text)
        while place >= 0:
            praise = phrases.PRAISE.match(lowered, place + len(text))
            before = _last_clause(lowered[max(0, place - 25) : place])
            if praise and _OPENS.fullmatch(before) and not _is_disowned(lowered, place):
                yield Claim(frozenset(letter), praise.end())
            place = lowered.find(text, place + len(text))


def _lines(plain: str, known: Options) -> Iterator[Claim]:
    """The first and the last line where they are an answer; lines that go through the options are not."""
    listed = {letter.upper() for letter in _LINE_LETTER.findall(plain)} & known.letters
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    if not lines or len(listed) > 1:
        return
    first = read_short_statement(lines[0], known) or read_claim(lines[0], known, is_line=True)
    if first:
        yield Claim(first, 0)
    last = read_claim(lines[-1], known, is_line=True) if len(lines[-1]) <= known.longest + 12 else None
    if last := read_short_statement(lines[-1], known) or last:
        yield Claim(last, len(plain))


def _is_disowned(plain: str, place: int) -> bool:
    """Whether what stands before a statement says that it is not the reply's own answer."""
    before = plain[max(0, place - 200) : place]
    sentence = before[max(map(before.rfind, ".!?\n。")) + 1 :]
    return bool(phrases.SUPPOSED.match(sentence) or phrases.DISOWNED.search(_last_clause(sentence)))


def _last_clause(sentence: str) -> str:
    end = 0
    for match in _CLAUSE_END.finditer(sentence):
        end = match.end()
    return sentence[end:]
