"""The subcommands of `ldpkit admin`, on the database itself: keys, studies and invitations."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from collector.operator.access_commands import (
    LINES,
    add_key_arguments,
    add_log_arguments,
    add_public_values,
    day_of,
    expiry_of,
    public_values,
    taking_back,
)
from collector.operator.at_a_collector import add_certainty, add_json, require_yes, show
from collector.settings import FILE_NAME, Settings, settings_to_invite, settings_with
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import read_bytes
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.storage.database import Database


def add_admin(parser: argparse.ArgumentParser) -> None:
    """Register the subcommands of admin."""
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "show the operator's token that ldpkit init made"
    add_command(subparsers, "token", text, "admin token").set_defaults(run=run_token)
    text = "bring an earlier release's database to this one; no server may run on it"
    _add_command(subparsers, "migrate", text, "migrate", run_migrate)
    _add_keys(add_command(subparsers, "keys", "say who may publish, read and operate"))
    text = "make invitations; from then on only they let a report in"
    invite = _add_command(subparsers, "invite", text, "invite habits --count 500", run_invite)
    invite.add_argument("study", metavar="STUDY_ID")
    action = invite.add_mutually_exclusive_group(required=True)
    action.add_argument("--count", type=int, metavar="N", help="print so many, one a line, for the only time")
    action.add_argument("--lift", action="store_true", help="forget them and let everybody's reports in")
    text = "forget them: whoever needs one needs a new one"
    action.add_argument("--forget", action="store_true", help=text)
    add_public_values(invite)
    text = "at a node of a secure sum: what `ldpkit secure-sum invite` wrote for it"
    action.add_argument("--file", metavar="LIST", help=text)
    invite.add_argument("--node-key", metavar="FILE", help="with --file: the node's keys, else node_key's")
    text = "list the studies, with how many reports each has"
    add_json(_add_command(subparsers, "studies", text, "studies", run_studies))
    text = "close a study and delete its reports"
    delete = _add_command(subparsers, "delete-study", text, "delete-study habits --yes", run_delete)
    delete.add_argument("study", metavar="STUDY_ID")
    add_certainty(delete)
    text = "say what operators did, with which key, and when"
    log = _add_command(subparsers, "audit-log", text, "audit-log", run_audit_log)
    add_log_arguments(log)
    add_json(log)
    text = "delete used invitations, and the order in which reports came; a server does so once a day"
    upkeep = _add_command(subparsers, "upkeep", text, "upkeep", run_upkeep)
    text = "this day (UTC), where a clock was wrong: reports of days to come are dated today"
    upkeep.add_argument("--date", metavar="YYYY-MM-DD", help=text)
    text = "count every stored report again, for the running summaries"
    _add_command(subparsers, "recount", text, "recount", run_recount)


def add_backup(parser: argparse.ArgumentParser) -> None:
    """Register backup's arguments."""
    _add_database(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    parser.set_defaults(run=run_backup)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(required=True, metavar="ACTION")
    add = _add_command(
        subparsers, "add", "make a key and show it, once", "keys add ann --role read", run_add_key
    )
    add_key_arguments(add)
    text = "list names, roles, studies, last days and last uses"
    add_json(_add_command(subparsers, "list", text, "keys list", run_list_keys))
    remove = _add_command(subparsers, "remove", "make a key useless", "keys remove ann", run_remove_key)
    remove.add_argument("name", metavar="NAME")


def _add_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    example: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = add_command(subparsers, name, text, f"admin {example}")
    _add_database(parser)
    parser.set_defaults(run=run)
    return parser


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"default {Settings.database}")


def opened_database(arguments: argparse.Namespace) -> AbstractContextManager[Database]:
    """The database that a command names."""
    from collector.storage.migrating import opened

    settings = settings_with(database=arguments.database)
    return opened(settings.database, settings.busy_timeout)


def run_token(_arguments: argparse.Namespace) -> int:
    """ldpkit admin token"""
    token = settings_with().token
    if token is None:
        raise InputError(
            f"no token is set: start in the folder that has {FILE_NAME}", code="keys.no_token_set"
        )
    print(token)
    return 0


