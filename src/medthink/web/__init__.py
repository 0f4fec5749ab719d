"""Pages in a browser: `medthink view`, `medthink serve` and the static site.

`pages` makes plain structs, templates show them, and routes or static files deliver them.
"""
