"""Tickets: each lets one report in. Direct ones travel with the report; blind ones buy a token for it."""
