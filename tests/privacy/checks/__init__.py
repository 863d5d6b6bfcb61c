"""Checks of the repository in addition to `ldpkit audit`: of times, replays, bulk, JavaScript and devices."""