def run_migrate(arguments: argparse.Namespace) -> int:
    """ldpkit admin migrate"""
    from collector.storage.database import Database
    from collector.storage.migrating import migrate

    settings = settings_with(database=arguments.database)
    database = Database(settings.database, settings.busy_timeout)
    migrate(database)
    print(f"{database.shown} is this release's")
    return 0


def run_add_key(arguments: argparse.Namespace) -> int:
    """ldpkit admin keys add NAME --role ROLE [--study STUDY_ID …] [--expires YYYY-MM-DD]"""
    from collector.storage.keys import Role, add_key, remove_key, unpublished

    expires = expiry_of(arguments)
    with opened_database(arguments) as database, database.write() as session:
        key = add_key(session, arguments.name, Role(arguments.role), arguments.study, expires)
        warnings = unpublished(session, arguments.study)
    for line in warnings:
        print(line, file=sys.stderr)

    def remove() -> None:
        with opened_database(arguments) as database, database.write() as session:
            remove_key(session, arguments.name)

    with taking_back(arguments.name, remove):
        print(key)
    return 0


def run_list_keys(arguments: argparse.Namespace) -> int:
    """ldpkit admin keys list"""
    from collector.operator.overview import key_in_one_line
    from collector.storage.keys import list_keys

    with opened_database(arguments) as database, database.read() as session:
        found = [key.document() for key in list_keys(session)]
    show(found, arguments.json, lambda keys: map(key_in_one_line, keys))
    return 0


def run_remove_key(arguments: argparse.Namespace) -> int:
    """ldpkit admin keys remove NAME"""
    from collector.storage.keys import remove_key

    with opened_database(arguments) as database, database.write() as session:
        remove_key(session, arguments.name)
    return 0


def run_studies(arguments: argparse.Namespace) -> int:
    """ldpkit admin studies"""
    from collector.operator.overview import in_one_line, listed
    from collector.reports.rules import RuleBook
    from collector.storage import overviews
    from collector.storage.upkeep import utc_today

    with opened_database(arguments) as database:
        rules, today = RuleBook(database), utc_today()
        with database.read() as session:
            studies = overviews.study_overviews(session)
        found = [listed(study, rules.find(study.id, study.version).study, today) for study in studies]
    show(found, arguments.json, lambda studies: map(in_one_line, studies))
    return 0


def run_invite(arguments: argparse.Namespace) -> int:
    """ldpkit admin invite STUDY_ID (--count N [--public FIELD=VALUE …] | --file LIST | --lift | --forget)"""
    from collector.operator.inviting import (
        NO_KEY,
        forget,
        lift,
        refuse_ended,
        take_list,
    )
    from collector.storage.upkeep import utc_today

    text = read_bytes(arguments.file).decode("utf-8", "replace") if arguments.file else ""
    needs_key = not (arguments.lift or arguments.forget)
    chosen = settings_to_invite if needs_key else settings_with
    settings = chosen(database=arguments.database, node_key=arguments.node_key)
    secret = settings.invitation_secret
    keys = _node_keys(settings) if arguments.file else ""
    public = _public_values(arguments)
    with opened_database(arguments) as database:
        with database.write() as session:
            if needs_key and not secret:
                raise InputError(NO_KEY, code="ticket.no_invitation_key")
            if needs_key:
                refuse_ended(session, arguments.study, utc_today(), timedelta(settings.late_days))
            if arguments.lift:
                lift(session, arguments.study)
            elif arguments.forget:
                forget(session, arguments.study)
            elif arguments.file:
                print(take_list(session, arguments.study, text, secret, keys))
        if arguments.count is not None:
            _make_invitations(database, arguments, secret, public)
    return 0


def _make_invitations(
    database: Database, arguments: argparse.Namespace, secret: bytes, public: dict[str, str]
) -> None:
    """Make invitations and print them. Raises OSError where nobody reads them; then no unused one is good."""
    from collector.operator.inviting import invite, take_back, warnings_of_invitations
    from collector.storage import queries

    study_id = arguments.study
    with database.write() as session:
        before = queries.study_state(session, study_id)
        invitations = invite(session, study_id, arguments.count, secret, public)
        warnings = warnings_of_invitations(session, study_id)
    for warning in warnings:
        print(warning, file=sys.stderr)
    try:
        print(*invitations, sep="\n", flush=True)
    except OSError:
        with database.write() as session:
            was_invited = before is not None and before.invited
            used = take_back(session, study_id, invitations, was_invited, secret)
        which = f"{used} of them were used already, and none of the others" if used else "none of them"
        print(f"nobody read the invitations to the end: {which} is good", file=sys.stderr)
        raise


