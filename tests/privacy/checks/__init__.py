"""Checks of the repository beside `ldpkit audit`: of times, replays, bulk, JavaScript and devices."""
