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
