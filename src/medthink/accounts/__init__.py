"""People and what opens doors for them: accounts with roles, passwords, sessions, API tokens, invitations.

Everything lives in the board's store. Of a password, session, token or link only a digest is kept; what a person must
write down is returned once, by the function that makes it. How a page asks for a role stands in `medthink.web.access`.
"""
