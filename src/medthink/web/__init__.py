"""Pages in a browser: `medthink view`, `medthink serve` and the static site.

Page modules make plain structs, templates render them, and routes or static files deliver them.
"""
