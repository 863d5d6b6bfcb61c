"""The subcommands `ldpkit init`, `serve`, `export` and `secure-sum`, and the operators' commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from collector.database_commands import add_database_commands
from collector.issuer.cli import add_issuer
from collector.oblivious.cli import add_ohttp
from collector.operator.access_commands import add_access_commands
from collector.operator.at_a_collector import DEFAULT_URL, token_of
from collector.operator.init_cli import TOKEN_BYTES, add_init, make_database
from collector.settings import JSON_LINES, TOKEN_VARIABLE, Settings, server_settings
from ldp_client.commands.output import Step, add_output, progress_of, show
from ldp_client.commands.parsers import add_command
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import STREAM, refuse_table
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from summaries.decoding import Decoding

REPORTS_BETWEEN_LINES = 1000
# How long `serve` waits for PostgreSQL.
START_SECONDS = 60.0
Fetched = TypeVar("Fetched")
SEVERAL = (
    "%d processes on one SQLite file wait for each other's commits: one alone is faster, or take PostgreSQL"
)
IN_CLEAR = (
    "--host {host} without https: tokens and reports can be read on the network. Put a proxy with TLS in "
    "front, or name --tls-certificate and --tls-key"
)


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "make a place for a collector: database, token, settings"
    add_init(add_command(subparsers, "init", text, "init"))
    _add_serve(add_command(subparsers, "serve", "run the collector", "serve --port 8000"))
    add_access_commands(subparsers)
    text = "fetch a study's reports from a collector"
    _add_export(add_command(subparsers, "export", text, "export habits --out reports.ndjson"))
    add_database_commands(subparsers)
    add_ohttp(add_command(subparsers, "ohttp", "make and change the keys of a collector's gateway"))
    text = "give people one token each, which cannot be linked to their reports"
    add_issuer(add_command(subparsers, "issuer", text))


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"default {Settings.database}")
    parser.add_argument("--new", action="store_true", help="make the database if there is none")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes any free port (default 8000)")
    parser.add_argument(
        "--token", help=f"operator's token; better set {TOKEN_VARIABLE}; without keys one is made"
    )
    parser.add_argument("--workers", type=_at_least_one, default=1, help="processes (default 1)")
    parser.add_argument("--threads", type=_at_least_one, default=64, help="threads a process (default 64)")
    text = "refuse reports that do not come through a relay"
    parser.add_argument("--require-ohttp", action="store_true", default=None, help=text)
    text = "for https without a proxy: a PEM file, the server's own certificate first"
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help=text)
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="its private key in PEM, readable only by its owner"
    )
    parser.add_argument("--ready-file", metavar="FILE", help="gets the base URL once the server listens")
    parser.set_defaults(run=run_serve, create=None)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY_ID")
    parser.add_argument(
        "--collector",
        dest="collector",
        metavar="URL",
        help=f"the collector (default {DEFAULT_URL})",
    )
    parser.add_argument("--token", help=f"a key that may read; default {TOKEN_VARIABLE}")
    text = (
        "a new file: NDJSON, or *.csv, or *.parquet; or for a dataset of many files an empty folder, whose "
        "name ends in /, or an address such as s3://bucket/x"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help=text)
    what = parser.add_mutually_exclusive_group()
    text = "with columns of what each report says, for people: *.csv, *.parquet, or CSV for -"
    what.add_argument("--decoded", action="store_true", help=text)
    what.add_argument(
        "--summary", action="store_true", help="only what a posterior needs, for `ldpkit fit`; some kilobytes"
    )
    add_output(parser)
    parser.set_defaults(run=run_export)


def _at_least_one(text: str) -> int:
    """Parse a number of processes or threads for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, is {text}")
    return int(text)


