"""The `ldpkit` command, and the subcommands of authors and devices. Each package adds its own subcommands."""

import argparse
import errno
import signal
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version

from ldp_client.commands.output import (
    Step,
    add_output,
    check_output,
    close_progress,
    naming_output,
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
from ldp_client.documents.errors import (
    EXIT_HUNG_UP,
    EXIT_INTERRUPTED,
    EXIT_OTHER,
    EXIT_TERMINATED,
    InputError,
    LdpkitError,
    MissingExtraError,
    UsageError,
)
from ldp_client.documents.study import Study
from ldp_client.files.disk import STREAM, count_lines, refuse_table
from ldp_client.files.lacking import lacking, top_of
from ldp_client.words.text import say, visible
from ldpkit.cli.budget import add_budget
from ldpkit.cli.device import add_device
from ldpkit.cli.dossier import add_dossier
from ldpkit.cli.signing import add_signing
from schemas.study import load_study

DISTRIBUTION = "ldpkit"
COLLECTOR_MODULES = (
    "alembic",
    "cryptography",
    "flask",
    "granian",
    "prometheus_client",
    "psycopg",
    "segno",
    "sqlalchemy",
    "werkzeug",
)
OTHER_MODULES = {"statsmodels": "demo"}
# Errors of a full or broken disk, including a user's full quota.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. Print errors of ldpkit as one line on standard error."""
    if hasattr(sys.stdout, "reconfigure"):
        # As for Python's standard error: not every encoding has all characters.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        end_by_signal()
        with naming_output():
            # Loading the commands' modules takes a second, and users interrupt that too.
            return _run(_parsed(arguments))
    except LdpkitError as error:
        _tell(visible(f"ldpkit: {error}"))
        return error.exit_code
    except ModuleNotFoundError as error:
        return _missing_extra(error)
    except KeyboardInterrupt:
        _tell(f"ldpkit: {say('cli.interrupted')}")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_OTHER
    except OSError as error:
        return _full_output(error)


def end_by_signal() -> None:
    """Make SIGTERM and SIGHUP raise SystemExit, so that a command cleans up after itself.

    An ignored SIGHUP, as under nohup, stays ignored.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    # Windows has no SIGHUP.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(EXIT_HUNG_UP))


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


def _full_output(error: OSError) -> int:
    """Report that standard output, or a file without a name, cannot be written. Raises any other error."""
    if error.filename not in (None, STREAM) or error.errno not in FULL:
        raise error
    reason = error.strerror
    if error.filename:
        reason = say("files.cannot_write", path=say("cli.standard_output"), reason=reason)
        with suppress(OSError):
            # Do not retry its buffered output.
            sys.stdout.close()
    _tell(f"ldpkit: {reason}")
    return EXIT_OTHER


def _missing_extra(error: ModuleNotFoundError) -> int:
    module = top_of(error)
    extra = "collector" if module in COLLECTOR_MODULES else "inference"
    missing = lacking(error, OTHER_MODULES.get(module, extra))
    if missing is None:
        raise error
    print(f"ldpkit: {missing}", file=sys.stderr)
    return MissingExtraError.exit_code


@cache
def build_parser() -> argparse.ArgumentParser:
    """Build the parser with every package's subcommands: 74 parsers, made once a process."""
    # Imported here: users interrupt this too.
    from collector import cli as collector_cli
    from inference import cli as inference_cli

    where = say("cli.help.examples")
    epilog = f"{where.rstrip('.')}. {say('cli.help.codes')}"
    head = say("cli.help")
    parser: argparse.ArgumentParser = Parser("ldpkit", None, head, epilog, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ldpkit {version(DISTRIBUTION)}")
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
