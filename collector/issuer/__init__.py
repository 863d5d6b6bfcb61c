"""The issuer of tokens: a role of its own, which knows the people of a study and nothing of their reports."""
