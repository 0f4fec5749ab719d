"""Texts with a known timeline and captions with a known modality, written for measuring and for nothing else."""

import random
from collections.abc import Iterator
from typing import NamedTuple

PARTS = (
    "liver",
    "left kidney",
    "chest",
    "lumbar spine",
    "right knee",
    "brain",
    "pancreas",
    "neck",
    "pelvis",
    "abdomen",
)
FINDINGS = (
    "a well-defined mass", "a cystic lesion", "a small nodule", "cortical thickening", "a fluid collection",
    "a filling defect", "diffuse wall thickening", "an expansile lesion", "calcifications", "oedema of the fat",
)  # fmt: skip
SPANS = ("two weeks", "three months", "six months", "one year", "4 years", "10 days", "18 months")
EXAMINATIONS = ("CT", "MRI", "Ultrasound", "A radiograph", "Contrast-enhanced CT", "MR imaging")

# {e}: an examination, {f}: a finding, {p}: a part of the body, {s}: a span of time.
TWICE = (
    "{e} of the {p} showed {f}. {s} later, {e2} showed that it had grown.",
    "{e} of the {p} showed {f}. A follow-up {e2} after {s} was unremarkable.",
    "{e} showed {f} in the {p}, which had already been visible on a previous {e2}.",
    "On the {e2} obtained {s} earlier, no lesion was seen. {e} of the {p} now showed {f}.",
    "{e} of the {p} showed {f}. After completion of chemotherapy, {e2} showed a partial response.",
    "{e} of the {p} showed {f}. The patient was followed up, and serial {e2} showed no change over {s}.",
    "{e} of the {p} showed {f}. At the {s} control, {e2} showed complete resolution.",
    "{e} showed {f} of the {p}. Symptoms returned after {s}, and a second {e2} showed recurrence.",
    "{e} of the {p} showed {f}. Compared with the prior examination, the lesion had enlarged.",
    "{e} of the {p} in 2015 showed {f}. {e2} in 2021 showed the lesion to be larger.",
    "{e} of the {p} showed {f}. Postoperative {e2} confirmed complete removal.",
    "{e} of the {p} showed {f}. Imaging was repeated {s} later, when {e2} showed progression.",
    "{e} of the {p} showed {f}. {e2} performed {s} after the start of treatment showed regression.",
    "{e} at 20 weeks of gestation showed {f}. At 32 weeks, the lesion had increased in size.",
    "{e} of the {p} showed {f}. An annual {e2} has shown a stable lesion since.",
    # Harder: no usual word for a later examination.
    "{e} of the {p} showed {f}. The lesion had doubled in size since the examination of last summer.",
    "Three {e2} examinations over {s} documented the growth of the lesion in the {p}. {e} showed {f}.",
    "{e} of the {p} showed {f}, and by the time of discharge {e2} had returned to normal.",
)
ONCE = (
    "A patient with pain for {s}. {e} of the {p} showed {f}. {e2} confirmed it.",
    "The patient had undergone surgery {s} earlier. {e} of the {p} showed {f}. {e2} was normal.",
    "{s} after a fall, {e} of the {p} showed {f}. {e2} added nothing.",
    "Initial {e} of the {p} showed {f}. Subsequent {e2} confirmed the finding.",
    "A routine follow-up {e2} for breast cancer was done. It showed {f} in the {p}.",
    "{e} of the {p} showed {f}. No previous imaging was available.",
    "{e} of the {p} showed {f}. {e2} was advised but the patient was lost to follow-up.",
    "{e} of the {p} showed {f}. Further evaluation with {e2} was performed on the same day.",
    "The symptoms had begun {s} ago. {e} of the {p} showed {f}, and {e2} showed the same.",
    "{e} of the {p} showed {f}. A follow-up {e2} in {s} was recommended.",
    "The patient was admitted {s} after delivery. {e} of the {p} showed {f}. {e2} was not needed.",
    "{e} of the {p} was followed by {e2} for better characterisation and showed {f}.",
    "A patient treated for tuberculosis {s} before. {e} of the {p} showed {f}; {e2} was negative.",
    "{e} and {e2} of the {p} showed {f}. Biopsy was done {s} later.",
    "Laboratory tests had been normal {s} earlier. {e} of the {p} showed {f}. {e2} agreed.",
    # Harder: words of time close to an examination.
    "{s} after transplantation, a surveillance biopsy failed, so {e} of the {p} was done. It showed {f}. {e2} agreed.",
    "The patient, whose previous surgery was uneventful, had {e} of the {p}, which showed {f}. {e2} agreed.",
)

