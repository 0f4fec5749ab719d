"""Edits that replace a word by its opposite: side, position, signal and margin, direction of change, modality."""

import re

from medthink.judge.edits.guards import calls_normal, count_negations, is_positive, match_capitals


class Opposites:
    """Pairs of opposites, of which a sentence must contain exactly one word, and what must not occur with it."""

    def __init__(self, *pairs: tuple[str, str], barred: str) -> None:
        self._other = {a.lower(): b for pair in pairs for a, b in (pair, pair[::-1])}
        words = sorted(self._other, key=len, reverse=True)
        self._word = re.compile(rf"(?P<article>\ban? )?\b(?P<word>{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
        self._barred = re.compile(barred, re.IGNORECASE)

    def swap(self, sentence: str) -> str | None:
        """The sentence with the opposite word; None if it has none, several, or anything that rules it out."""
        if self._barred.search(sentence) or not is_positive(sentence):
            return None
        if len(self._word.findall(sentence)) != 1:
            return None
        return self._word.sub(self._replace, sentence)

    def _replace(self, found: re.Match[str]) -> str:
        other = match_capitals(found["word"], self._other[found["word"].lower()])
        return _article(found["article"] or "", other) + other


def _article(given: str, word: str) -> str:
    """The article for the new word, if there was one."""
    fitting = "an " if word[0].lower() in "aeiou" or word == "MRI" else "a "
    return match_capitals(given, fitting) if given else ""


_SIDE = re.compile(r"\b(?:left|right)\b", re.IGNORECASE)
_NO_SIDE = re.compile(
    r"\b(?:bilateral\w*|both|midline|contralateral\w*|ipsilateral\w*|shunt\w*|(?:left|right)-to-(?:left|right)"
    r"|atri(?:um|al|a)|ventric\w+|auric\w+|heart|cardiac|middle lobe|lingula\w*"
    r"|liver|\w*hepatic|spleen\w*|splenic|pancrea\w+|stomach|gastric|gallbladder|appendi\w+|c(?:a?e)?cum"
    r"|sigmoid|colon|colic|aort\w+"
    r"|(?:was|were|is|be|been|being|had|has|have|patient|and|which) left"
    r"|left (?:untreated|behind|in situ|in place|the|alone))\b",
    re.IGNORECASE,
)


def swap_side(sentence: str) -> str | None:
    """Swap left and right in every mention."""
    sides = {side.lower() for side in _SIDE.findall(sentence)}
    if len(sides) != 1 or _NO_SIDE.search(sentence) or not is_positive(sentence):
        return None
    other = "right" if sides == {"left"} else "left"
    return _SIDE.sub(lambda side: match_capitals(side[0], other), sentence)


# Upper and lower, anterior and posterior, and the like.
swap_position = Opposites(
    ("upper", "lower"),
    *(
        pair
        for one, other in (
            ("anterior", "posterior"),
            ("proximal", "distal"),
            ("medial", "lateral"),
            ("superior", "inferior"),
        )
        for pair in ((one, other), (f"{one}ly", f"{other}ly"))
    ),
    barred=r"\b(?:views?|radiographs?|projections?|films?|x-rays?|decubitus|anteroposterior|posteroanterior|AP|PA"
    r"|ventric\w+|gangli\w+|walls?|leaflets?|acoustic|limits?|lower (?:than|signal|density|attenuation|grade)"
    r"|upper (?:limit|abdom\w+|respiratory|gastrointestinal|GI))\b|\([A-Z]{2,}\)",
).swap

_SIGNAL_STEMS = (
    "intense", "intensity", "intensities", "dense", "density", "densities", "echoic", "echogenic", "echogenicity",
    "metabolic", "metabolism", "attenuating", "attenuation",
)  # fmt: skip
# Bright and dark, dense and lucent, lytic and sclerotic, well-defined and ill-defined.
swap_signal = Opposites(
    *((f"hyper{dash}{stem}", f"hypo{dash}{stem}") for stem in _SIGNAL_STEMS for dash in ("", "-")),
    ("lytic", "sclerotic"),
    ("osteolytic", "osteosclerotic"),
    ("well-defined", "ill-defined"),
    ("well defined", "ill defined"),
    barred=r"\biso\w*|\b(?:mixed|respectively|hetero\w+|variabl\w+)\b",
).swap
# More and less: increased and decreased, larger and smaller, grew and shrank.
swap_direction = Opposites(
    ("increased", "decreased"),
    ("increase", "decrease"),
    ("increasing", "decreasing"),
    ("larger", "smaller"),
    ("enlargement", "shrinkage"),
    ("grew", "shrank"),
    barred=r"\bprogress\w*|\b(?:regress\w*|respectively)\b",
).swap
# CT and MRI, where nothing else in the sentence gives the modality away.
swap_modality = Opposites(
    ("CT", "MRI"),
    ("computed tomography", "magnetic resonance imaging"),
    barred=r"\b(?:T[12]\w*|FLAIR|DWI|ADC|STIR|HU|Hounsfield|MR|PET|SPECT|CTA|CTPA|CBCT|MRA|MRCP|HRCT|MDCT|CECT|NECT"
    r"|gadolinium|iodin\w+|signal|\w*intens\w*|\w*dens\w+|\w*attenuat\w+|diffusion|magnetic|tesla|window"
    r"|weighted|phases?|ultraso\w+|radiograph\w*|x-ray|sequences?"
    # Such a sentence describes the examination, not a finding.
    r"|performed|underwent|done|scanner|indicat\w+|requested|scheduled)\b|\(",
).swap


_SEEN = r"(?:is|was|are|were) (?:seen|noted|present|found|visible|visuali[sz]ed|detected|identified|observed|evident)"
_SHOWS = r"shows?|showed|reveal(?:s|ed)|demonstrate(?:s|d)|disclose(?:s|d)|depict(?:s|ed)"
_DROPS = (
    re.compile(r"\b(?P<lead>There (?:is|was|are|were)) no\b ", re.IGNORECASE),
    re.compile(rf"^(?P<lead>)No (?=.*\b{_SEEN}\b)"),
    re.compile(rf"\b(?P<lead>{_SHOWS}) no\b ", re.IGNORECASE),
)
_WITHOUT = re.compile(r"\bwithout (?!\w+ing\b)", re.IGNORECASE)
_KEEPS_NEGATION = re.compile(
    r"\b(?:but|except\w*|other\w*|either|while|whereas|further|longer|more|yet)\b", re.IGNORECASE
)
_ADD = re.compile(
    rf"\b(?P<lead>There (?:is|was|were|are)|{_SHOWS}) "
    r"(?:an?|multiple|several|numerous) "
    r"(?:(?:large|small|marked|mild|moderate|severe|subtle|discrete|extensive|huge) )?",
    re.IGNORECASE,
)
_KEEPS_CLAIM = re.compile(
    r"\b(?:few|slight\w*|predominant\w*|views?|distribution|appearance|pattern|\d+(?:\.\d+)? ?(?:mm|cm))\b",
    re.IGNORECASE,
)
_MOST_WORDS = 16


def drop_negation(sentence: str) -> str | None:
    """The sentence with its only negation removed: "no A or B" becomes "A and B"."""
    if count_negations(sentence) != 1 or _KEEPS_NEGATION.search(sentence) or calls_normal(sentence):
        return None
    edited = _WITHOUT.sub(lambda cue: match_capitals(cue[0], "with "), sentence, count=1)
    for cue in _DROPS:
        edited = cue.sub(lambda found: found["lead"] + " " if found["lead"] else "", edited, count=1)
    if edited == sentence:
        return None
    edited = re.sub(r"\bor\b", "and", re.sub(r"\bany ", "", edited))
    return edited[:1].upper() + edited[1:]


def add_negation(sentence: str) -> str | None:
    """The sentence with what it shows denied: "showed a mass" becomes "showed no mass"."""
    is_long = len(sentence.split()) > _MOST_WORDS
    if is_long or not is_positive(sentence) or _KEEPS_CLAIM.search(sentence) or len(_ADD.findall(sentence)) != 1:
        return None
    return _ADD.sub(lambda found: f"{found['lead']} no ", sentence)
