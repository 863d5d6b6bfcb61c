"""How tests call the commands of `ldpkit`, and look at what each takes."""

import json
from contextlib import ExitStack
from unittest.mock import patch

import click

from ldpkit.cli import cli, main
from ldpkit.cli.commands import Collector, NewPath, StudyFile
from schemas import Study


def run(*words):
    """Run a command that succeeds, or raise the error that it raises."""
    assert not cli.main(words, "ldpkit", standalone_mode=False)


def exit_code(words):
    """Run a command as `ldpkit` does and return its exit code."""
    try:
        return main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


def check(folder, study, *options):
    """Run `ldpkit check` on a study, which it writes to a folder, and return the exit code."""
    path = folder / "study.json"
    path.write_text(json.dumps(study.document if isinstance(study, Study) else study), encoding="utf-8")
    return main(["check", str(path), *options])


def leaves(command=cli, words=()):
    """Yield each command that does something by itself, after its words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        yield from leaves(command.get_command(ctx, name), (*words, name))


def parsed(words):
    """Return what a command makes of its words, without running it. Raises what a wrong call raises.

    No file is opened, so studies stay paths, and collectors addresses.
    """
    ctx = click.Context(cli, info_name="ldpkit")
    command = cli
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(ctx, words)
        ctx = click.Context(command, parent=ctx, info_name=name, **command.context_settings)
    with ExitStack() as stack:
        for kind in (StudyFile, Collector, NewPath):
            stack.enter_context(patch.object(kind, "convert", lambda _kind, value, *_: value))
        command.parse_args(ctx, words)
    return ctx.params
