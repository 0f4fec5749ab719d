"""Intervals, paired tests, ranks, agreement and calibration: arrays in, small named results out.

Randomness comes only from the `numpy.random.Generator` that is passed in; the same rows in any order with the same seed
give the same result. A value that cannot be computed is `Undefined` with its reason, never NaN. scipy is loaded on
first use.
"""

from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.calibration import (
    Calibration,
    CalibrationError,
    ReliabilityBin,
    calibration,
    expected_calibration_error,
)
from medthink.stats.comparisons.bradley_terry import Game, Strength, bradley_terry
from medthink.stats.comparisons.differences import holm
from medthink.stats.comparisons.gain import GainOverRivals, gain_over_rivals
from medthink.stats.comparisons.paired import (
    McNemar,
    SignFlipTest,
    mcnemar,
    mcnemar_p,
    paired_difference,
    sign_flip_test,
)
from medthink.stats.comparisons.ranks import RankedPair, RankedRun, Ranking, rank_runs
from medthink.stats.confidence_sequences import MeanSequence, RateSequence, SignSequence
from medthink.stats.estimate import Estimate, Measured, Undefined, reciprocal
from medthink.stats.intervals import exact_upper_bound, mean_interval, rate_interval, share_interval, wilson
from medthink.stats.items import ItemTable, SuspectKeys, item_table, suspect_keys
from medthink.stats.power import Resolution, detectable_rate, minimum_detectable_difference, needed_cases, paired_power
from medthink.stats.raters.agreement import (
    Agreement,
    KappaCaution,
    OrderedAgreement,
    cohen_kappa,
    confusion,
    gwet_ac,
    kappa_caution,
    ordered_agreement,
    rater_agreement,
)
from medthink.stats.raters.correction import PoweredRate, corrected_clustered_rate, powered_rate
from medthink.stats.raters.panel import LoneLabel, PanelAgreement, lone_labels, panel_agreement
from medthink.stats.repeats import Repeats, repeated_mean

__all__ = [
    "Agreement",
    "Calibration",
    "CalibrationError",
    "Estimate",
    "GainOverRivals",
    "Game",
    "ItemTable",
    "KappaCaution",
    "LoneLabel",
    "McNemar",
    "MeanSequence",
    "Measured",
    "OrderedAgreement",
    "PanelAgreement",
    "PoweredRate",
    "RankedPair",
    "RankedRun",
    "Ranking",
    "RateSequence",
    "ReliabilityBin",
    "Repeats",
    "Resolution",
    "SignFlipTest",
    "SignSequence",
    "Strength",
    "SuspectKeys",
    "Undefined",
    "bootstrap_mean",
    "bradley_terry",
    "calibration",
    "cohen_kappa",
    "confusion",
    "corrected_clustered_rate",
    "detectable_rate",
    "exact_upper_bound",
    "expected_calibration_error",
    "gain_over_rivals",
    "gwet_ac",
    "holm",
    "item_table",
    "kappa_caution",
    "lone_labels",
    "mcnemar",
    "mcnemar_p",
    "mean_interval",
    "minimum_detectable_difference",
    "needed_cases",
    "ordered_agreement",
    "paired_difference",
    "paired_power",
    "panel_agreement",
    "powered_rate",
    "rank_runs",
    "rate_interval",
    "rater_agreement",
    "reciprocal",
    "repeated_mean",
    "share_interval",
    "sign_flip_test",
    "suspect_keys",
    "wilson",
]
