"""The page of all commands, with what each says of itself."""

from collections.abc import Iterator

import click

from ldpkit.cli import cli
from ldpkit.cli.commands import WIDTH


def command_line_page() -> str:
    """Each command's help, whole."""
    lines = [
        "# All commands",
        "",
        "What `ldpkit COMMAND --help` prints. What commands have in common, exit codes among it, is on "
        "[a page of its own](../commands.md).",
    ]
    for name, command in commands():
        ctx = click.Context(command, info_name=name, terminal_width=WIDTH)
        lines += ["", f"## `{name}`", "", "```text", command.get_help(ctx).rstrip(), "```"]
    return "\n".join([*lines, ""])


def commands(command: click.Command = cli, name: str = "ldpkit") -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something by itself, after its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    ctx = click.Context(command)
    for word in sorted(command.list_commands(ctx)):
        inner = command.get_command(ctx, word)
        assert inner is not None
        yield from commands(inner, f"{name} {word}")