def _node_keys(settings: Settings) -> str:
    """This node's public keys, as a study names them; "" where no key file is named. Raises InputError."""
    if settings.node_key is None:
        return ""
    from collector.storage.node_keys import NodeKeys

    return NodeKeys.load(settings.node_key).fragment


def _public_values(arguments: argparse.Namespace) -> dict[str, str]:
    values = public_values(arguments)
    if values and arguments.count is None:
        raise UsageError("--public goes with --count", code="ticket.public_needs_count")
    return values


def run_audit_log(arguments: argparse.Namespace) -> int:
    """ldpkit admin audit-log [--since YYYY-MM-DD] [--limit N] [--json]"""
    from collector.operator.overview import entry_in_one_line
    from collector.storage.audit_log import entries

    since = None if arguments.since is None else day_of("--since", arguments.since)
    with opened_database(arguments) as database, database.read() as session:
        found = [entry._asdict() for entry in entries(session, arguments.limit or LINES, since)]
    show(found, arguments.json, lambda lines: map(entry_in_one_line, lines))
    return 0


def _doubt(database: Database, today: date) -> str:
    """Why the server, too, would store nothing on this day; "" where it would."""
    from collector.storage.upkeep import doubt_of

    with database.read() as session:
        return doubt_of(session, today)


def run_delete(arguments: argparse.Namespace) -> int:
    """ldpkit admin delete-study STUDY_ID (--yes | --dry-run)"""
    from collector.operator.retention import count_reports, delete_study, ended_by_deleting
    from collector.reports.rules import RuleBook
    from collector.storage.audit_log import AT_DATABASE

    with opened_database(arguments) as database:
        found = counted(count_reports(database, arguments.study), "report")
        where = database.shown
        if ended := ended_by_deleting(database, arguments.study):
            print(ended, file=sys.stderr)
        if arguments.dry_run:
            print(f"{found} would be deleted in {where}, and the study closed for good")
            return 0
        require_yes(arguments, f"deleting every report of {arguments.study} ({found}) in {where}")
        deleted = delete_study(database.act, RuleBook(database).find, arguments.study, AT_DATABASE)
        print(f"{counted(deleted, 'report')} deleted in {where}")
    return 0


def run_upkeep(arguments: argparse.Namespace) -> int:
    """ldpkit admin upkeep [--date YYYY-MM-DD]"""
    from collector.storage.rewriting import UnfinishedError
    from collector.storage.upkeep import Upkeep, utc_today

    today = utc_today()
    if arguments.date is not None and day_of("--date", arguments.date) != today:
        raise InputError(
            f"--date {arguments.date}: this machine's clock says {today} (UTC); set it right first",
            code="admin.wrong_date",
        )
    with opened_database(arguments) as database:
        secret = settings_to_invite(database=arguments.database).invitation_secret
        doubt = _doubt(database, today)
        if doubt and arguments.date is None:
            raise InputError(
                f"{doubt}: where today is {today}, say so with --date {today}",
                code="admin.upkeep_clock_in_doubt",
            )
        try:
            Upkeep(database, utc_today, secret).run(today, even_if_done=True)
        except UnfinishedError as error:
            print(f"ldpkit: {database.shown}: {error}, and run this again", file=sys.stderr)
            return 1
    return 0


def run_recount(arguments: argparse.Namespace) -> int:
    """ldpkit admin recount"""
    from collector.reports.running_summary import recount

    with opened_database(arguments) as database:
        wrong = database.act(recount)
    for study, version in wrong:
        print(f"{study}\tversion {version}\tthe summary was wrong, and is right now")
    if not wrong:
        print("every summary was right")
    return 0


def run_backup(arguments: argparse.Namespace) -> int:
    """ldpkit backup --out FILE"""
    from collector.storage.backup import back_up
    from collector.storage.database import Database

    settings = settings_with(database=arguments.database)
    database = Database(settings.database, settings.busy_timeout)
    back_up(database, arguments.out)
    print(f"{arguments.out} has everything up to now")
    return 0
