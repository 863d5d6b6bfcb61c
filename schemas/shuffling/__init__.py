"""The privacy of a report towards an observer who sees only the set of all reports (METHODS 1.6).

Nothing here adds protection. It computes how much a channel that hides each report's sender adds to the
device's noise.
"""
