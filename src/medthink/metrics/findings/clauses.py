"""Splits text into clauses: words, measurements and the lexicon's mentions, one statement each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from unicodedata import numeric

from medthink.metrics.findings.lexicon import VERBS, Clause, Lexicon, Mention, Term, lexicon_form, word_set
from medthink.metrics.words import american_word, plain_letters

# Adjectives that tell of what a finding is made or how it is shaped, and state nothing more right before its name.
_DESCRIBING = word_set("solid irregular fatty nodular")
# What "irregular" says of these is their shape.
_OUTLINES = word_set("margin margins border borders edge edges shape shaped")
_BEFORE_AN_ORGAN = word_set("the its anterior posterior medial lateral joint articular")


def is_literal(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a mention is meant literally: "both" is a side in "both lungs", not in "both lesions"."""
    if mention.kind == "finding":
        return _is_finding(words, mention, mentions)
    if words[mention.start] != "both" or mention.end - mention.start > 1:
        return True
    return any(other.kind == "site" and 0 <= other.start - mention.end <= 1 for other in mentions)


def _is_finding(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    word = words[mention.start]
    before = words[mention.start - 1] if mention.start else ""
    if before == "non":
        return False
    if mention.end - mention.start > 1:
        return True
    if word == "capsule":
        is_organ = any(other.kind == "site" and other.end == mention.start for other in mentions)
        return before not in _BEFORE_AN_ORGAN and not is_organ
    return word not in _DESCRIBING or _states_its_own(words, mention, mentions)


def _states_its_own(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether an adjective states a finding of its own: "the surface is irregular", not "an irregular mass"."""
    word = words[mention.start]
    following = next((m for m in mentions if m.start >= mention.end and m.kind in ("finding", "site")), None)
    describes = following is not None and following.start - mention.end <= 1 and following.kind == "finding"
    if word == "fatty":  # "a fatty mass", but not "fatty mesentery"
        return describes
    if word == "solid" and "and" in (*words[max(mention.start - 1, 0) : mention.start], *words[mention.end :][:1]):
        return True
    return not describes and _OUTLINES.isdisjoint(words[mention.end : mention.end + 2])


# A sentence without any of these holds no pattern.
PATTERN_WORDS = word_set(
    "signal signals sign iso node nodes height density densities attenuation echogenicity thickness caliber calibre "
    "diameter uptake perfusion infiltrate infiltrates"
)
_HIGH = word_set("high higher increased increase bright brighter elevated hyper raised")
_LOW = word_set("low lower decreased decrease dark darker reduced hypo diminished")
_ABNORMAL = word_set("abnormal altered abnormality")
_MIDDLE = word_set("intermediate isointense")
# What may come between the adjective and the word "signal": sequences, and words that only grade.
_BETWEEN = word_set(
    "t pd stir flair dwi adc swi gre tirm weighted w wi on and or in / , of the cord marrow muscle fluid relative "
    "to intralesional internal heterogeneous heterogeneously homogeneous homogeneously very native in moderately mildly"
)
_LONGEST = 8
_SIGNALS = {
    **dict.fromkeys(_HIGH, "hyperintensity"),
    **dict.fromkeys(_LOW, "hypointensity"),
    **dict.fromkeys(_ABNORMAL, "signal_abnormality"),
    **dict.fromkeys(_MIDDLE, "isointensity"),
}
# What a measure is called when it is high, and when it is low.
_DENSE = ("hyperdensity", "hypodensity")
_MEASURES = {
    "density": _DENSE,
    "densities": _DENSE,
    "attenuation": _DENSE,
    "echogenicity": ("hyperechogenicity", "hypoechogenicity"),
    "thickness": ("thickening", "thinning"),
    "caliber": ("dilatation", "stenosis"),
    "diameter": ("dilatation", "stenosis"),
    "uptake": ("uptake", "perfusion_defect"),
    "perfusion": ("hyperperfusion", "perfusion_defect"),
}
_MEASURE_REACH = 3
_LINKS = word_set("is are was were appears appear appeared seems remains looks")
_BOUNDS = _LINKS | word_set("of in on at with without and or , ; : ( ) no not which that by to for from than")
_VERBS_AND_STOPS = _LINKS | word_set("; : with without no not which that shows showed showing than")
_ENLARGED = word_set(
    "enlarged bulky matted conglomerate conglomerated pathological pathologic pathologically suspicious"
)
_MANY = word_set("multiple numerous")
_SMALL = word_set("small normal subcentimeter subcentimetric nonenlarged enlarged calcified")
_NODES = word_set("node nodes")
_LOST = word_set("loss reduced reduction decreased decrease diminished")
# Every pattern but a sign begins with one of these.
_STARTS = _ENLARGED | _MANY | _LOST | word_set("infiltrate infiltrates") | set(_MEASURES) | set(_SIGNALS)
_BEFORE_A_VERB = word_set("to not and that which it mass tumor lesion may can might could does did partially focally")
# Unknown words with these endings name findings: sialadenitis, schwannoma, dactylomegaly, meningocele …
_MEDICAL_ENDING = re.compile(
    r"(?:\w{3,}(?:itis|itides|megaly|cele|celes|ectasia|ectasis|ectases|malacia|penia|plasia|lithiasis|pathy|pathies"
    r"|edema|thorax|liths?|phytes?|listhesis|dactyly|stasis|stases)|\w{4,}(?:oma|omas|omata|osis|oses|trophy|lysis|schisis|schises|coele|coeles|hydramnios|rrhexis|chalasia|iasis))$"
)
_ISO = {"intense": "isointensity", "dense": "isodensity", "echoic": "isoechogenicity", "attenuating": "isodensity"}
_NOT_SIGNS = word_set(
    "no a an the any of this other secondary indirect direct radiological positive negative sure vital specific "
    "nonspecific classic classical characteristic typical early late main only clinical radiographic imaging ct mri "
    "warning first key associated reliable common important useful ancillary neurological as with and or one such"
)
_ARTICLES = word_set("a an the called")
_JOINTS = word_set("and or with without no on at by is was from")
_LONGEST_SIGN = 3
_PLURALS = (("itides", "itis"), ("ectases", "ectasis"), ("omata", "oma"), ("omas", "oma"), ("oses", "osis"))
_NOT_FINDINGS = word_set(
    "diagnosis diagnoses prognosis prognoses anastomosis anastomoses osmosis hypnosis symbiosis psychosis neurosis "
    "stroma stoma trachoma glaucoma analysis dialysis paralysis catalysis hydrolysis urinalysis hemodialysis "
    "hemostasis homeostasis monolith thorax hemithorax homeopathy osteopathy naturopathy physiotherapy leukopenia "
    "cyanosis acidosis alkalosis ketosis ketoacidosis leukocytosis thrombocytosis lymphocytosis lordosis apoptosis "
    "halitosis hyperhidrosis thrombolysis neurolysis electrolysis adhesiolysis hemolysis fibrinolysis coma "
    "coagulopathy homoeopathy idiopathy telepathy sympathy apathy empathy therapy mydriasis psoriasis amaurosis "
    "leucopenia neutropenia thrombocytopenia pancytopenia lymphopenia cytopenia sarcopenia"
)


def pattern_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """The finding that a pattern starting here names, and where it ends."""
    word = words[place]
    if word == "iso":
        return _iso_finding(words, place)
    named = _sign(words, place) if "sign" in words[place + 1 : place + 2 + _LONGEST_SIGN] else None
    if named or word not in _STARTS:
        return named
    return (
        _signal_finding(words, place)
        or _measured_finding(words, place)
        or _node_finding(words, place)
        or _height_finding(words, place)
        or _infiltrate(words, place)
    )


def _sign(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """A sign by its name: one word, or everything between an article and "sign", as in "a double duct sign"."""
    is_whole = place > 0 and words[place - 1] in _ARTICLES
    is_eponym = words[place + 1 : place + 3] == ["s", "sign"]
    for length in range(1, _LONGEST_SIGN + 1 if is_whole or is_eponym else 2):
        if words[place + length : place + length + 1] == ["sign"]:
            name = [word for word in words[place : place + length] if word != "s"]
            is_named = name and name[0] not in _NOT_SIGNS and all(map(str.isalpha, name)) and _JOINTS.isdisjoint(name)
            return ("_".join((*name, "sign")), place + length + 1) if is_named else None
    return None


def _iso_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """The first half of "iso- to hypointense"; the second half is read by itself."""
    for word in words[place + 1 : place + 4]:
        name = next((name for ending, name in _ISO.items() if word.endswith(ending)), None)
        if name:
            return name, place + 1
    return None


def _signal_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """Signal by sequence: "low T1 and high T2 signal" is low up to "high", and high up to the end."""
    name = _SIGNALS.get(words[place])
    if name is None:
        return None
    end = None
    for at in range(place + 1, min(place + 1 + _LONGEST, len(words))):
        word = words[at]
        if word in ("signal", "signals"):
            after = at + 2 if words[at + 1 : at + 2] == ["intensity"] else at + 1
            return name, end or after
        if word in _SIGNALS and end is None:
            end = at
        elif word not in _BETWEEN and not word.isdigit():
            return None
    return None


def _measured_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """A measure said to be high or low: "reduced bone density", "the echogenicity of the cortex is increased"."""
    if words[place] in _MEASURES:
        grade = _predicate(words, place)
        return (_MEASURES[words[place]][grade], place + 1) if grade is not None else None
    grade = _grade(words[place])
    if grade is None:
        return None
    for at in range(place + 1, min(place + 2 + _MEASURE_REACH, len(words))):
        if words[at] in _MEASURES:
            return _MEASURES[words[at]][grade], at + 1
        if words[at] in _BOUNDS or words[at] in _SIGNALS:
            return None
    return None


def _grade(word: str) -> int | None:
    """0 for a word that says high, 1 for one that says low."""
    return 0 if word in _HIGH else 1 if word in _LOW else None


def _predicate(words: Sequence[str], place: int) -> int | None:
    """What a clause says of the measure it is about: 0 high, 1 low."""
    for at in range(place + 1, min(place + 1 + _LONGEST, len(words))):
        if words[at] in _LINKS:
            after = words[at + 1 : at + 3]
            return next((grade for word in after if (grade := _grade(word)) is not None), None)
        if words[at] in _BOUNDS - {"of", "in"}:
            return None
    return None


def _node_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """Enlarged nodes, however far apart the words are: "enlarged hilar and mediastinal lymph nodes"."""
    if words[place] not in _ENLARGED and words[place] not in _MANY:
        return None
    after = _up_to(words[place + 1 : place + 1 + _LONGEST], _VERBS_AND_STOPS)
    if words[place] in _MANY:
        after = after[:_MEASURE_REACH] if not _SMALL & set(after) else []
    before = words[max(place - _LONGEST, 0) : place] if words[place] == "enlarged" else []
    is_said = not _LINKS.isdisjoint(before) and not _NODES.isdisjoint(before)
    return ("lymphadenopathy", place + 1) if is_said or not _NODES.isdisjoint(after) else None


def _up_to(words: Sequence[str], stops: frozenset[str]) -> list[str]:
    """The words before the first of these."""
    return list(takewhile(lambda word: word not in stops, words))


def _height_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """A vertebra or a disc that has lost height: "loss of vertebral body height", "reduced disc height"."""
    if words[place] not in _LOST:
        return None
    reach = list(words[place + 1 : place + 1 + _MEASURE_REACH + 2])
    if "height" not in reach or not _VERBS_AND_STOPS.isdisjoint(reach[: reach.index("height")]):
        return None
    return "bone_collapse", place + 2 + reach.index("height")


def _infiltrate(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """The noun, which is an opacity of the lung; the verb is read from the lexicon."""
    if words[place] not in ("infiltrate", "infiltrates") or not place or words[place - 1] in _BEFORE_A_VERB:
        return None
    is_noun = words[place] == "infiltrate" or words[place + 1 : place + 2] not in (["the"], ["into"], ["through"])
    return ("opacity", place + 1) if is_noun else None


@lru_cache(maxsize=1 << 14)
def named_finding(word: str) -> str | None:
    """The finding that a word names by its ending alone, in the singular."""
    if word in _NOT_FINDINGS or not _MEDICAL_ENDING.match(word):
        return None
    for plural, singular in _PLURALS:
        if word.endswith(plural):
            return word.removesuffix(plural) + singular
    return word.removesuffix("s") if word.endswith("celes") else word.replace("pathies", "pathy")


# A measurement is numbers joined by a sign or a word, each with its own unit or that of the next which has one. Three
# digits after a comma are thousands, fewer are decimals.
_NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|(?<![\d.,])\.\d+)"
_UNIT = r"(?:mm|cm|(?:milli|centi)met(?:er|re)s?)(?:\b|(?=x))"
_OF_UNIT = rf"(?:\s*-?\s*{_UNIT})"
_SIZE = rf"{_NUMBER}{_OF_UNIT}?(?:\s*(?:x|×|by|to|-|–)\s*{_NUMBER}{_OF_UNIT}?)*{_OF_UNIT}"
_WORDS = r"[a-z]+|\d+(?:[.,]\d+)?|[,;:()/?]"
_TOKEN = re.compile(_WORDS)
_TOKEN_OR_SIZE = re.compile(f"({_SIZE})|({_WORDS})")
_DIGIT = re.compile(r"\d")
_FRACTION = re.compile(r"(?:(\d+)\s?)?([¼-¾⅐-⅞])")
_EACH_NUMBER = re.compile(rf"({_NUMBER})(?:\s*-?\s*({_UNIT}))?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))(?<!\b0,)")
# A full stop ends a sentence unless it belongs to a number or an abbreviation.
_SENTENCE_END = re.compile(
    r"[.!](?=[\"'”’)\]]?(?:\s|$))"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\bfig\.)(?<!\bvs\.)(?<!\bdr\.)|\n|\?(?<=\w\?)(?=\s|$)"
)
# What a bracket says of the pictures and not of the patient: "(Fig. 2, arrow)", "(images not shown)".
_POINTER = re.compile(
    r"[(\[]\s*(?:[a-z]+\s+){0,2}(?:figs?\b|figures?\b|arrow\w*|asterisks?\b|circles?\b|panels?\b|series \d"
    r"|images? (?:\d|[a-z]\b|not\b)|not shown|not pictured)[^()\[\]]{0,60}[)\]]"
)
_NOT_A_SIZE = word_set(
    "from above below slice slices section sections collimation thick distal proximal away intervals deep"
)
# Adverbs that come between the words of a cue and change nothing.
_PASSED_OVER = word_set("definitively definitely entirely fully reliably confidently certainly totally safely clearly")
_TELLING = PATTERN_WORDS | word_set("absent absence not")


def read_clauses(text: str, lexicon: Lexicon) -> Iterator[Clause]:
    """Every clause of a text that may state something."""
    for sentence in _SENTENCE_END.split(_POINTER.sub(" ", plain_letters(_with_decimals(text)))):
        words, sizes = _read_words(sentence)
        folded = list(map(lexicon_form, words))
        if not _may_state(words, folded, lexicon):
            continue
        mentions = _find_mentions(words, folded, sizes, lexicon)
        bounds = [0, *_cuts(words, mentions), len(words)]
        for start, end in pairwise(bounds):
            clause = _clause(words, mentions, start, end)
            if clause.of_kind("finding", "normal") or clause.cues("negates_previous", "negates_either", "negates_next"):
                yield clause


def _with_decimals(text: str) -> str:
    """The text with "1.5" for "1½", which in plain letters would read as 11 and 2."""
    return _FRACTION.sub(lambda found: f"{int(found[1] or 0) + numeric(found[2]):.10g}", text)


def _may_state(words: Sequence[str], folded: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether any word of a sentence begins a finding, or could be part of one."""
    if not lexicon.finding_starts.isdisjoint(folded) or not _TELLING.isdisjoint(words):
        return True
    return any(map(named_finding, words))


def _read_words(sentence: str) -> tuple[list[str], dict[int, float]]:
    """The words in American spelling, with `#` for each measurement, and the measurements by place."""
    sizes: dict[int, float] = {}
    if not _DIGIT.search(sentence):
        found = [word for word in _TOKEN.findall(sentence) if word not in _PASSED_OVER]
    else:
        found = []
        for size, word in _TOKEN_OR_SIZE.findall(sentence):
            if size:
                sizes[len(found)] = _to_mm(size)
            if word not in _PASSED_OVER:
                found.append("#" if size else word)
    return list(map(american_word, found)), sizes


def _to_mm(measurement: str) -> float:
    """The largest dimension, in millimetres; a number without a unit has that of the next which has one."""
    found, factor = [], 1.0
    for number, unit in reversed(_EACH_NUMBER.findall(measurement)):
        if unit:
            factor = 10.0 if unit.startswith("c") else 1.0
        found.append(float(_THOUSANDS.sub("", number).replace(",", ".")) * factor)
    return max(found)


def _find_mentions(
    words: Sequence[str], folded: Sequence[str], sizes: Mapping[int, float], lexicon: Lexicon
) -> list[Mention]:
    mentions: list[Mention] = []
    exact, stemmed = lexicon.exact.lengths, lexicon.stemmed.lengths
    # Only some words can begin a mention; the rest are skipped.
    starts = [
        place
        for place, (word, fold) in enumerate(zip(words, folded, strict=True))
        if fold in stemmed or word in exact or place in sizes or named_finding(word)
    ]
    if not PATTERN_WORDS.isdisjoint(words):
        starts = list(range(len(words)))
    free_from = 0
    for place in starts:
        if place < free_from:
            continue
        mention = _read_size(words, place, sizes[place]) if place in sizes else _longest(words, folded, place, lexicon)
        if mention:
            mentions.append(mention)
            free_from = mention.end
    return [mention for mention in mentions if is_literal(words, mention, mentions)]


def _read_size(words: Sequence[str], place: int, size_mm: float) -> Mention | None:
    following = words[place + 1] if place + 1 < len(words) else ""
    return None if following in _NOT_A_SIZE else Mention("size", "", place, place + 1, size_mm)


def _longest(words: Sequence[str], folded: Sequence[str], place: int, lexicon: Lexicon) -> Mention | None:
    """The longest phrase that starts here; among equals, cues and sides before findings and sites."""
    exact = lexicon.exact.longest(words, place)
    stemmed = lexicon.stemmed.longest(folded, place)
    entry = exact or stemmed
    pattern = pattern_finding(words, place)
    if pattern and _outdoes(pattern, place, stemmed) and not _holds_a_known_sign(pattern, folded, place, lexicon):
        return Mention("finding", pattern[0], place, pattern[1])
    if exact and stemmed and len(stemmed.words) > len(exact.words):
        entry = stemmed
    if entry:
        return Mention(entry.kind, entry.name, place, place + len(entry.words))
    name = named_finding(words[place])
    return Mention("finding", name, place, place + 1) if name else None


def _outdoes(pattern: tuple[str, int], place: int, entry: Term | None) -> bool:
    """Whether a pattern says more than the lexicon's phrase: it is longer, or both are one word."""
    length = len(entry.words) if entry else 0
    return pattern[1] - place > length or pattern[1] - place == length == 1


def _holds_a_known_sign(pattern: tuple[str, int], folded: Sequence[str], place: int, lexicon: Lexicon) -> bool:
    """Whether the lexicon knows the sign that a longer name ends in: "a clockwise whirl sign" is the whirl sign."""
    name, end = pattern
    known = lexicon.stemmed.longest(folded, end - 2)
    return name.endswith("_sign") and end - place > 2 and known is not None and len(known.words) > 1


def _cuts(words: Sequence[str], mentions: Sequence[Mention]) -> list[int]:
    """The positions where a sentence is split: at ending cues, at `;`, and between two verbs, never in a mention."""
    ends = {mention.start for mention in mentions if mention.kind == "cue" and mention.name == "ends"}
    inside = {place for m in mentions for place in range(m.start, m.end)}
    cuts: list[int] = []
    start = 0
    for place, word in enumerate(words):
        joins = word in (",", "and") and place not in inside and _joins_two_sentences(words, start, place)
        if place and (place in ends or word == ";" or joins):
            cuts.append(place)
            start = place
    return cuts


def _joins_two_sentences(words: Sequence[str], start: int, place: int) -> bool:
    left = words[start:place]
    right: list[str] = []
    for word in words[place + 1 :]:
        if word in (",", ";") and right:
            break
        right.append(word)
    return not VERBS.isdisjoint(left) and not VERBS.isdisjoint(right)


def _clause(words: Sequence[str], mentions: Sequence[Mention], start: int, end: int) -> Clause:
    if start == 0 and end == len(words):
        return Clause(tuple(words), tuple(mentions))
    inside = (
        Mention(m.kind, m.name, m.start - start, m.end - start, m.size_mm)
        for m in mentions
        if m.start >= start and m.end <= end
    )
    return Clause(tuple(words[start:end]), tuple(inside))
