"""The RadCliQ composites, from their published parameters as plain numbers.

Both are linear in four standardised components and LOWER IS BETTER; v0 is about the number of errors a radiologist
would count. They were fitted on 200 (v0) and 160 (v1) pairs of chest radiograph reports. In v0 a higher BLEU makes the
score worse; in v1 its weight is nil. Identical texts score -0.242 (v0) and -1.441 (v1); texts with nothing in common
score 5.516 and 2.450. Source: rajpurkarlab/CXR-Report-Metric 1.1.0 (MIT).
"""

import math

import msgspec


class Components(msgspec.Struct, frozen=True):
    """The four components of one pair."""

    radgraph: float
    bertscore: float
    semb: float
    bleu2: float


class _Fit(msgspec.Struct, frozen=True):
    """Per component, in the order of `Components`: mean, scale and coefficient; then the intercept."""

    mean: tuple[float, float, float, float]
    scale: tuple[float, float, float, float]
    coefficient: tuple[float, float, float, float]
    intercept: float


_V0 = _Fit(
    mean=(0.5398376019082272, 0.6312549595000001, 0.7716797866672277, 0.4607372064809605),
    scale=(0.3018344440559102, 0.22466950746141123, 0.24750333805236252, 0.30336670936092264),
    coefficient=(-0.4796252644863446, -0.6762170542369337, -0.46366575161751994, 0.2165861905287535),
    intercept=1.641666666666666,
)
_V1 = _Fit(
    mean=(0.5379231241355762, 0.6175725628125001, 0.7647942121140658, 0.44738335396242174),
    scale=(0.3028258411486429, 0.22430938459304575, 0.2539439110169773, 0.2989271671041838),
    coefficient=(-0.37708368261038905, -0.37030009974480316, -0.25261621789593225, 4.315048405024756e-12),
    intercept=2.466552561323256e-10,
)


def radcliq_v0(components: Components) -> float:
    """RadCliQ-v0 of one pair; lower is better."""
    return _combine(_V0, components)


def radcliq_v1(components: Components) -> float:
    """RadCliQ-v1 of one pair; lower is better."""
    return _combine(_V1, components)


def _combine(fit: _Fit, components: Components) -> float:
    values = (components.radgraph, components.bertscore, components.semb, components.bleu2)
    terms = zip(values, fit.mean, fit.scale, fit.coefficient, strict=True)
    return math.fsum(((value - mean) / scale * weight for value, mean, scale, weight in terms)) + fit.intercept
