"""Plain text for people: plurals, and what others wrote, made harmless."""


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural unless there is one: "1 report", "0 reports"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def visible(text: str) -> str:
    """Foreign text (a study's, a server's, a file's) as a terminal may print it, on one line.

    Control characters, line breaks and those that change the direction of writing are shown as their escapes:
    none may move the cursor, colour what we say, or pass for a line of ours.
    """
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])
