"""The foundation of every room: strict JSON, atomic files, digests, seeds, the clock and the error tree."""
