"""The `ldpkit` command: its names, and what becomes of errors. Each command is in a module of its subject."""

import codecs
import errno
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from ldp_client.documents import errors
from ldp_client.words.text import visible
from ldpkit.cli.commands import SETTINGS
from ldpkit.cli.output import warn
from ldpkit.lacking import lacking

MINUS = "\N{MINUS SIGN}"
# Errors of a full or broken disk, including a user's full quota.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Characters of a command's description in the list of commands.
SHORT_HELP = 78
HELP = """Ask many people a question, and learn what the answers say without anyone's answer.

`ldpkit COMMAND --help` shows an example of each command. To see them all at work: ldpkit demo.

Exit codes: 0 done, 2 usage, 3 refused, 4 not to be trusted, 5 network, 129 terminal closed, 130 interrupted,
143 terminated, 1 anything else.
"""
# Each command's module below ldpkit.cli, and its name there, by the part of `ldpkit --help`. A command's name
# ends without the _ that some functions need.
SECTIONS = {
    "Make": "making.new making.check planning.plan trying.try_ making.sign making.keygen making.compile_",
    "Collect": "serving.init server_files.token serving.serve server_files.migrate studies.publish "
    "studies.status studies.close studies.open_ studies.delete tickets.invite studies.keys exporting.export "
    "server_files.backup server_files.restore",
    "Answer": "answering.answer answering.withdraw answering.budget",
    "Analyse": "analysing.codebook analysing.perturb analysing.summarize analysing.fit surveys.survey "
    "planning.calibrate analysing.audit",
    "More": "node.node tickets.tickets server_files.ohttp making.derive making.dossier trying.demo",
}
HOMES = {home.partition(".")[2].rstrip("_"): home for homes in SECTIONS.values() for home in homes.split()}


class CommandLine(click.Group):
    """The command `ldpkit`, which loads the module of a command when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands, in the order of the help."""
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, None for an unknown name."""
        if cmd_name not in HOMES:
            # Near names are searched among these.
            self.commands = dict.fromkeys(HOMES, self)
            return None
        module, _, name = HOMES[cmd_name].partition(".")
        command: click.Command = getattr(import_module(f"ldpkit.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        for section, homes in SECTIONS.items():
            with formatter.section(section):
                names = [name for name, home in HOMES.items() if home in homes.split()]
                commands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl(
                    [(name, command.get_short_help_str(SHORT_HELP)) for name, command in commands if command]
                )


cli = CommandLine("ldpkit", help=HELP, context_settings=SETTINGS)
cli = click.version_option(package_name="ldpkit", message="ldpkit %(version)s", help="print the version")(cli)


def plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Replace a character that the console lacks: a minus by a hyphen, others by their escapes."""
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] == MINUS:
        return "-", error.start + 1
    replaced, end = codecs.backslashreplace_errors(error)
    return str(replaced), end


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Print errors of ldpkit as one line on standard error."""
    if hasattr(sys.stdout, "reconfigure"):
        # Not every console has all characters.
        codecs.register_error("ldpkit", plain_characters)
        sys.stdout.reconfigure(errors="ldpkit")
    try:
        end_by_signal()
        code = cli.main(argv, "ldpkit", standalone_mode=False)
        # Flush here to report errors: Python's own flush at exit would use another format and exit code.
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        warn(error.format_message())
        return errors.EXIT_USAGE
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        more = f" (see {ctx.command_path} --help)" if ctx else ""
        warn(visible(f"ldpkit: {error.format_message()}{more}"))
        return errors.EXIT_USAGE
    except errors.LdpkitError as error:
        warn(visible(f"ldpkit: {error}"))
        return error.exit_code
    except ModuleNotFoundError as error:
        missing = lacking(error)
        if missing is None:
            raise
        warn(f"ldpkit: {missing}")
        return missing.exit_code
    except (KeyboardInterrupt, click.Abort):
        warn("ldpkit: interrupted")
        return errors.EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return errors.EXIT_OTHER
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        warn(f"ldpkit: cannot write the output: {error.strerror}")
        with suppress(OSError):
            # Do not retry its buffered output.
            sys.stdout.close()
        return errors.EXIT_OTHER


def end_by_signal() -> None:
    """Make SIGTERM and SIGHUP raise SystemExit, so that a command cleans up after itself.

    An ignored SIGHUP, as under nohup, stays ignored.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(errors.EXIT_TERMINATED))
    # Windows has no SIGHUP.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(errors.EXIT_HUNG_UP))
