"""Clinical histories that do not reveal the diagnosis: every word depends on the family, none on the disease."""

import re
from random import Random

from medthink.phantoms.atlas import Family

_RANGE = re.compile(r"\{(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)\}")
_WORK = (
    "teacher", "nurse", "bricklayer", "farmer", "bus driver", "accountant", "chef", "librarian", "electrician",
    "baker", "postal worker", "software engineer", "carpenter", "hairdresser", "shop assistant", "gardener", "welder",
    "musician", "police officer", "translator", "mechanic", "pharmacist", "cleaner", "architect", "fisherman",
    "tailor", "pilot", "warehouse worker", "journalist", "painter", "plumber", "receptionist", "lawyer",
    "dental technician", "waiter", "surveyor", "stonemason", "laboratory assistant", "florist", "social worker",
    "aluminium worker", "goldsmith",
)  # fmt: skip
_OPENINGS = (
    "A {age}-year-old {who} presented with {complaint} {lasting}.",
    "A {age}-year-old {who} was referred to {service} because of {complaint} {lasting}.",
    "A {age}-year-old {who} attended {service} and reported {complaint} {lasting}.",
    "We saw a {age}-year-old {who} who had complained of {complaint} {lasting}.",
    "The general practitioner referred a {age}-year-old {who} with {complaint} {lasting}.",
    "A {age}-year-old {who} was admitted with {complaint} {lasting}.",
    "After {complaint} {lasting}, a {age}-year-old {who} sought advice from {service}.",
    "A previously active {age}-year-old {who} described {complaint} {lasting}.",
)
_PASTS = (
    "Past medical history included {past}.", "The background was notable for {past}.", "The patient reported {past}.",
    "Relevant antecedents were {past}.", "The record mentioned {past}.", "On direct questioning there was {past}.",
)  # fmt: skip
_ENDINGS = (
    "Imaging was requested.", "Further imaging was arranged to clarify the cause.", "A diagnostic work-up was started.",
    "The case was discussed with the radiologist on call.", "Cross-sectional imaging followed.", "",
    "The differential diagnosis remained wide at this point.", "An imaging work-up was advised by the consultant.",
    "Several examinations were performed over the following days.", "The patient agreed to further investigation.",
)  # fmt: skip
_TRENDS = (
    "which had worsened gradually", "with intermittent improvement", "without a clear trigger",
    "interfering with daily life", "despite simple analgesia", "first noticed on holiday",
    "that had not responded to initial treatment", "of insidious onset", "with one similar episode years before",
    "that had prompted two earlier consultations", "noted by a relative",
)  # fmt: skip


def write_history(chance: Random, family: Family) -> str:
    """A short history from the family's words."""
    words = family.history
    opening = chance.choice(_OPENINGS).format(
        age=(age := chance.randint(*family.ages)),
        who=_person(chance, family, age),
        service=family.service if family.service.startswith("the ") else f"the department of {family.service}",
        complaint=chance.choice(words.complaints),
        lasting=_lasting(chance),
    )
    middle = [f"{_filled(chance, text)}." for text in chance.sample(words.exams, chance.randint(1, 2))]
    middle += [f"{_filled(chance, text)}." for text in chance.sample(words.labs, chance.randint(1, 3))]
    past = " and ".join(chance.sample(words.pasts, chance.randint(1, 2)))
    middle.insert(chance.randint(0, len(middle)), chance.choice(_PASTS).format(past=_filled(chance, past)))
    return " ".join(part for part in (opening, *middle, chance.choice(_ENDINGS)) if part)


def _person(chance: Random, family: Family, age: int) -> str:
    sex = chance.choice(family.sexes)
    if age < 18:
        return "boy" if sex == "man" else "girl"
    if age > 66:
        return f"retired {chance.choice(_WORK)} ({sex})"
    return chance.choice((sex, f"{chance.choice(_WORK)} ({sex})", f"{sex} working as {_article(chance.choice(_WORK))}"))


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _lasting(chance: Random) -> str:
    unit, most = chance.choice((("day", 12), ("week", 11), ("month", 18), ("year", 5)))
    number = chance.randint(2, most)
    duration = f"{number} {unit}s"
    when = chance.choice(
        (f"for {duration}", f"of {duration}' duration", f"over the previous {duration}", f"lasting {duration}")
    )
    return f"{when} {chance.choice(_TRENDS)}" if chance.random() < 0.7 else when


def _filled(chance: Random, text: str) -> str:
    """The text with each `{low-high}` replaced by a number of the same precision."""

    def number(match: re.Match[str]) -> str:
        low, high = match[1], match[2]
        places = len(low.partition(".")[2])
        return f"{chance.uniform(float(low), float(high)):.{places}f}"

    return _RANGE.sub(number, text)
