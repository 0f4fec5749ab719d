"""The expert's texts: a caption per image, the integrated findings, and the six-section discussion."""

import re
from random import Random

from medthink.phantoms.atlas import Disease, Family, families
from medthink.phantoms.plan import CasePlan, PlannedImage

_SHOWS = ("shows", "demonstrates", "reveals", "depicts")
_SHOWED = ("showed", "demonstrated", "revealed", "disclosed")
_CHANGES = {
    "regressing": ("smaller than before", "decreased since the previous examination"),
    "stable": ("unchanged", "without relevant change"),
    "progressing": ("larger than before", "increased since the previous examination"),
}
_COURSES = {"regressing": "had regressed", "stable": "were unchanged", "progressing": "had progressed"}
_NAMES = {
    "X-ray": "Radiography",
    "Nuclear medicine & Molecular imaging": "Radionuclide imaging",
    "Clinical photography": "Clinical inspection",
    "Non-modality / Workflow / Post-processing": "Post-processing",
}
_ROLES = (
    "It belongs to the classical differential diagnosis of disorders of the {region}.",
    "Its recognition matters because several disorders of the {region} resemble it.",
    "Among disorders of the {region} it is a frequent source of error.",
)
_LIMITS = (
    "Neither symptoms nor laboratory values separate it from its differential diagnoses.",
    "The clinical picture overlaps with that of all the alternatives.",
    "Clinical data alone do not settle the question, so that the diagnosis rests on imaging.",
)
_CAUTIONS = ("No single image is diagnostic.", "Each sign alone is unspecific.", "Taken one by one the signs mislead.")
_CARES = ("is the usual approach", "is the established management", "is generally advised")
_LESSONS = ("Read all images before settling on a diagnosis.", "Integrate every view; one image is not enough.")
_REMINDERS = ("Clinical data narrow the field but do not decide.", "The history fits all the alternatives.")
_PROOFS = (
    "The diagnosis was confirmed.",
    "The diagnosis was established in consensus.",
    "Further tests confirmed the diagnosis.",
)
_OUTCOMES = (
    "The patient was lost to further follow-up.",
    "Treatment was started and well tolerated.",
    "The patient remains under surveillance.",
)
SECTIONS = (
    "Background", "Clinical Perspective", "Imaging Perspective", "Clinical Significance", "Outcome",
    "Take Home Message / Teaching Points",
)  # fmt: skip


def write_caption(chance: Random, plan: CasePlan, shot: PlannedImage) -> str:
    """A truthful caption of the image, without the diagnosis."""
    lead = chance.choice(shot.view.leads).format(side=plan.side)
    caption = f"{lead} {chance.choice(_SHOWS)} {_sign(chance, plan, shot)}"
    if shot.timepoint and shot.sign:
        caption += f", {chance.choice(_CHANGES[plan.course])}"
    interval = plan.intervals[shot.timepoint - 1] if shot.timepoint else ""
    if interval:
        return f"{'Follow-up examination' if interval == 'unknown' else f'Follow-up after {interval}'}. {caption}."
    return f"{caption}."


def write_findings(chance: Random, plan: CasePlan) -> str:
    """All signs of the case in one text, one sentence for each axis and view."""
    first: dict[tuple[int | None, str], PlannedImage] = {}
    for shot in plan.shots:
        first.setdefault((shot.axis, shot.view.painter), shot)
    sentences = []
    for shot in sorted((shot for shot in first.values() if shot.sign), key=lambda shot: shot.view.modality):
        name = _NAMES.get(shot.view.modality, shot.view.modality)
        sentences.append(f"{name} {chance.choice(_SHOWED)} {_sign(chance, plan, shot)}.")
    if any(not shot.sign for shot in plan.shots):
        sentences.append(chance.choice(("The remaining images were normal.", "No further abnormality was found.")))
    if plan.intervals:
        sentences.append(f"On follow-up{_after(plan)} the changes {_COURSES[plan.course]}.")
    return " ".join(sentences)


def write_discussion(chance: Random, plan: CasePlan) -> str:
    """A teaching note in six sections that names the diagnosis and rules out the other options by their signs."""
    family, disease = families()[plan.family], plan.disease
    signs = [axis.values[sign] for axis, sign in zip(family.axes, disease.profile, strict=True)]
    together = f"{', '.join(signs[:-1])} and {signs[-1]}"
    others = " ".join(_rule_out(chance, plan, other) for other in plan.options if other is not disease)
    rival = chance.choice([other.name for other in plan.options if other is not disease])
    complaints = " or ".join(chance.sample(family.history.complaints, 2))
    texts = (
        f"{disease.name} is {disease.about}. {chance.choice(_ROLES).format(region=family.region)}",
        f"Patients may present with {complaints}. {chance.choice(_LIMITS)}",
        f"The decisive combination is {together}. {chance.choice(_CAUTIONS)} {others}",
        f"{disease.care} {chance.choice(_CARES)}. Confusing it with {rival} would lead to a different treatment.",
        _outcome(chance, plan),
        f"1. {disease.name} should be considered when {together} are found together.\n"
        f"2. {chance.choice(_LESSONS)}\n3. {chance.choice(_REMINDERS)}",
    )
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(SECTIONS, texts, strict=True))


def _sign(chance: Random, plan: CasePlan, shot: PlannedImage) -> str:
    phrases = shot.view.signs[shot.sign] if shot.sign else shot.view.normal
    return chance.choice(phrases).format(side=plan.side, mm=round(shot.view.mm * shot.size))


def _rule_out(chance: Random, plan: CasePlan, other: Disease) -> str:
    axes = families()[plan.family].axes
    apart = [
        axis.values[sign]
        for axis, sign, own in zip(axes, other.profile, plan.disease.profile, strict=True)
        if sign != own
    ]
    verb = chance.choice(("would show", "is expected to show", "typically presents with"))
    return f"{other.name} {verb} {' and '.join(apart)}."


def _after(plan: CasePlan) -> str:
    return "" if "unknown" in plan.intervals else f" after {plan.intervals[-1]}"


def _outcome(chance: Random, plan: CasePlan) -> str:
    start = chance.choice(_PROOFS)
    if plan.intervals:
        return f"{start} On follow-up{_after(plan)} the changes {_COURSES[plan.course]}."
    return f"{start} {chance.choice(_OUTCOMES)}"


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
