"""What a report is worth towards somebody who sees only the set of all reports (METHODS 1.6).

Nothing here protects anybody: it says what a channel that hides who sent which report adds to what the device
has done. No device needs it, so it goes with ldpkit.
"""
