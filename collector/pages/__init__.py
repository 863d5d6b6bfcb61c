"""Pages for people: the participant's and the operator's."""
