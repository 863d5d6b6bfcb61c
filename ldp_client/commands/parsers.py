"""What subcommands of `ldpkit` share: how they are registered, and how they print what others wrote."""

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


# Of commands that judge what they found: it was written, and is not to be trusted.
EXIT_NOT_TRUSTED = 4


def add_command(subparsers: "Subparsers", name: str, text: str, example: str = "") -> argparse.ArgumentParser:
    """The parser of a new subcommand. text: what it does. example: a call, without `ldpkit`."""
    return subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"example:\n  ldpkit {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def visible(text: str) -> str:
    """Foreign text (a study's, a server's, a file's) as a terminal may print it, on one line.

    Control characters, line breaks and those that change the direction of writing are shown as their escapes:
    none may move the cursor, colour what we say, or pass for a line of ours.
    """
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])
