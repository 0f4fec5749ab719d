"""Runs as something to read: one self-contained page, figures, and tables for papers and spreadsheets."""
