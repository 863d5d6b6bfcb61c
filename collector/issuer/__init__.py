"""The token issuer: a separate role that knows the people of a study and nothing about their reports."""
