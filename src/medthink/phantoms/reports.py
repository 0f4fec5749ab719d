"""The expert's texts: a caption per image, the integrated findings, and the six-section discussion."""

from random import Random

from medthink.phantoms.atlas import Disease, families
from medthink.phantoms.plan import CasePlan, Shot

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


def write_caption(chance: Random, plan: CasePlan, shot: Shot) -> str:
    """What this image shows, truthfully, without the diagnosis."""
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
    first: dict[tuple[int | None, str], Shot] = {}
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


def _sign(chance: Random, plan: CasePlan, shot: Shot) -> str:
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
