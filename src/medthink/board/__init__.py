"""Submissions and the leaderboard: pack, check, store, rank, publish."""
