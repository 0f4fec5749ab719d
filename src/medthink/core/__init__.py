"""What every room stands on: strict JSON, atomic files, digests, seeds, the clock and the error tree."""
