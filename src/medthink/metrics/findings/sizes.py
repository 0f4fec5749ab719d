"""When two sizes of a finding agree: the tolerance and the limits of the judges' rubric."""

TOLERANCE_MM = 1.0
TOLERANCE_SHARE = 0.2
# A size above the limit means something else than one below it. By finding and by site; the rubric names the sources.
# The lexicon has one aorta: the limit is that of the abdominal one.
LIMITS_MM = {"appendix": 6.0, "aorta": 30.0, "aortic_aneurysm": 30.0, "lymph_node": 10.0, "lymphadenopathy": 10.0}


def sizes_agree(reference: float, candidate: float, *about: str | None) -> bool:
    """Whether two sizes in mm of what `about` names are within the tolerance and on one side of its limit."""
    limits = [LIMITS_MM[name] for name in about if name in LIMITS_MM]
    if any((reference > limit) != (candidate > limit) for limit in limits):
        return False
    # Sizes are written with few decimals: 1.2 and 1.0 cm are 2 mm apart, in binary not quite.
    return abs(reference - candidate) <= max(TOLERANCE_MM, TOLERANCE_SHARE * reference) + 1e-9
