"""How many cases two readers must read: the tables of docs/judging.md. Run: python bench/plan_reading.py."""

from math import ceil

from medthink.readers.studies.plan import kappa_variance

STEPS = 8  # per case
Z = 1.959964
CLUSTERING = (0.1, 0.2, 0.3)


def cases(variance: float, half_width: float, icc: float) -> int:
    """Cases of so many steps each; steps of a case count for less the more they are alike."""
    return ceil(variance * (Z / half_width) ** 2 * (1 + (STEPS - 1) * icc) / STEPS)


def main() -> None:
    """Print both tables."""
    print("Cases for κ = 0.6 ± 0.1, by the share of wrong steps and the clustering of errors by case (ICC)")
    for share in (0.1, 0.2, 0.3):
        print(f"{share:.0%}", *(cases(kappa_variance(0.6, share), 0.1, icc) for icc in CLUSTERING), sep="\t")
    print("Cases for a rate ± 5 points")
    for share in (0.1, 0.2, 0.3, 0.5):
        print(f"{share:.0%}", *(cases(share * (1 - share), 0.05, icc) for icc in CLUSTERING), sep="\t")


if __name__ == "__main__":
    main()
