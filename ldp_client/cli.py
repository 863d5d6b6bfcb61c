"""The `ldpkit` command, and its subcommands that run on the device side: study check, perturb,
audit, answer.

Each package registers its own subcommands under the entry point group `ldpkit.commands`.
"""

import argparse
import os
import signal
import sys
from importlib.metadata import entry_points, version

from schemas.errors import AlreadyAnsweredError, InputError, LdpkitError, MissingExtraError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from ldp_client.device import Device
    from schemas.study import Study

COMMAND_GROUP = "ldpkit.commands"
COLLECTOR_MODULES = (
    "alembic",
    "flask",
    "granian",
    "gunicorn",
    "prometheus_client",
    "psycopg",
    "sqlalchemy",
    "werkzeug",
    "zstandard",
)
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Run one command; returns the exit code. Errors of ldpkit are one line on standard error."""
    parsed = build_parser().parse_args(arguments)
    # So that a terminated command cleans up after itself.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        code: int = parsed.run(parsed)
        return code
    except LdpkitError as error:
        print(f"ldpkit: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except ModuleNotFoundError as error:
        return _missing_extra(error)
    except KeyboardInterrupt:
        print("ldpkit: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _missing_extra(error: ModuleNotFoundError) -> int:
    missing = (error.name or "").split(".")[0]
    if missing in ("schemas", "ldp_client", "collector", "inference", ""):
        raise error
    extra = "collector" if missing in COLLECTOR_MODULES else "inference"
    extra = "demo" if missing == "statsmodels" else extra
    print(f"ldpkit: {MissingExtraError(extra, missing)}", file=sys.stderr)
    return EXIT_BAD_INPUT


def build_parser() -> argparse.ArgumentParser:
    """The parser with every package's subcommands."""
    parser = argparse.ArgumentParser(prog="ldpkit", description="Local differential privacy, end to end.")
    parser.add_argument("--version", action="version", version=f"ldpkit {version('ldpkit')}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for entry in sorted(entry_points(group=COMMAND_GROUP), key=lambda entry: entry.name):
        entry.load()(subparsers)
    return parser


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register study check, perturb, audit and answer."""
    study = subparsers.add_parser("study", help="look at study documents")
    check = study.add_subparsers(required=True, metavar="ACTION").add_parser(
        "check", help="validate; print true epsilon, noise, and what it means"
    )
    check.add_argument("study", metavar="STUDY.json")
    check.set_defaults(run=run_study_check)

    perturb = subparsers.add_parser("perturb", help="add device-side noise to a file of answers")
    perturb.add_argument("study", metavar="STUDY.json")
    perturb.add_argument("answers", metavar="ANSWERS", help="NDJSON, or CSV with a header")
    perturb.add_argument("--out", required=True, metavar="REPORTS", help="where the reports go (NDJSON)")
    perturb.set_defaults(run=run_perturb)

    audit = subparsers.add_parser("audit", help="try to prove a study's privacy wrong")
    audit.add_argument("study", metavar="STUDY.json")
    audit.add_argument("--samples", type=int, default=40_000, help="reports of each answer (default 40000)")
    audit.add_argument("--question", metavar="ID", help="this question only")
    audit.add_argument("--out", metavar="FILE.json", help="write the findings as JSON too")
    audit.set_defaults(run=run_audit_command)

    answer = subparsers.add_parser("answer", help="answer a study once, as one device")
    answer.add_argument("study_url", metavar="STUDY_URL", help="http://host/v1/studies/ID")
    answer.add_argument("--set", action="append", default=[], metavar="QUESTION=VALUE", dest="answers")
    answer.add_argument("--folder", default=default_folder(), help="where the device's ledger lives")
    answer.add_argument("--max-epsilon", default="8", help="this device's budget for life (default 8)")
    answer.set_defaults(run=run_answer)


def default_folder() -> str:
    """The folder of this user's own device."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "ldpkit")


def run_study_check(arguments: argparse.Namespace) -> int:
    """ldpkit study check STUDY.json"""
    from ldp_client.wording import describe

    print("\n".join(describe(load_study(arguments.study))))
    return 0


def run_perturb(arguments: argparse.Namespace) -> int:
    """ldpkit perturb STUDY.json ANSWERS --out REPORTS"""
    from ldp_client.batch import perturb_file

    count = perturb_file(load_study(arguments.study), arguments.answers, arguments.out)
    print(f"{count} reports in {arguments.out}")
    print("Each run draws new noise and spends epsilon again: keep these reports, run once.", file=sys.stderr)
    return 0


def run_audit_command(arguments: argparse.Namespace) -> int:
    """ldpkit audit STUDY.json"""
    from ldp_client.audit.cli import run_audit

    return run_audit(arguments, load_study(arguments.study))


def run_answer(arguments: argparse.Namespace) -> int:
    """ldpkit answer STUDY_URL --set question=value …"""
    from ldp_client.answers import answers_from_text
    from ldp_client.device import Device
    from ldp_client.fetch import fetch_study

    study, collector = fetch_study(arguments.study_url)
    device = Device(arguments.folder, arguments.max_epsilon, collector)
    answers = answers_from_text(study, split_settings(study, arguments.answers))
    try:
        report_id = device.answer(study, answers)
        print(f"answered {study.id}; report {report_id}; epsilon left {float(device.epsilon_left):g}")
    except AlreadyAnsweredError:
        # What an earlier call could not send is sent now.
        _send_queued(device)
        raise
    return _send_queued(device)


def _send_queued(device: "Device") -> int:
    """Flush and say what happened; the exit code is 1 when a report was refused or still waits."""
    flushed = device.flush()
    for line in flushed.refused:
        print(f"refused: {line}", file=sys.stderr)
    if flushed.waiting:
        print(f"{flushed.waiting} reports wait: {flushed.reason}; run again to send them", file=sys.stderr)
    print(f"{flushed.sent} reports sent")
    return 1 if flushed.refused or flushed.waiting else 0


def split_settings(study: "Study", settings: "list[str]") -> "dict[str, str]":
    """{column: text} from QUESTION=VALUE arguments. Raises InputError."""
    from ldp_client.answers import columns_of

    known = [column for question in study.questions for column in columns_of(question)]
    texts: "dict[str, str]" = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            # Not even the name is repeated: it may be an answer that was mistyped.
            raise InputError(f"--set: use QUESTION=VALUE, with one of: {', '.join(known)}")
        if name in texts:
            raise InputError(f"--set {name}: stands twice")
        texts[name] = value
    return texts


def load_study(path: str) -> "Study":
    """Read a study document. Raises InputError, StudyError."""
    from schemas.study import Study

    try:
        with open(path, "rb") as file:
            return Study.from_json(file.read())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
