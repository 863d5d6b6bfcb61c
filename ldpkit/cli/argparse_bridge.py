"""The bridge to commands that are still declared with argparse, until all are declared with click."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import Any

import click

from ldp_client.commands.output import (
    Step,
    add_output,
    check_output,
    close_progress,
    progress_of,
    show,
)
from ldp_client.commands.parsers import SHORT, Parser, Subparsers, add_command, near_option
from ldp_client.commands.shuffled_privacy import (
    add_people,
    count_of_people,
    refuse_without_people,
    set_in_words,
)
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.study import Study
from ldp_client.files.disk import STREAM, count_lines, refuse_table
from ldp_client.words.text import say
from ldpkit.cli.budget import add_budget
from ldpkit.cli.device import add_device
from ldpkit.cli.dossier import add_dossier
from ldpkit.cli.signing import add_signing
from schemas.study import load_study


class Bridge(click.Command):
    """A command whose arguments argparse reads. Its own parameters are for lists of options only."""

    parser: argparse.ArgumentParser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave all arguments to argparse."""
        ctx.args = args
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        words = ctx.command_path.split()[1:]
        return _run(_parsed([*words, *ctx.args]))

    def get_help(self, ctx: click.Context) -> str:
        """Return the parser's help."""
        return f"{self.parser.format_help()}{ctx.command_path[:0]}"


class BridgeGroup(Bridge, click.Group):
    """A command with commands below it."""


def bridge(name: str, parser: argparse.ArgumentParser | None = None) -> click.Command:
    """Return the click command for an argparse command."""
    if parser is None:
        (action,) = [one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)]
        parser = action.choices[name]
    params = [_parameter(one) for one in parser._actions if not isinstance(one, argparse._SubParsersAction)]
    made = [one for one in params if one is not None]
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    below = {word: bridge(word, one) for action in groups for word, one in action.choices.items()}
    settings: dict[str, Any] = {"params": made, "help": parser.description, "add_help_option": False}
    command = BridgeGroup(name, commands=below, **settings) if below else Bridge(name, **settings)
    command.example = (parser.epilog or "").rpartition("ldpkit ")[2]  # type: ignore[attr-defined]
    command.parser = parser
    return command


def _parameter(action: argparse.Action) -> click.Parameter | None:
    if action.dest == "help":
        return None
    if not action.option_strings:
        return click.Argument(
            [action.dest], required=action.nargs not in ("?", "*"), metavar=str(action.metavar)
        )
    is_flag = action.nargs == 0
    return click.Option(
        [*action.option_strings, action.dest],
        is_flag=is_flag,
        multiple=isinstance(action, argparse._AppendAction),
        nargs=action.nargs if isinstance(action.nargs, int) and not is_flag else 1,
        type=None if is_flag or not action.choices else click.Choice(list(action.choices)),
    )


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the arguments. Raises SystemExit for unknown arguments."""
    parser = build_parser()
    parsed, beyond = parser.parse_known_args(arguments)
    if beyond:
        # Print option names only: any other word may be part of an answer with a space.
        names = [word.split("=")[0] for word in beyond if word.startswith("--") or word in SHORT]
        options = [near_option(parsed, name) for name in names]
        if not options and "beyond" in parsed:
            parser.error(parsed.beyond)
        parser.error(say("cli.not_understood", words=", ".join(options) or say("cli.a_word")))
    return parsed


def _run(parsed: argparse.Namespace) -> int:
    check_output(parsed)
    try:
        code: int = parsed.run(parsed)
        # Flush here to report errors: Python's own flush at exit would use another format and exit code.
        sys.stdout.flush()
    finally:
        close_progress(parsed)
    return code


@cache
def build_parser() -> argparse.ArgumentParser:
    """Build the parser with every package's subcommands: 74 parsers, made once a process."""
    # Imported here: users interrupt this too.
    from collector import cli as collector_cli
    from inference import cli as inference_cli

    parser: argparse.ArgumentParser = Parser("ldpkit", allow_abbrev=False)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    add_commands(subparsers)
    collector_cli.add_commands(subparsers)
    inference_cli.add_commands(subparsers)
    add_dossier(subparsers)
    return parser


