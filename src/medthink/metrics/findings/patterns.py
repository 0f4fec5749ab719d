"""Findings that cannot be listed as phrases: signal by sequence, and names formed with a medical suffix."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from medthink.metrics.findings.lexicon import word_set

# A sentence without any of these holds no pattern.
PATTERN_WORDS = word_set(
    "signal signals sign iso node nodes height density densities attenuation echogenicity thickness caliber calibre "
    "diameter uptake perfusion infiltrate infiltrates"
)
_HIGH = word_set("high higher increased increase bright brighter elevated hyper raised")
_LOW = word_set("low lower decreased decrease dark darker reduced hypo diminished")
_ABNORMAL = word_set("abnormal altered abnormality")
_MIDDLE = word_set("intermediate isointense")
# What may stand between the adjective and the word "signal": sequences, and words that only grade.
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
    """A sign by its name: one word, or all that stands between an article and "sign", as in "a double duct sign"."""
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
    """Enlarged nodes, however far apart the words stand: "enlarged hilar and mediastinal lymph nodes"."""
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
