"""How much of a score is diagnosis and how much is guessing: audits of a benchmark and of runs."""
