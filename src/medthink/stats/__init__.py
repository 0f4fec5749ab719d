"""Intervals, paired tests, ranks, agreement and calibration: arrays in, small named results out.

Chance comes in as a `numpy.random.Generator`; the same rows in any order with the same seed give the same
result. What cannot be computed is `Undefined` with its reason, never NaN. scipy is loaded on first use.
"""

from medthink.stats.agreement import (
    Agreement,
    KappaCaution,
    OrderedAgreement,
    agreement,
    cohen_kappa,
    confusion,
    gwet_ac,
    kappa_caution,
    matthews_correlation,
    ordered_agreement,
    percent_agreement,
)
from medthink.stats.bootstrap import bootstrap_mean, bootstrap_statistic
from medthink.stats.bradley_terry import Game, Strength, bradley_terry
from medthink.stats.calibration import (
    Calibration,
    CalibrationError,
    ReliabilityBin,
    brier_score,
    calibration,
    expected_calibration_error,
)
from medthink.stats.correction import Validation, corrected_clustered_rate, corrected_rate
from medthink.stats.estimate import Estimate, Measured, Undefined, reciprocal
from medthink.stats.gain import GainOverRivals, gain_over_rivals
from medthink.stats.intervals import (
    clustered_error,
    exact_upper_bound,
    mean_interval,
    rate_interval,
    share_interval,
    wilson,
)
from medthink.stats.items import ItemTable, SuspectKeys, item_table, suspect_keys
from medthink.stats.multiple import holm
from medthink.stats.paired import (
    McNemar,
    PairedComparison,
    SignFlip,
    compare_pair,
    mcnemar,
    mcnemar_p,
    paired_difference,
    sign_flip_test,
)
from medthink.stats.panel import PanelAgreement, krippendorff_alpha, panel_agreement
from medthink.stats.power import Resolution, detectable_rate, minimum_detectable_difference, needed_cases, paired_power
from medthink.stats.powered import PoweredRate, powered_rate
from medthink.stats.ranks import RankedPair, RankedRun, Ranking, rank_runs
from medthink.stats.rated import LoneLabel, lone_labels
from medthink.stats.repeats import Repeats, repeated_mean
from medthink.stats.sequence import MeanSequence, RateSequence, SignSequence

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
    "PairedComparison",
    "PanelAgreement",
    "PoweredRate",
    "RankedPair",
    "RankedRun",
    "Ranking",
    "RateSequence",
    "ReliabilityBin",
    "Repeats",
    "Resolution",
    "SignFlip",
    "SignSequence",
    "Strength",
    "SuspectKeys",
    "Undefined",
    "Validation",
    "agreement",
    "bootstrap_mean",
    "bootstrap_statistic",
    "bradley_terry",
    "brier_score",
    "calibration",
    "clustered_error",
    "cohen_kappa",
    "compare_pair",
    "confusion",
    "corrected_clustered_rate",
    "corrected_rate",
    "detectable_rate",
    "exact_upper_bound",
    "expected_calibration_error",
    "gain_over_rivals",
    "gwet_ac",
    "holm",
    "item_table",
    "kappa_caution",
    "krippendorff_alpha",
    "lone_labels",
    "matthews_correlation",
    "mcnemar",
    "mcnemar_p",
    "mean_interval",
    "minimum_detectable_difference",
    "needed_cases",
    "ordered_agreement",
    "paired_difference",
    "paired_power",
    "panel_agreement",
    "percent_agreement",
    "powered_rate",
    "rank_runs",
    "rate_interval",
    "reciprocal",
    "repeated_mean",
    "share_interval",
    "sign_flip_test",
    "suspect_keys",
    "wilson",
]