def run_serve(arguments: argparse.Namespace) -> int:
    """ldpkit serve [--database URL]"""
    from collector.db import sqlite_file
    from collector.logs import log_event, refuse_ready, write_logs
    from collector.server import Endpoint, serve_collector
    from collector.wal import LOGGER, served_alone

    refuse_ready(arguments.ready_file)
    certificate, key = arguments.tls_certificate, arguments.tls_key
    endpoint = Endpoint(
        arguments.host, arguments.port, arguments.workers, arguments.threads, certificate, key
    )
    settings = _serve_settings(arguments)
    _warn_of_postgresql(settings)
    if certificate is None and arguments.host not in LOOPBACK:
        print(IN_CLEAR.format(host=arguments.host), file=sys.stderr)
    file, master = sqlite_file(settings.database), os.getpid()
    write_logs(settings.log_format)
    log_event("start", "the server starts", workers=endpoint.workers)
    if file is not None and endpoint.workers > 1:
        LOGGER.warning(SEVERAL, endpoint.workers, extra={"code": "several-processes"})
    try:
        with served_alone(file):
            announce = partial(_announce, settings, ready_file=arguments.ready_file)
            serve_collector(settings, endpoint, announce, arguments.create)
    finally:
        # A worker also leaves through here.
        if os.getpid() == master:
            log_event("stop", "the server has stopped")
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    """ldpkit export STUDY_ID --collector URL --out (FILE | ADDRESS) [--summary | --decoded]"""
    address = arguments.out
    is_place = "://" in address or address.endswith("/") or os.path.isdir(address)
    arguments.out, arguments.collector = Path(address), arguments.collector or DEFAULT_URL
    token = token_of(arguments, "an export")
    if is_place and (arguments.summary or arguments.decoded):
        option = "--summary" if arguments.summary else "--decoded"
        raise UsageError(f"{option} makes one file: name it, not {address}", code="export.file_name_needed")
    if not is_place and address != STREAM and arguments.out.exists():
        raise InputError(
            f"{address} is there already: an export is a new file; name another one, or delete that one",
            code="export.file_exists",
        )
    if arguments.summary:
        refuse_table(arguments.out)
        line, document = _write_summary(arguments, token)
    else:
        line, document = _write_reports(arguments, token, address if is_place else None)
    show(arguments, line.split("\n"), {"study": arguments.study, "file": address, **document})
    return 0


def _write_reports(
    arguments: argparse.Namespace, token: str, address: str | None
) -> tuple[str, dict[str, int]]:
    """Write reports to a file, or as a dataset to an address; return the result in words and for programs."""
    from collector.remote.download import Start, fetch_dated, fetch_reports, fetch_study
    from collector.remote.writing import write_decoded, write_reports

    wanted, start = (arguments.collector, arguments.study, token), Start()
    files = 1
    if arguments.decoded:
        decoding = _decoding(arguments)
        reports = _counted_aloud(fetch_dated(*wanted, start), arguments)
        count = write_decoded(reports, arguments.out, decoding)
        for question in decoding.undecoded:
            print(f"{question} has no decoded columns: only `ldpkit fit` reads its reports", file=sys.stderr)
    elif address is not None:
        from collector.remote.dataset import write_dataset

        plain = _counted_aloud(fetch_reports(*wanted, start), arguments)
        find = partial(fetch_study, arguments.collector, arguments.study)
        parts = write_dataset(plain, arguments.study, address, find)
        count, files = sum(part.reports for part in parts), len(parts)
    else:
        count = write_reports(_counted_aloud(fetch_reports(*wanted, start), arguments), arguments.out)
    where = arguments.out if address is None else f"{counted(files, 'file')} in {address}"
    line = f"{counted(count, 'report')} in {where}"
    if start.withdrawn:
        were = "report was" if start.withdrawn == 1 else "reports were"
        line += (
            f"\n{start.withdrawn} {were} withdrawn since the last export: delete older copies, which may "
            "have them"
        )
    return line, {"reports": count, "files": files, "withdrawn": start.withdrawn}


def _decoding(arguments: argparse.Namespace) -> Decoding:
    """Return the decoding of each version's reports. Raises UsageError if there are no columns for it."""
    from collector.remote.download import fetch_study
    from collector.remote.writing import TABLES
    from summaries.decoding import Decoding

    if arguments.out.suffix.lower() not in TABLES and str(arguments.out) != STREAM:
        raise UsageError(
            f"--decoded makes a table: name it *.csv or *.parquet, not {arguments.out.name}",
            code="export.decoded_needs_table",
        )
    return Decoding(partial(fetch_study, arguments.collector, arguments.study))


