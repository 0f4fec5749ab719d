"""Findings that no list of phrases can hold: signal by sequence, and names made by a medical ending."""

import re
from collections.abc import Sequence
from functools import lru_cache

from medthink.metrics.findings.lexicon import word_set

_HIGH = word_set("high higher increased increase bright brighter elevated hyper")
_LOW = word_set("low lower decreased decrease dark darker reduced hypo")
_ABNORMAL = word_set("abnormal altered abnormality")
_MIDDLE = word_set("intermediate isointense")
# What may stand between the adjective and the word "signal": sequences, and words that only grade.
_BETWEEN = word_set(
    "t pd stir flair dwi adc swi gre tirm weighted w wi on and or in / , of the cord marrow muscle fluid relative "
    "intralesional internal heterogeneous heterogeneously homogeneous homogeneously very native in moderately mildly"
)
_LONGEST = 8
_SIGNALS = {
    **dict.fromkeys(_HIGH, "hyperintensity"),
    **dict.fromkeys(_LOW, "hypointensity"),
    **dict.fromkeys(_ABNORMAL, "signal_abnormality"),
    **dict.fromkeys(_MIDDLE, "isointensity"),
}
# Unknown words with these endings name findings: sialadenitis, schwannoma, dactylomegaly, meningocele …
_MEDICAL_ENDING = re.compile(
    r"(?:\w{3,}(?:itis|itides|megaly|cele|celes|ectasia|ectasis|ectases|malacia|penia|plasia|lithiasis|pathy|pathies"
    r"|edema|thorax|liths?|phytes?|listhesis|dactyly|stasis|stases)|\w{4,}(?:oma|omas|omata|osis|oses|trophy|lysis))$"
)
_ISO = {"intense": "isointensity", "dense": "isodensity", "echoic": "isoechogenicity", "attenuating": "isodensity"}
_NOT_SIGNS = word_set(
    "no a an the any of this other secondary indirect direct radiological positive negative sure vital"
)
_PLURALS = (("itides", "itis"), ("ectases", "ectasis"), ("omata", "oma"), ("omas", "oma"), ("oses", "osis"))
_NOT_FINDINGS = word_set(
    "diagnosis diagnoses prognosis prognoses anastomosis anastomoses osmosis hypnosis symbiosis psychosis neurosis "
    "stroma stoma trachoma glaucoma analysis dialysis paralysis catalysis hydrolysis urinalysis hemodialysis "
    "hemostasis homeostasis monolith thorax hemithorax homeopathy osteopathy naturopathy physiotherapy leukopenia "
    "leucopenia neutropenia thrombocytopenia pancytopenia lymphopenia cytopenia sarcopenia"
)


def pattern_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """The finding that a pattern starting here names, and where it ends."""
    if words[place] == "iso":
        return _iso_finding(words, place)
    if words[place + 1 : place + 2] == ["sign"] and words[place] not in _NOT_SIGNS and words[place].isalpha():
        return f"{words[place]}_sign", place + 2
    return _signal_finding(words, place)


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
        if word == "signal":
            after = at + 2 if words[at + 1 : at + 2] == ["intensity"] else at + 1
            return name, end or after
        if word in _SIGNALS and end is None:
            end = at
        elif word not in _BETWEEN and not word.isdigit():
            return None
    return None


@lru_cache(maxsize=1 << 14)
def named_finding(word: str) -> str | None:
    """The finding that a word names by its ending alone, in the singular."""
    if word in _NOT_FINDINGS or not _MEDICAL_ENDING.match(word):
        return None
    for plural, singular in _PLURALS:
        if word.endswith(plural):
            return word.removesuffix(plural) + singular
    return word.removesuffix("s") if word.endswith("celes") else word.replace("pathies", "pathy")