def add_commands(subparsers: Subparsers) -> None:
    """Register check, keygen, sign, perturb, audit, answer, withdraw and budget."""
    text = say("cli.help.check")
    check = add_command(subparsers, "check", text, "check study.json")
    check.add_argument("study", metavar="STUDY.json")
    add_people(check)
    check.add_argument("--sheet", metavar="ENTRY.csv", help=say("cli.help.sheet"))
    check.add_argument("--records", type=int, metavar="N", default=100, help=say("cli.help.records"))
    add_output(check)
    check.set_defaults(run=run_check)

    text = say("cli.help.perturb")
    perturb = add_command(subparsers, "perturb", text, "perturb study.json answers.csv --out reports.ndjson")
    perturb.add_argument("study", metavar="STUDY.json")
    perturb.add_argument(
        "answers",
        metavar="ANSWERS",
        help=say("cli.help.answers"),
    )
    perturb.add_argument("--out", required=True, metavar="REPORTS", help=say("cli.help.reports"))
    perturb.add_argument("--missing-as-refusal", action="store_true", help=say("cli.help.missing_as_refusal"))
    add_output(perturb)
    perturb.set_defaults(run=run_perturb)

    text = say("cli.help.audit")
    audit = add_command(subparsers, "audit", text, "audit study.json --question ever")
    audit.add_argument("study", metavar="STUDY.json")
    audit.add_argument("--samples", type=int, default=40_000, help=say("cli.help.samples"))
    audit.add_argument("--question", metavar="ID", help=say("cli.help.question"))
    audit.add_argument("--out", metavar="FILE.json", help=say("cli.help.findings"))
    add_output(audit)
    audit.set_defaults(run=run_audit_command)

    add_signing(subparsers)
    add_device(subparsers)
    add_budget(subparsers)


def run_check(arguments: argparse.Namespace) -> int:
    """ldpkit check STUDY.json [--n N …] [--sheet ENTRY.csv [--records N]]"""
    from ldp_client.explain import describe, facts_of
    from ldp_client.words.public import cells_in_words
    from schemas.channel_warnings import require_keys
    from schemas.paper_sheet import paper_lines, write_sheet
    from schemas.priors import prior_lines
    from schemas.study_warnings import (
        cuts_in_words,
        notes_of,
        taken_in_words,
        unstated_in_words,
        warnings_of,
    )

    study = load_study(arguments.study)
    people = None if arguments.n is None else count_of_people(arguments.n)
    lines, facts = describe(study), facts_of(study)
    if study.public or people:
        lines.append(cells_in_words(study, people))
    if people is None:
        refuse_without_people(arguments)
    else:
        said, facts["shuffled_privacy"] = set_in_words(study, people, arguments)
        lines += said
    for question in study.questions:
        priors = prior_lines(question.model.prior)
        lines += [say("study.prior", question=question.id, prior=line) for line in priors]
    if study.paper is not None:
        lines += ["", *paper_lines(study)]
    if arguments.sheet is not None:
        write_sheet(study, arguments.sheet, arguments.records)
        lines.append(say("paper.written", file=arguments.sheet, records=f"{arguments.records:,}"))
    noted = [*warnings_of(study), *taken_in_words(study), *notes_of(study)]
    noted += [*cuts_in_words(study), *unstated_in_words(study)]
    show(arguments, lines, {**facts, "warnings": noted})
    for line in noted:
        _tell(line)
    _refuse_large(study)
    require_keys(study)
    return 0


def _refuse_large(study: Study) -> None:
    """Raise InputError if every report of a study would be too large for devices to send."""
    from ldp_client.device.outbox import MOST_BYTES
    from ldp_client.device.shares import body_size

    size = body_size(study)
    if size > MOST_BYTES:
        raise InputError.say("cli.report_too_large", size=size, most=MOST_BYTES)


def run_perturb(arguments: argparse.Namespace) -> int:
    """ldpkit perturb STUDY.json ANSWERS --out REPORTS [--missing-as-refusal]"""
    from ldp_client.files.batch import perturb_file

    if arguments.answers == STREAM:
        raise UsageError.say("cli.answers_in_a_file")
    refuse_table(arguments.out)
    study = load_study(arguments.study)
    if study.public:
        _tell(say("cli.in_clear", fields=", ".join([field.id for field in study.public])))
    progress, people = progress_of(arguments), count_lines(arguments.answers)

    def tell(count: int) -> None:
        progress(Step(say("cli.progress", count=count), count, max(count, people)))

    count = perturb_file(study, arguments.answers, arguments.out, tell, _tell, arguments.missing_as_refusal)
    line = say("cli.reports_in", count=count, file=arguments.out)
    show(arguments, [line], {"study": study.id, "reports": count, "file": arguments.out})
    _tell(say("cli.perturbed_once"))
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def run_audit_command(arguments: argparse.Namespace) -> int:
    """ldpkit audit STUDY.json"""
    from ldpkit.cli.audit import run_audit

    return run_audit(arguments, load_study(arguments.study))
