"""How many of something, as people say it."""


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural unless there is one: "1 report", "0 reports"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
