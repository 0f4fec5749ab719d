"""Kinds of option values that click does not know."""

import math

import click


class Real(click.FloatRange):
    """A finite number within a range; NaN and infinity are refused."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
