"""Judging beyond the letter: steps, discussions and findings, by models and by readers, and how far they agree."""
