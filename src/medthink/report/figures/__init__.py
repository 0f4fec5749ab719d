"""The figures of a report: drawn by matplotlib, each with the numbers behind it."""
