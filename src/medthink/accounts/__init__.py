"""People and their credentials: accounts with roles, passwords, sessions, API tokens, invitations.

Everything is in the board's store. Only digests of passwords, sessions, tokens and links are stored; a secret is
returned once, by the function that makes it. `medthink.web.app.access` says how a page requires a role.
"""
