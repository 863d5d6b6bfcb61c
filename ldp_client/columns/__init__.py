"""Columns of many people's answers, as a data holder has them. A device never has them."""
