"""Names of diagnoses: their words in one spelling, their parts, and the other forms that rules can derive.

A key distinguishes names as a radiologist would: digits, Roman numerals, sides and prefixes such as non- stay; case,
accents, British or American spelling, possessives, hyphens and plurals do not count.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from rapidfuzz import fuzz

from medthink.metrics.words import american_word, plain_letters

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_BRACKET = re.compile(r"\s*[(\[]([^()\[\]]*)[)\]]")
_ALSO = re.compile(r"\b(?:also (?:known|called|termed) as|so-called|a\.?k\.?a\.?|i\.e\.|syn\.|or)\b", re.I)
_CLAUSE = re.compile(
    r"\s*(?:,|;|\s-\s|\s–\s)?\s+(?:with(?:out)?|secondary to|due to|caused by|causing|complicat(?:ed by|ing)|"
    r"associated with|related to|arising (?:from|in)|resulting (?:from|in)|following|after|mimicking|"
    r"presenting (?:as|with)|in (?:an?|the (?:setting|context)|patients?|diffuse|association)|involving|during|as)\b.*",
    re.I,
)
# Words for degree, time or variant that leave the diagnosis the same.
QUALIFIERS = frozenset(
    (
        "acute", "subacute", "chronic", "recurrent", "bilateral", "unilateral", "left", "right", "left-sided",
        "giant", "large", "small", "multiple", "solitary", "isolated", "simultaneous", "synchronous", "diffuse",
        "focal", "classical", "typical", "atypical", "incidental", "symptomatic", "asymptomatic", "spontaneous",
        "idiopathic", "primary", "progressive", "severe", "mild", "massive", "extensive", "rare", "unusual",
        "advanced", "early", "late", "adult", "juvenile", "infantile", "simple", "complex", "partial", "complete",
        "disseminated", "limited", "calcified", "malignant", "benign", "congenital", "secondary", "traumatic",
        "previous",
    )
)  # fmt: skip
# Generic words: on their own they reveal nothing.
GENERIC = frozenset(
    (
        "abnormality", "abscess", "adenoma", "anomaly", "aneurysm", "arthritis", "atresia", "bone", "breast",
        "cancer", "carcinoma", "collection", "condition", "cyst", "defect", "deficiency", "deformity", "disease",
        "disorder", "dissection", "dysplasia", "effusion", "embolism", "fistula", "fracture", "granuloma",
        "hematoma", "hemorrhage", "hernia", "hypoplasia", "infarct", "infarction", "infection", "inflammation",
        "injury", "lesion", "lymphoma", "malformation", "malignancy", "mass", "melanoma", "metastasis", "neoplasm",
        "nodule", "obstruction", "perforation", "pneumonia", "rupture", "sarcoma", "stenosis", "stroke", "syndrome",
        "tear", "thrombosis", "tissue", "tuberculosis", "tumor", "type", "variant", "liver", "lung", "kidney",
        "brain", "spleen", "sign",
    )
)  # fmt: skip
# Body parts: a history names them whatever the diagnosis is.
ANATOMY = frozenset(
    (
        "abdominal", "accessory", "adrenal", "aortic", "appendix", "arterial", "artery", "biliary", "bladder",
        "brachial", "cardiac", "carotid", "caudate", "cecal", "central", "cerebellar", "cerebral", "cervical",
        "cochlear", "colonic", "coronary", "cortical", "cruciate", "cutaneous", "ductal", "dural", "epidural",
        "esophageal", "esophagus", "femoral", "gallbladder", "gastric", "gastrointestinal", "hepatic", "humeral",
        "intestinal", "intracranial", "lacrimal", "ligament", "lumbar", "mammary", "mediastinal", "mesenteric",
        "mitral", "muscle", "muscular", "nasal", "navicular", "omental", "orbital", "ovarian", "ovary", "pancreas",
        "pancreatic", "parotid", "pelvic", "pericardial", "peripheral", "peritoneal", "plexus", "pleural", "portal",
        "posterior", "prostate", "pulmonary", "rectal", "retinal", "retroperitoneal", "scapula", "sinus",
        "skeletal", "sphenoid", "spinal", "splenic", "stomach", "subdural", "temporal", "testicular", "thoracic",
        "thyroid", "tibial", "urinary", "uterine", "valve", "vascular", "venous", "ventral", "vertebral", "vesical",
    )
)  # fmt: skip
_STOPS = frozenset(
    ("of", "the", "and", "a", "an", "in", "with", "to", "from", "by", "for", "on", "or", "at", "de", "du")
)
_TAILS = frozenset(("disease", "syndrome", "lesion", "disorder", "type", "tumor", "injury"))
# Abbreviations of examinations, values or structures: none of them is a diagnosis.
_NOT_ACRONYMS = frozenset(
    (
        "ACA", "ADC", "AFP", "AIDS", "ALT", "AST", "BMI", "BUN", "CBC", "CEA", "CNS", "CRP", "CSF", "CTA", "CTV",
        "CXR", "DSA", "DWI", "ECG", "EEG", "EKG", "EMG", "ERCP", "ESR", "FDG", "FLAIR", "FNAC", "GCS", "GFR", "HCG",
        "HIV", "HRCT", "ICA", "ICU", "IVC", "IVU", "LDH", "LUQ", "MCA", "MIP", "MPR", "MRA", "MRCP", "MRI", "MRV",
        "NIHSS", "PACS", "PCA", "PCR", "PET", "PSA", "PTH", "RBC", "RLQ", "RUQ", "SMA", "SPECT", "STIR", "SUV",
        "SVC", "TNM", "TOF", "TSH", "USA", "USG", "WBC", "WHO",
    )
)  # fmt: skip
_ROMAN = frozenset(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"))
# First parts of compound words, which often contribute a letter to acronyms.
_FORMS = tuple(
    sorted(
        (
            "adeno", "angio", "arterio", "atrio", "broncho", "cardio", "cerebro", "chole", "chondro", "chorio",
            "costo", "cranio", "cysto", "dermato", "encephalo", "extra", "fibro", "gastro", "glomerulo", "hemato",
            "hepato", "hydro", "hyper", "hypo", "inter", "intra", "leuko", "lipo", "lympho", "meningo", "muco",
            "myelo", "myo", "naso", "neuro", "oculo", "osteo", "peri", "phospho", "pneumo", "poly", "pseudo",
            "pyelo", "pyo", "pyro", "retino", "retro", "sacro", "spondylo", "sub", "supra", "thrombo", "trans",
            "trigemino", "tubulo", "uretero", "vesico", "xantho",
        ),
        key=len,
        reverse=True,
    )
)  # fmt: skip
_MOST_MADE = 64


@lru_cache(maxsize=1 << 16)
def normalise_word(word: str) -> str:
    """A word in plain letters, American and singular, without its possessive."""
    plain = re.sub(r"['’]s?$", "", plain_letters(word)).replace("'", "").replace("’", "")
    return _singular(american_word(plain))


def _singular(word: str) -> str:
    if len(word) < 5 or word in _ROMAN:
        return word
    for ending, instead in (("omata", "oma"), ("ses", "sis"), ("ies", "y"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending):
            # "abscesses" and "viruses" do not end in "-sis"; "stenosis", "callus" and "abscess" are already singular.
            if ending == "ses" and word.endswith(("sses", "uses")):
                return word[:-2]
            return word if ending == "s" and word.endswith(("ss", "us", "is")) else word[: -len(ending)] + instead
    return word


def name_words(name: str) -> list[str]:
    """The folded words of a name, hyphens opened."""
    return [normalise_word(match[0]) for match in WORD.finditer(name)]


@lru_cache(maxsize=1 << 14)
def name_key(name: str) -> str:
    """A key that all spellings of one name share, and different names do not."""
    return "".join(name_words(name))


def without_brackets(name: str) -> str:
    """The name without its brackets, or the name itself if nothing would be left."""
    before = ""
    rest = name
    while rest != before:
        before, rest = rest, _BRACKET.sub("", rest)
    rest = " ".join(rest.split()).strip(" ,;")
    return rest or name


def bracketed(name: str) -> list[str]:
    """The contents of its brackets."""
    return [part.strip() for part in _BRACKET.findall(name) if part.strip()]


def head_of(name: str) -> str:
    """The name without brackets and without a qualifying clause: cause, association, circumstances."""
    plain = without_brackets(name)
    head = _CLAUSE.sub("", plain).strip(" ,;")
    return head if name_words(head) else plain


def short_form(name: str) -> str:
    """The head, unless it would be generic; always part of the name itself."""
    head = head_of(name)
    return head if is_specific(head) and head in name else name


def is_specific(name: str) -> bool:
    """Whether a name, found alone in a text, points at one diagnosis."""
    words = [word for word in name_words(name) if word not in _STOPS]
    telling = [word for word in words if word not in GENERIC and word not in QUALIFIERS]
    return bool(telling) and (len(words) > 1 or len(words[0]) >= 6)


def plain_words(name: str) -> list[str]:
    """The words of the head in order, without stop words."""
    return [word for word in name_words(head_of(name)) if word not in _STOPS]


def core_words(name: str) -> list[str]:
    """The significant words of the head in order: no stop words, no qualifiers."""
    words = plain_words(name)
    core = [word for word in words if word not in QUALIFIERS]
    return core or words


def without_qualifiers(name: str) -> str:
    """The head without the qualifiers before it."""
    words = head_of(name).split()
    while len(words) > 1 and normalise_word(words[0]) in QUALIFIERS:
        words.pop(0)
    return " ".join(words)


def other_names(name: str) -> list[str]:
    """The names that a name states itself: outside its brackets, inside them, on either side of a slash."""
    plain = without_brackets(name)
    found = [plain, *(part for part in bracketed(name) if _is_name(part, plain))]
    found += [part.strip() for one in found for part in _ALSO.split(one)]
    found += [part for one in list(found) for part in _sides(one)]
    kept = {name_key(one): one for one in reversed(found) if name_key(one) not in ("", name_key(name))}
    return list(reversed(kept.values()))


def _is_name(part: str, plain: str) -> bool:
    """Whether a bracket may hold another name: not a stage, a circumstance or a cause."""
    first = name_words(part)[:1]
    if not first or re.match(
        r"(?:in|with|due|secondary|e\.?g|diffuse|any|type|grade|WHO|stage|left|right)\b", part, re.I
    ):
        return False
    return (
        is_specific(part) or _is_capitals(part) or (len(name_words(plain)) > 1 and len(part) > 5 and part[0].isupper())
    )


def _is_capitals(text: str) -> bool:
    letters = [sign for sign in text if sign.isalpha()]
    return len(letters) >= 2 and sum(map(str.isupper, letters)) >= 0.6 * len(letters) and " " not in text.strip()


def _sides(name: str) -> Iterator[str]:
    """Both sides of " / "; of a slash without spaces only where both sides are words of one kind."""
    if " / " in name:
        yield from (part.strip() for part in name.split(" / "))


@lru_cache(maxsize=1 << 14)
def acronyms_of(name: str) -> frozenset[str]:
    """Acronyms of a name: those it states, and those its words form."""
    given = {part for part in bracketed(name) for part in part.split() if _is_capitals(part) and len(part) >= 3}
    made = {letters for one in (head_of(name), *_turned(head_of(name))) for letters in _made(one)}
    found = {one.upper() for one in given | made} - _NOT_ACRONYMS
    return frozenset(one for one in found if one.lower() not in _ROMAN)


def _turned(name: str) -> Iterator[str]:
    """Latin word order: "progressive fibrodysplasia ossificans" is known as F.O.P."""
    words = name.split()
    if 3 <= len(words) <= 4:
        yield " ".join([*words[1:], words[0]])


def _made(name: str) -> Iterator[str]:
    words = [word for word in name_words(name.replace("-", "")) if word]
    if not 2 <= len([word for word in words if word not in _STOPS]) <= 6:
        return
    choices = [_letters_of(word) for word in words]
    for number, letters in enumerate(product(*choices)):
        if number >= _MOST_MADE:
            return
        if 3 <= len(made := "".join(letters)) <= 7:
            yield made.upper()


def _letters_of(word: str) -> tuple[str, ...]:
    """The letters that a word contributes to an acronym."""
    if word in _STOPS:
        return ("", word[0])
    if word.isdigit() or word in _ROMAN:
        return ("", word)
    form = next((form for form in _FORMS if word.startswith(form) and len(word) - len(form) >= 4), "")
    letters = (word[0], word[0] + word[len(form)]) if form else (word[0],)
    return ("", *letters) if word in _TAILS else letters


_EPONYM = re.compile(
    r"\b((?:[A-ZÀ-Þ][\w’']+(?:\s?[–-]\s?|\s))*[A-ZÀ-Þ][\w’']+)(?:['’]s)?\s+"
    r"(?:disease|syndrome|lymphoma|sarcoma|lesion|tumou?r|cyst|fracture|deformity|anomaly|contracture|hernia|encephalopathy)"
)
_PLAIN_START = frozenset(("primary", "secondary", "brown", "giant", "cell", "nerve", "soft", "bone", "liver", "lung"))


def eponyms_of(name: str) -> list[str]:
    """The eponyms in a name, such as "Erdheim–Chester" in "Erdheim–Chester disease"."""
    found = []
    for match in _EPONYM.finditer(name):
        person = re.sub(r"['’]s$", "", match[1])
        is_first = match.start() == 0
        if is_first and not re.search(r"[–-]|['’]s", match[1]) and not _looks_like_a_person(person):
            continue
        found.append(person)
    return found


def _looks_like_a_person(word: str) -> bool:
    """A single capitalised word at the start may be an adjective: its ending decides."""
    folded = normalise_word(word)
    is_adjective = folded.endswith(
        ("ic", "al", "ar", "ous", "ary", "ive", "oid", "ing", "ed", "ory", "ent", "ant", "ful")
    )
    return not is_adjective and folded not in GENERIC | QUALIFIERS | _PLAIN_START and " " not in word


_TABLE = Path(__file__).parent / "data" / "aliases.toml"


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    """The table, by the key of every name that is no abbreviation."""
    groups = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["groups"]
    return {name_key(name): tuple(names) for names in groups for name in names if not is_abbreviation(name)}


def is_abbreviation(name: str) -> bool:
    """Whether a name is capitals, which are only matched as capitals."""
    first = name.split()[0]
    return sum(map(str.isupper, first)) >= 2 and len(first) <= 7


def known_aliases(name: str) -> tuple[str, ...]:
    """Every other name known to the rules, those stated in the name first."""
    stated = other_names(name)
    forms = (name, without_brackets(name), head_of(name), *stated)
    listed = [one for form in forms for one in _groups().get(name_key(form), ())]
    return distinct_names([*stated, *listed], apart_from=[name])


def distinct_names(names: Iterable[str], *, apart_from: Iterable[str] = ()) -> tuple[str, ...]:
    """The names in their order, without repeats and without those to exclude."""
    taken = set(map(name_key, apart_from))
    found: list[str] = []
    for name in names:
        if (key := name_key(name)) and key not in taken:
            taken.add(key)
            found.append(name)
    return tuple(found)


_CLOSE = 88


class AnswerMatch(NamedTuple):
    """An item of the list, how it was matched, and whether that is conclusive."""

    item: str
    by: str
    is_certain: bool


_CERTAIN: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("exact", lambda name: name),
    ("normalised", name_key),
    ("bracket-dropped", lambda name: name_key(without_brackets(name))),
)


def match_answer(gold: str, items: Sequence[str]) -> AnswerMatch | None:
    """The item that is the right diagnosis, or the likeliest one, or None."""
    for by, form in _CERTAIN:
        found = [item for item in items if form(item) == form(gold)]
        if len(found) == 1:
            return AnswerMatch(found[0], by, is_certain=True)
        if found:
            return AnswerMatch(found[0], f"{by}, twice", is_certain=False)
    return _propose(gold, items)


def _propose(gold: str, items: Sequence[str]) -> AnswerMatch | None:
    core, words = set(core_words(gold)), set(name_words(gold))
    for item in items:
        if set(core_words(item)) == core:
            return AnswerMatch(item, "same core words", is_certain=False)
    close = max(items, key=lambda item: fuzz.token_sort_ratio(item.lower(), gold.lower()), default=None)
    if close is not None and fuzz.token_sort_ratio(close.lower(), gold.lower()) >= _CLOSE:
        return AnswerMatch(close, "close spelling", is_certain=False)
    for item in items:
        own = set(name_words(item))
        if own and (own < words or own > words):
            return AnswerMatch(item, "one inside the other", is_certain=False)
    return None


def is_parent(name: str, gold: str) -> bool:
    """Whether the name is a broader term for the right diagnosis: every patient with the diagnosis has it too."""
    own, right = plain_words(name), plain_words(gold)
    return len(own) < len(right) and set(own) < set(right) and own[-1:] == right[-1:]


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
    """Split at the strongest separator present: double semicolons, lines, bars, semicolons, else commas."""
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
