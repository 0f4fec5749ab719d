"""What a reply says by its shape alone: short statements, first and last lines, whole lists, the closing sentence."""

import re
from collections.abc import Iterator
from itertools import pairwise

from medthink.workflow.parsing import phrases
from medthink.workflow.parsing.claims import Claim, read_claim
from medthink.workflow.parsing.options import Options
from medthink.workflow.parsing.phrases import NOT_THIS_BUT
from medthink.workflow.parsing.plain import fold

_LEADS = (
    # English
    "so", "then", "well", "definitely", "certainly", "clearly", "surely", "obviously", "undoubtedly", "presumably",
    "no doubt", "without (?:a |any )?doubt", "(?:almost certainly|most probably|most likely|probably|likely)",
    "it's", "it is", "it must be", "it has to be", "it would be", "this is", "that's", "that is", "choose", "edit:",
    "overall", "hence", "therefore", "thus", "ergo", "taken together", "all in all", "in (?:summary|conclusion"
    "|short)",
    "(?:conclusion|impression|ans(?:wer)?) ?[:=]",
    "if (?:i|one) (?:really )?(?:must|ha(?:ve|d) to|were to) (?:choose|pick|guess|decide)",
    "(?:rather than|instead of) (?:an? )?[^,.;]{1,60},",
    "i'm (?:confident|certain|sure)(?: that)?", "i am (?:confident|certain|sure)(?: that)?",
    # German, French
    "definitiv", "eindeutig", "sicher", "ganz klar", "auf jeden fall", "am ehesten", "wahrscheinlich", "es ist",
    "das ist", "ich tippe auf", "certainement", "sans (?:aucun )?doute", "probablement", "c'est", "je dirais",
    # Spanish, Italian, Portuguese, Dutch
    "sin duda", "definitivamente", "seguramente", "probablemente", "es", "la correcta es", "(?:yo )?diría",
    "elegiría",
    "sicuramente", "certamente", "probabilmente", "è", "direi", "com certeza", "provavelmente", "é", "eu diria",
    "zeker", "waarschijnlijk",
    # What draws the conclusion, in all of them
    "insgesamt(?: am ehesten)?", "somit", "daher", "fazit:", "donc", "en conclusion", "por (?:lo )?tanto",
    "conclusi[óo]n[ei]?:", "quindi", "dunque", "portanto", "dus", "したがって、?", "よって",
    "以上より、?", "結論:", "因此,?", "所以,?", "综上,?", "따라서", "그러므로",
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
_TRAIL = re.compile(
    r"(?:,?\s(?:(?:rather than|instead of|and not|not) (?:an? |the )?[^.,;?]{1,60}|it must be|it is|it's"
    r"|for sure|definitely|without (?:a )?doubt|ist es)|正确|正確|입니다|이다"
    r"|です)$",
    re.IGNORECASE,
)
_MARKS = " •·\t\"'()[]{}.,:;!_$#<>✓。！，"
_LETTER_AND_TEXT = re.compile(r"([A-Za-z])[\s.:)(\]\"',-]{1,4}(.+)")
_TEXT_AND_LETTER = re.compile(r"(.+?)\s?\((?:option )?([A-Z])\)?")
# A line that goes through the options: a letter, or an option's text, at its head.
_ENTRY = re.compile(
    r"[\s>#(\[-]{0,6}(?:\d{1,2}[.)]\s{1,2})?(?:option |choice )?([A-Z])(?:[.):\]]|\s-\s"
    r"|\s\(?\d{1,3}\s?%)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s{0,6}(?:[-•·]|\d{1,2}[.)])\s")


def read_short_statement(line: str, options: Options) -> frozenset[str] | None:
    """The option that the line states, or None if it says anything else."""
    said = line.strip(_MARKS)
    if line.rstrip().endswith("?") or line.lstrip().startswith("?"):
        return None
    if named := options.spelled(said):
        # An option may itself begin with a word that leads on: "Likely reactive node".
        return named
    said = _TRAIL.sub("", said[_end_of_lead(said) :]).strip(_MARKS)
    if len(said) == 1:
        # A small letter may be a word of its own.
        return frozenset({said} & options.letters) or None
    named = options.spelled(said)
    if not named and (lettered := _TEXT_AND_LETTER.fullmatch(said)):
        return options.spelled(lettered[1]) & {lettered[2]} or None
    both = _LETTER_AND_TEXT.fullmatch(said)
    if both and not named:
        named = options.spelled(both[2]) & {both[1].upper()}
    return named or None


def _end_of_lead(said: str) -> int:
    lead = _LEAD.match(said)
    return lead.end() if lead else 0


def read_lines(plain: str, known: Options) -> Iterator[Claim]:
    """The first and the last line where they are an answer; lines that go through the options are not."""
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    if not lines:
        return
    entries = _entries(lines, known)
    if (first := _read_end(lines[0], known) or _read_first_sentence(lines[0], known)) and not _is_listed(entries, 0):
        yield Claim(first, 0)
    for heading, line in pairwise(lines):
        if _ANSWER_HEADING.fullmatch(heading) and (stated := _read_end(line, known)):
            yield Claim(stated, plain.index(line))
    is_short = len(lines[-1]) <= known.longest + 12
    if is_short and (last := _read_end(lines[-1], known)) and not _is_listed(entries, -1):
        yield Claim(last, plain.rindex(lines[-1]))


_ANSWER_HEADING = re.compile(
    r"[#\s]{0,8}(?:step \d:?\s|\d\.\s)?(?:(?:my|the|final|most likely|correct|best|likely) ){0,3}"
    r"(?:answer|diagnosis|conclusion|choice|verdict)\s?:?",
    re.IGNORECASE,
)
# A full stop, a letter's too, that begins a new sentence; the mark stays with its sentence.
_STATEMENT_END = re.compile(r"(?:(?<=[^\s.][^\s.][.!?])|(?<=\s[A-Z]\.))\s{1,2}(?=[A-Z])")


def _read_first_sentence(line: str, known: Options) -> frozenset[str] | None:
    """The option that the first of several sentences states, if none of the others states another."""
    first, *others = _STATEMENT_END.split(line)
    rest = line[len(first) :]
    if not others or phrases.DENIED.match(rest) or known.begins(rest.strip()):
        return None
    stated = read_short_statement(first, known)
    return stated if all(read_short_statement(one, known) in (None, stated) for one in others) else None


def _read_end(line: str, known: Options) -> frozenset[str] | None:
    is_asked = line.rstrip(_MARKS).endswith("?")
    if is_asked or len(set(_INLINE.findall(line)) & known.letters) > 1 or phrases.REVISED.search(line):
        return None
    return read_short_statement(line, known) or read_claim(line, known, is_line=True)


def _lettered(line: str, known: Options) -> str:
    match = _ENTRY.match(line)
    is_entry = match and match[1].upper() in known.letters and line[match.end() :].strip(_MARKS)
    return match[1].upper() if match and is_entry else ""


def _entry(line: str, known: Options) -> str:
    """The letter of the option that the line is about, "" if none; a letter with nothing behind it is no entry."""
    if letter := _lettered(line, known):
        return letter
    bullet = _BULLET.match(line)
    named = known.spelled(line[bullet.end() if bullet else 0 :].strip(_MARKS))
    return min(named, default="")


def _entries(lines: list[str], known: Options) -> list[str]:
    """For each line the letter of the option it goes into; an option's bare text counts beside both ends alone."""
    ends = {0, 1, len(lines) - 2, len(lines) - 1}
    return [_entry(line, known) if place in ends else _lettered(line, known) for place, line in enumerate(lines)]


def _is_listed(entries: list[str], place: int) -> bool:
    """Whether the line is one of several that go through the options, rather than an answer beside such a list."""
    own, rest = entries[place], entries[1:] if place == 0 else entries[:-1]
    if not own or not rest:
        return False
    # A list goes through the options in their order; the answer before the list of the others need not.
    return own in rest or (own < rest[0] if place == 0 else "" < rest[-1] < own)


_YES = r"yes|correct|true|right|most likely|✓|正确|正確|对"
_NO = r"no(?![a-z])|not(?![a-z])|incorrect|wrong|false|unlikely|less likely|excluded|ruled out|✗|不|错|錯|否"
_VERDICT = re.compile(
    rf"(?<![\w'-])([A-Z])\s?[.:=)\]-]{{0,2}}\s{{0,2}}\(?(?:(?P<share>\d{{1,3}}(?:\.\d{{1,2}})?\s?%|0?\.\d{{1,3}})"
    rf"|(?P<yes>{_YES})|(?P<no>{_NO}))",
    re.IGNORECASE,
)
# The same at the end of a line about an option: "- B. Sarcoidosis ✗".
_VERDICT_OF_LINE = re.compile(
    rf"^[ \t>#-]{{0,6}}([A-Z])[.):]\s[^\n]{{2,80}}?[\s:(-]+(?:(?P<share>\d{{1,3}}(?:\.\d{{1,2}})?\s?%)"
    rf"|(?P<yes>{_YES})|(?P<no>{_NO}))[\s.)]*$",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED_LINE = re.compile(
    r"^[ \t>#-]{0,6}(?:\d{1,2}[.)]\s)?([A-Z])[.):]\s[^\n]{2,80}?\s(?:\((?:the )?(?:most likely|best|correct|✓)"
    r"(?: answer| diagnosis| fit)?\)|✓)[\s.]*$",
    re.IGNORECASE | re.MULTILINE,
)
_VERDICTS = (_VERDICT, _VERDICT_OF_LINE)
# An entry of a list that goes through the options in one line.
_INLINE = re.compile(
    r"(?<![\w'-])(?-i:([A-Z]))(?:[:)]\s(?!(?:is|was|can|are)\s)|\s?\(\d|\s-\s(?!>)|\s?[✓✗]|\s?(?:\d{1,3}\s?%"
    r"|0?\.\d)|不?(?:正确|正確)|[错錯对不])",
    re.IGNORECASE,
)


def read_whole_list(plain: str, known: Options) -> Iterator[Claim]:
    """The one option affirmed, or given more than half, in a list that goes through all of them."""
    listed = ([match for match in one.finditer(plain) if match[1] in known.letters] for one in _VERDICTS)
    found = next((one for one in listed if sorted(match[1] for match in one) == sorted(known.letters)), [])
    best = [match for match in found if match["yes"]]
    if not best and found and all(match["share"] for match in found):
        best = [match for match in found if _share(match["share"]) > 0.5]
    elif any(match["share"] for match in found):
        return
    if len(best) == 1:
        yield Claim(frozenset(best[0][1]), found[-1].end())
    marked = [match for match in _MARKED_LINE.finditer(plain) if match[1] in known.letters]
    if len(marked) == 1 and not found:
        yield Claim(frozenset(marked[0][1]), marked[0].end())


def _share(said: str) -> float:
    return float(said.rstrip("% ")) / 100 if "%" in said else float(said)


SENTENCE = re.compile(
    r"(?:(?<=[^\s.][^\s.])|(?<=[A-Z] \d))(?<!\bvs)(?<!\b[DM]r)(?<!\bFig)(?<![\u3040-\ud7af][A-Z])[.!?](?=\s|$)"
    r"|[。！？]|\n"
)
# What is said after the answer and is no part of it.
_COURTESY = re.compile(
    r"(?:let me know|please (?:note|consult|let)|note that|i hope|this is (?:not|no) |disclaimer|for educational)",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"(?<![a-zà-ÿ])(?:could|can|may|might|unknown|possibl[ey]|perhaps|maybe|nothing|none|neither|nor|versus|vs|or"
    r"|differen[zt]ial\w*|consider(?:ed|ing)?|rule"
    r"|exclu\w*|history|known|prior|previous|no|not|without|less|least|unlikely|mimic\w*|unclear|if|unless|whether"
    r"|suspect\w*|suspicion|recommend\w*|against|evidence|associated|follow-up|test\w*|serology|such as|e\.g|example"
    r"|doubt|question\w*|indication|comparison|ddx|dd|clinical|request\w*|treated|need\w*|confirm\w*|title"
    r"|referral|original|common|cause|teaching|dangerous|other|staging|status|shows?|would|should|oder|ou|nicht"
    r"|kein\w*|pas|non|não|nie|möglich\w*|könnten?|wäre|ausgeschlossen|verdacht|second|next|alternativ\w*|runner-up"
    r"|wrong|incorrect|false|rejected|mistake|trap|distractor|tempt\w*|others|students?|said|says|key|compare|query"
    r"|wonder|refuse|asked|pending|screening|convinced|anything|everything but|typically|usually|often|sometimes"
    r"|commonly|family|report|options?|choices?|auszuschließen|zustand nach|z\.\s?n|gegen|falsch|meint"
    r"|spricht gegen|exclure|écarter"
    r"|évoquer|peu|autre|confrère|descartar|podría|otra|colega|escludere|potrebbe|altra|excluir|poderia|outra)"
    r"(?![a-zà-ÿ])|n't|\?|需|既往|疑|待|不|非|或|否|排除|除外|排查|鉴别|鑑別|如|감별|배제|제외|可能|かも|ない"
    r"|아니|수 있",
    re.IGNORECASE,
)
_DENIED_NAME = re.compile(
    r"(?<![a-z])(?:not|no|neither|nor|without|excludes?|rules out)\s(?:an?\s)?[^,;:.()-]{1,60}(?=[,;:.-])", re.I
)
_CLAUSE = re.compile(r"[,;:]\s|\s-\s")
_LETTER_LAST = re.compile(
    r"(?:^(?:given|based on|considering|taking|if (?:i|one|forced))\W[^.\n]{0,80}[,:]\s(?:option )?([A-Z])"
    r"|\((?P<bracketed>[A-Z])\)|\((?:option |choice |answer |选项)([A-Z])\)|[,:;-]\s(?:i\.e\.,?\s|so\s)?(?:option"
    r"|choice|answer)\s([A-Z])|[,:;-]\s(?:i\.e\.|that is|so),?\s([A-Z])|^[^,]*[^,\s\d],\s(?P<bare>[A-Z])"
    r"|(?:->|=>)\s?(?:option |choice )?([A-Z])|(?:this|that) (?:is|corresponds to|matches|points to"
    r"|must be) (?:option )?([A-Z])"
    r"|^(?:assistant|conclusion|overall|impression"
    r"|after (?:\w+ ){0,2}review):\s([A-Z]))[\s.\"']{0,3}$",
    re.IGNORECASE,
)
_LEADS_TO_NAME = re.compile(
    r"(?:^|[,;:]\s|、|(?:patient|child|boy|girl|man|woman|infant|lesion) has|(?<=[a-z]{2})\.\s?|\s-\s|(?:考虑"
    r"|诊断|診断は?|符合|为|是|진단은?)\s?|(?:^|\s)(?:(?:this|it"
    r"|that|diagnosis|answer|what remains[^.]{0,90}) (?:is|was|must be"
    r"|has to be|would be)|it's|that's|call it|call this|diagnosis of|diagnostic of|pathognomonic (?:of|for)"
    r"|typical (?:of|for)|classic (?:of|for)|characteristic (?:of|for)|point(?:s|ing)? to|argues? for|(?:case"
    r"|example|picture|appearances?|features|signs) of"
    r"|in favou?r of|best fit"
    r"|indicates?|favou?rs?|leaves|makes|therefore|so|thus|hence))"
    r"\s{0,2}(?:an? |the |most likely )?$",
    re.IGNORECASE,
)


def read_closing(plain: str, known: Options) -> Iterator[Claim]:
    """The option that the last sentence ends on, where that sentence affirms it and names no other."""
    sentences = [one.strip() for one in SENTENCE.split(plain)]
    sentences = [one for one in sentences if one.strip(_MARKS) and not _COURTESY.match(one)]
    if not sentences or plain.rstrip(_MARKS + "\n").endswith("?") or _BULLET.match(sentences[-1]):
        return
    last = sentences[-1]
    if short := read_short_statement(last, known):
        entries = {_lettered(line, known) for line in plain.splitlines()} | set(_INLINE.findall(plain))
        is_entry = bool(_ENTRY.match(last)) and len(entries & known.letters) > 1
        yield from () if is_entry else [Claim(short, len(plain))]
        return
    if phrases.SUPPOSED.match(last) or phrases.REVISED.search(last) or phrases.OTHERS.search(last):
        return
    lettered = _CLAUSE.split(last)[-1]
    if _LETTER_AND_TEXT.fullmatch(lettered.strip(_MARKS)) and (short := read_short_statement(lettered, known)):
        yield from () if _UNSURE.search(last[: -len(lettered)]) else [Claim(short, len(plain))]
        return
    named = _last_letter(last, known) | _last_name(fold(last), known)
    if named and len(set(_INLINE.findall(last)) & known.letters) < 2:
        yield Claim(named, len(plain))


def _last_letter(sentence: str, known: Options) -> frozenset[str]:
    match = _LETTER_LAST.search(sentence)
    letter = next((group.upper() for group in match.groups() if group), "") if match else ""
    if match is None or letter not in known.letters:
        return frozenset()
    before = sentence[: match.start()] or sentence.partition(":")[0]
    if (match["bracketed"] or match["bare"]) and not _names_it(before, letter, known):
        return frozenset()
    if phrases.DISOWNED.search(before.rpartition(",")[2]):
        return frozenset()
    if _UNSURE.search(_CLAUSE.split(before)[-1]) or _UNSURE.search(_DENIED_NAME.sub("", before)):
        return frozenset()
    return frozenset(letter) | _names_in(fold(_DENIED_NAME.sub("", before)), known)


def _names_it(before: str, letter: str, known: Options) -> bool:
    """Whether the words before a letter name its option, and lead up to that name where they spell it in full."""
    said = fold(before).rstrip(_MARKS)
    spelled = [text for one, text in known.names if one == letter and said.endswith(text)]
    if spelled:
        return bool(_LEADS_TO_NAME.search(said[: len(said) - max(map(len, spelled))]))
    return known.resembles(_CLAUSE.split(before)[-1], letter)


def _last_name(sentence: str, known: Options) -> frozenset[str]:
    said = sentence.rstrip(_MARKS)
    ending = [(letter, text) for letter, text in known.texts if said.endswith(text)]
    longest = max((len(text) for _, text in ending), default=0)
    before = said[: len(said) - longest]
    if not longest or not _LEADS_TO_NAME.search(before):
        return frozenset()
    told = _DENIED_NAME.sub("", before)
    if _UNSURE.search(told):
        return frozenset()
    return frozenset(letter for letter, text in ending if len(text) == longest) | _names_in(told, known)


def _names_in(folded: str, known: Options) -> frozenset[str]:
    return frozenset(letter for letter, text in known.texts if text in folded)
