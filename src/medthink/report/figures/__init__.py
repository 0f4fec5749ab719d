"""The figures of a report: what each shows, drawn by matplotlib, with the numbers it was drawn from."""