NAMED = {
    "CT": (
        "Axial contrast-enhanced CT of the {p} shows {f} (arrow).", "Coronal CT reconstruction: {f}.",
        "CT angiography of the {p}.", "Non-contrast computed tomography of the {p} with {f}.", "HRCT shows {f}.",
        "CT in the portal venous phase, as requested after ultrasound, shows {f}.",
    ),
    "MRI": (
        "Sagittal T2-weighted image of the {p} shows {f}.", "MRI of the {p} after gadolinium: {f}.", "FLAIR image.",
        "Diffusion-weighted imaging of the {p} (b = 1000).", "T1 FS post-contrast, {f}.", "MR angiogram of the {p}.",
        "STIR image of the {p}, better seen than on CT.",
    ),
    "X-ray": (
        "Anteroposterior radiograph of the {p} shows {f}.", "Chest X-ray on admission.", "Barium enema shows {f}.",
        "Digital subtraction angiography (DSA) of the {p}.", "Mediolateral oblique mammogram with {f}.",
        "Plain film of the {p}.", "Voiding cystourethrogram shows {f}.",
    ),
    "Ultrasound": (
        "Transverse ultrasound of the {p} shows {f}.", "Colour Doppler sonography of the {p}.", "US of the {p}: {f}.",
        "Echocardiography, four-chamber view.", "Longitudinal sonogram with {f}.",
    ),
    "Nuclear medicine & Molecular imaging": (
        "FDG PET/CT shows intense uptake in the {p}.", "Bone scintigraphy of the {p}.", "99mTc-MDP bone scan.",
        "SPECT of the {p}.", "Maximum intensity projection of the PET.",
    ),
    "Pathology": (
        "Photomicrograph (haematoxylin and eosin, ×200).", "Histology of the specimen shows {f}.",
        "Gross specimen after resection of the {p}.", "Immunohistochemistry is positive for S100.",
    ),
    "Clinical photography": ("Clinical photograph of the patient.", "Intraoperative view of the {p} with {f}."),
    "Endoscopy": ("Colonoscopy shows {f}.", "Arthroscopic image of the {p}.", "Bronchoscopy: {f}."),
    "Non-modality / Workflow / Post-processing": ("Schematic drawing of the {p}.", "Diagram of the operation."),
}  # fmt: skip
DESCRIBED = {
    "CT": ("Hypodense lesion in the {p}.", "Bone window of the {p} with {f}.", "The lesion measures 40 HU."),
    "MRI": ("Hyperintense lesion in the {p}.", "Low signal intensity in the {p}.", "Flow voids within the lesion."),
    "Ultrasound": ("Hypoechoic lesion in the {p}.", "{f} with posterior acoustic shadowing."),
    "X-ray": ("Lateral view of the {p} shows {f}.",),
}
# What most captions that name nothing are like; their modality is anybody's guess.
SILENT = (
    "{f} in the {p} (arrow).", "Axial image at the level of the {p}.", "Enhancement of the lesion in the {p}.",
    "The mass abuts the {p} and displaces the vessels.", "Coronal view.", "Same patient, {f}.",
)  # fmt: skip
TWO = {
    "CT": "CT of the {p}; compare with the MRI in figure 3.",
    "MRI": "MRI of the {p}, corresponding to the lesion seen on CT.",
    "X-ray": "Radiograph obtained after CT-guided drainage of the {p}.",
    "Ultrasound": "Ultrasound of the {p} before MRI.",
}


class PlantedText(NamedTuple):
    """A text, and what is true of it."""

    text: str
    truth: str


def timelines(count: int, seed: int) -> Iterator[PlantedText]:
    """So many texts, a third of them of two times."""
    rng = random.Random(seed)
    for _ in range(count):
        is_twice = rng.random() < 1 / 3
        text = _fill(rng.choice(TWICE if is_twice else ONCE), rng)
        yield PlantedText(text, "twice" if is_twice else "once")


def captions(count: int, seed: int) -> Iterator[PlantedText]:
    """So many captions: half name their modality, a tenth describe it, a tenth name two, the others say nothing."""
    rng = random.Random(seed)
    weights = {"CT": 30, "MRI": 30, "X-ray": 15, "Ultrasound": 12}
    names = list(NAMED)
    for _ in range(count):
        modality = rng.choices(names, [weights.get(name, 3) for name in names])[0]
        kind = rng.choices(("named", "described", "two", "silent"), (50, 10, 8, 32))[0]
        pools = {"named": NAMED[modality], "described": DESCRIBED.get(modality, SILENT), "silent": SILENT}
        pools["two"] = (TWO[modality],) if modality in TWO else NAMED[modality]
        yield PlantedText(_fill(rng.choice(pools[kind]), rng), modality)


def _fill(template: str, rng: random.Random) -> str:
    first, second = rng.sample(EXAMINATIONS, 2)
    text = template.format(
        e=first, e2=second.removeprefix("A "), f=rng.choice(FINDINGS), p=rng.choice(PARTS), s=rng.choice(SPANS)
    )
    return text[0].upper() + text[1:]
