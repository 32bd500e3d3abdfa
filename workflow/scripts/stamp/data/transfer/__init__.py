"""Files from the network: resumed, retried, verified, and under their own name only when whole.

Bytes arrive in ``<name>.part``; ``<name>.part.json`` says which version of which file they belong
to, so that a later run asks for the rest of the same version only. What was verified once is kept
in ``.stamp-downloads.json`` and is not read again. URLs are printed without credentials or query.
"""