def _counted_aloud(reports: Iterable[Fetched], arguments: argparse.Namespace) -> Iterator[Fetched]:
    """Yield the reports and print progress; how many are left is unknown."""
    progress = progress_of(arguments)
    for count, report in enumerate(reports, 1):
        yield report
        if count % REPORTS_BETWEEN_LINES == 0:
            progress(Step(f"{counted(count, 'report')} fetched", 0, 1))


def _write_summary(arguments: argparse.Namespace, token: str) -> tuple[str, dict[str, int]]:
    from collector.remote.download import fetch_summary
    from ldp_client.files.disk import replacing

    text = fetch_summary(arguments.collector, arguments.study, token)
    with replacing(str(arguments.out), is_new=True) as file:
        file.write(text + "\n")
    version = json.loads(text).get("version")
    left_out = "; it has no report of earlier versions: without --summary, their stored reports are exported"
    earlier = "" if version == 1 else left_out
    return f"the summary of version {version} is in {arguments.out}{earlier}", {"version": version}


def _serve_settings(arguments: argparse.Namespace) -> Settings:
    settings = server_settings(
        database=arguments.database,
        token=arguments.token,
        require_ohttp=arguments.require_ohttp,
    )
    wait_for_database(settings)
    if arguments.new:
        make_database(settings)
    return _with_token(settings) if settings.token is None else settings


def wait_for_database(
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until PostgreSQL answers, which may start later than this server when a machine starts.

    Raises InputError after START_SECONDS.
    """
    from collector.migrations import UnreachedError, opened

    if settings.database.startswith("sqlite"):
        return
    deadline, is_told = clock() + START_SECONDS, False
    while True:
        try:
            with opened(settings.database, settings.lock_timeout):
                return
        except UnreachedError as error:
            if clock() > deadline:
                raise
            if not is_told:
                print(f"waiting {START_SECONDS:.0f} s for the database: {error}", file=sys.stderr)
            is_told = True
            sleep(1)
        except InputError:
            # It answers: what is wrong with it is told where it is used.
            return


def _with_token(settings: Settings) -> Settings:
    """Make a token if no operator could act otherwise. A made token is printed, so it may stay in a log."""
    from collector.keys import new_word

    if _has_keys(settings):
        print(
            "no token is set: keys that were made before are good; set one to make or revoke keys",
            file=sys.stderr,
        )
        return settings
    made = replace(settings, token=new_word(TOKEN_BYTES))
    print(f"operator's token: {made.token}", file=sys.stderr, flush=True)
    return made


def _warn_of_postgresql(settings: Settings) -> None:
    from collector.daily import telltale_settings
    from collector.db import has_lagging_replica
    from collector.migrations import opened

    if settings.database.startswith("sqlite"):
        return
    with opened(settings.database, settings.lock_timeout) as database:
        for setting in telltale_settings(database):
            print(f"PostgreSQL has {setting}: it records when each report came", file=sys.stderr)
        if has_lagging_replica(database):
            advice = "see synchronous_standby_names in docs/operate.md"
            print(f"a replica follows PostgreSQL, and may lack the last reports: {advice}", file=sys.stderr)


def _has_keys(settings: Settings) -> bool:
    """Return True if a key has the operator's role."""
    from collector.keys import Role, list_keys
    from collector.migrations import opened

    with opened(settings.database, settings.lock_timeout) as database, database.read() as session:
        return any(key.role is Role.OPERATE for key in list_keys(session))


def _announce(settings: Settings, url: str, ready_file: str | None) -> None:
    from collector.logs import log_event, write_ready

    if settings.log_format == JSON_LINES:
        log_event("listening", f"ldpkit collector listens on {url}", url=url)
    else:
        print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
    write_ready(ready_file, url)
