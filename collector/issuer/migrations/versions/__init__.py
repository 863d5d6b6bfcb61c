"""The steps, in the order that their names give."""
