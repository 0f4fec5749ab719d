"""How many cases two readers must read: the tables of docs/judging.md. Run: python bench/plan_reading.py."""

from math import ceil

STEPS = 8  # per case
Z = 1.959964
CLUSTERING = (0.1, 0.2, 0.3)


def kappa_variance(kappa: float, share: float) -> float:
    """The large-sample variance of κ for one pair, two readers of equal margins (Fleiss, Cohen and Everitt 1969)."""
    both = kappa * share * (1 - share) + share**2
    cells = {(1, 1): both, (1, 0): share - both, (0, 1): share - both, (0, 0): 1 - 2 * share + both}
    margin = {1: share, 0: 1 - share}
    expected = share**2 + (1 - share) ** 2
    agreed = sum(cells[k, k] * (1 - 2 * margin[k] * (1 - kappa)) ** 2 for k in (0, 1))
    apart = (1 - kappa) ** 2 * sum(cells[i, j] * (margin[i] + margin[j]) ** 2 for i, j in ((0, 1), (1, 0)))
    return (agreed + apart - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2


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
