"""The command `ldpkit invite` and the group `ldpkit tickets`, for an issuer of blind tickets."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from ldp_client.documents.errors import InputError, LdpkitError, TransferError, UsageError
from ldp_client.words.text import counted, visible
from ldpkit.cli.commands import collector_option, command, group, json_option, out_option
from ldpkit.cli.databases import database_option
from ldpkit.cli.links import MOST, NAME, new_place, room_for, saying, writer
from ldpkit.cli.output import is_json, show, warn
from ldpkit.cli.people import Person, public_document, public_of, read_people
from ldpkit.cli.serving import run_server, server_options

if TYPE_CHECKING:
    from ldpkit.cli.client import Client

AT_ONCE, NAMES_AT_ONCE = 10_000, 1000
DIRECTORY = "/.well-known/private-token-issuer-directory"
# Paths before a study's id: of the page for participants, and of the document for devices.
OF_A_STUDY = "/s/", "/v1/studies/"
# Each picture is a file.
MOST_PICTURES = 10_000
LINKS_HELP = "a new file: links, one a line, or *.csv with names or numbers (default: print them)"
NEXT = """\
made {settings} and {database}
next, in {folder}:
  ldpkit tickets serve --port 8100               # behind TLS; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token
  ldpkit tickets key STUDY_ID --collector http://127.0.0.1:8100
"""
ENDED = (
    "{count} ended: people without a token need a new one. List only people who say that they have none: "
    "ldpkit invite STUDY_ID --names FILE --again --second-token"
)
HAS_TOKEN = {True: "has a token", False: "no token yet", None: "may have a token"}
public_option = click.option(
    "--public",
    multiple=True,
    metavar="FIELD=VALUE",
    help="the value of a public field that the tickets carry; repeat it",
)


@command("invite", "invite habits --count 500 --out links.csv")
@click.argument("study", metavar="STUDY_ID")
@click.option("--count", type=click.IntRange(1, MOST), metavar="N", help="make so many")
@click.option("--names", metavar="FILE.csv", help=f"one for each: a column {NAME!r}, and public fields")
@click.option("--disable", is_flag=True, help="instead, revoke all and admit reports without tickets")
@click.option("--revoke-all", is_flag=True, help="instead, revoke all: people need new ones")
@public_option
@click.option("--again", is_flag=True, help="at an issuer: end unused ones, of these or all unnamed people")
@click.option("--second-token", is_flag=True, help="with --again: people with a token may send two reports")
@out_option(LINKS_HELP, required=False)
@click.option("--qr", metavar="FOLDER", help="a new folder, with the link of each as an SVG file")
@click.option("--address", metavar="URL", help="where people reach the collector, if not at --collector")
@collector_option
@json_option
def invite(
    study: str,
    count: int | None,
    names: str | None,
    disable: bool,
    revoke_all: bool,
    public: tuple[str, ...],
    again: bool,
    second_token: bool,
    out: str | None,
    qr: str | None,
    address: str | None,
    collector: str,
) -> None:
    """Make tickets to a study, as links and QR codes; from then on only they let a report in.

    --collector names a collector, or an issuer of blind tickets. Only an issuer stores names.
    """
    from ldpkit.cli.client import client_of, study_path

    # 1. Check the options.
    if [count is not None, names is not None, disable, revoke_all].count(True) != 1:
        raise click.UsageError("give one of --count, --names, --disable and --revoke-all")
    is_making = not disable and not revoke_all
    if not is_making and (public or again or out or qr or address):
        raise UsageError(
            "--public, --again, --out, --qr and --address go with --count or --names",
            code="ticket.needs_count",
        )
    if second_token and not again:
        raise UsageError("--second-token goes with --again", code="ticket.second_token_needs_again")
    if names and (public or (is_json() and not out)):
        raise UsageError(
            "--names: the file has the public values, and --json needs --out", code="ticket.names_alone"
        )
    values = public_of(public)
    people = read_people(names) if names else [Person("", values)] * (count or 0)
    if qr and len(people) > MOST_PICTURES:
        raise UsageError(
            f"--qr: makes a file of each, of {MOST_PICTURES} at most", code="ticket.too_many_pictures"
        )
    client = client_of(collector, "inviting")
    path = f"{study_path(study)}/tickets"
    # 2. Revoke tickets.
    if not is_making:
        action = "disable" if disable else "revoke"
        client.ask("POST", f"{path}/{action}", lambda body: body["id"], {})
        said = f"everybody's reports to {study} are let in"
        show(
            [said if disable else f"only new tickets let a report to {study} in"],
            {"study": study, "done": True},
        )
        return
    # 3. Or make them, and write each where only its owner reads it.
    link, is_issuer = _link_of(client, study, address, again)
    if qr and not link:
        raise UsageError("--qr: give the collector's --address, for the links", code="ticket.needs_address")
    if qr:
        # Import it first: without it, the tickets would be made but not drawn.
        import segno  # noqa: F401
    # A collector gets no names: with them its database could join people and reports.
    batches = list(_batches(people, by_name=is_issuer and bool(names), again=again, second=second_token))
    labels = _labels(people)
    head = [NAME, *people[0].public] if names else ["number"]
    found = {"study": study, "tickets": len(people), "done": True, "links": None, "file": out, "folder": qr}
    # With --json, the links are part of the one JSON object on standard output.
    kept = io.StringIO() if is_json() and not out else None
    try:
        with new_place(out, qr, room_for(link, list(labels.values()))) as file:
            write = writer(file if kept is None else kept, out or "", qr, link, head)
            _make_all(client, path, study, batches, lambda at, made: write([labels[i] for i in at], made))
    finally:
        # No other copy exists, so show the tickets made before an error too.
        if kept is not None and kept.tell():
            links = kept.getvalue().splitlines()
            _show_all(study, {**found, "tickets": len(links), "links": links})
    if is_json() and kept is None:
        show([], found)
    warn(f"made {counted(len(people), 'ticket')} to {study} at {client.url}; they are kept nowhere else")


def _link_of(client: Client, study: str, address: str | None, again: bool) -> tuple[str, bool]:
    """Return the part of links before a ticket, "" for none, and whether the server is an issuer.

    Raises UsageError for a wrong address, before any request, and for `again` at a collector.
    """
    base = _base_of_links(address, study) if address else ""
    is_issuer = _is_issuer(client)
    if again and not is_issuer:
        raise UsageError("--again is for an issuer; at a collector: --revoke-all", code="ticket.again_here")
    # An issuer does not know the collector's address.
    if not base and not is_issuer:
        base = _base_of_links(client.url, study)
    return base and f"{base}/s/{study}#ticket=", is_issuer


def _is_issuer(client: Client) -> bool:
    """Return True for an issuer, which has a directory of its keys."""
    from ldpkit.cli.client import RefusalError

    try:
        client.send("GET", DIRECTORY)
    except RefusalError as refusal:
        if refusal.status != 404:
            raise
        return False
    return True


def _labels(people: Sequence[Person]) -> dict[int, list[object]]:
    """Return what a line says before each ticket: the number of the person, or name and public values."""
    return {
        place: [person.name, *person.public.values()] if person.name else [place + 1]
        for place, person in enumerate(people)
    }


def _batches(
    people: Sequence[Person], by_name: bool, again: bool, second: bool
) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Yield requests, each with the places of its people: by name, or by number for each stratum."""
    more = {"again": again, "second": second} if again else {}
    strata: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, person in enumerate(people):
        strata.setdefault(() if by_name else tuple(person.public.items()), []).append(place)
    for places in strata.values():
        size = NAMES_AT_ONCE if by_name else AT_ONCE
        for start in range(0, len(places), size):
            some = places[start : start + size]
            if by_name:
                yield some, {"people": [people[place].document() for place in some], **more}
                continue
            # Only the first request ends earlier tickets, or it would end those of the one before.
            ending = {} if start else more
            yield some, {"count": len(some), "public": public_document(people[some[0]].public), **ending}


def _base_of_links(address: str, study_id: str) -> str:
    """Return the base URL of links, checked before tickets are made. Raises UsageError."""
    from ldp_client.device.arguments import LOOPBACK
    from ldpkit.cli.client import check_form

    check_form(address)
    page, parts = address.rstrip("/"), urlsplit(address)
    # The path may belong to the collector: a proxy can serve it below a path such as /s/panel.
    if page.endswith(tuple(place + study_id for place in OF_A_STUDY)):
        # `ldpkit publish` prints this address; links based on it would be broken.
        raise UsageError(
            f"{page} is a study's address: name the collector's own, without /s/ID",
            code="ticket.study_address",
        )
    if parts.hostname in LOOPBACK:
        warn(f"links to {page} work only on this machine: --address gives the URL for other people")
    elif parts.scheme == "http":
        warn(f"links to {page} send reports unencrypted: use https://")
    return page


def _show_all(study: str, found: dict[str, Any]) -> None:
    """Print links that are in no file. Raises InputError if standard output cannot be written."""
    try:
        with saying("standard output"):
            show([], found)
            sys.stdout.flush()
    except (OSError, InputError):
        _say_what_undoes(study, 0)
        raise


def _say_what_undoes(study_id: str, done: int) -> None:
    warn(
        f"{counted(done, 'ticket')} written; others may have been made and lost. `ldpkit invite {study_id} "
        "--disable` admits all reports again; after --revoke-all, only new ones are valid. At an issuer, "
        "--again replaces them"
    )


def _make_all(
    client: Client,
    path: str,
    study_id: str,
    batches: Sequence[tuple[list[int], dict[str, Any]]],
    write: Callable[[list[int], list[str]], None],
) -> None:
    """Make the tickets and write them, one batch at a time. Raises the server's refusals."""
    from ldpkit.cli.client import RefusalError

    done = 0
    try:
        for places, asked in batches:
            tickets, warnings = client.ask("POST", path, _made, asked, again=False)
            if len(tickets) != len(places):
                raise TransferError(
                    f"{client.url} made {len(tickets)} tickets instead of {len(places)}",
                    code="server.answer_not_json",
                )
            for line in warnings if not done or "people" in asked else ():
                warn(visible(line))
            write(places, tickets)
            done += len(tickets)
    except RefusalError:
        warn(f"{counted(done, 'ticket')} written; the others were not made")
        raise
    except (LdpkitError, OSError):
        _say_what_undoes(study_id, done)
        raise


def _made(body: Any) -> tuple[list[str], list[str]]:
    """Return made tickets and warnings. Raises ValueError for what cannot be in a link."""
    tickets = [str(ticket) for ticket in body["tickets"]]
    if not all(ticket.isascii() and ticket.replace("-", "").replace("_", "").isalnum() for ticket in tickets):
        raise ValueError
    return tickets, [str(line) for line in body["warnings"]]


@group("tickets")
def tickets() -> None:
    """Run an issuer of blind tickets, which is not the collector."""


@tickets.command("init", example="tickets init issuer")
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option("--database", metavar="URL", help="an empty one; default a new file in FOLDER")
def init(folder: str, database: str | None) -> None:
    """Make a place for an issuer: database, token, settings. Default: this folder."""
    from ldpkit.cli.places import make_place

    settings, shown = make_place(Path(folder), database)
    print(NEXT.format(settings=settings, database=shown, folder=settings.parent), end="", file=sys.stderr)


@tickets.command("serve", example="tickets serve --port 8100")
@server_options
def serve(database: str | None, **options: Any) -> None:
    """Run an issuer in its place."""

    def create(settings: Any) -> Any:
        # Imported in each worker: prometheus_client looks for their shared folder when it is imported.
        from collector.tickets.app import create_issuer_app

        return create_issuer_app(settings)

    run_server(database, False, False, create, **options)


@tickets.command("key", example="tickets key habits --public region=north")
@click.argument("study", metavar="STUDY_ID")
@public_option
@click.option("--remove", is_flag=True, help="remove this key and its tickets, if nobody has a token of it")
@click.option("--address", metavar="URL", help="where devices reach the issuer, if not at --collector")
@collector_option
def key(study: str, public: tuple[str, ...], remove: bool, address: str | None, collector: str) -> None:
    """Make a key for a study or a stratum unless there is one; print the study's channel.tickets."""
    from ldp_client.documents.channel import WEB_ADDRESS
    from ldp_client.documents.errors import DocumentError
    from ldp_client.files.disk import standard_output
    from ldpkit.cli.client import client_of, study_path

    asked = {"public": public_document(public_of(public)), "remove": remove}
    client = client_of(collector, "making a key")
    try:
        issuer = WEB_ADDRESS.read(address or client.url, "--address", DocumentError).rstrip("/")
    except DocumentError as error:
        raise UsageError(f"--address {error.problem}", code="ticket.wrong_address") from None
    keys = client.ask("POST", f"{study_path(study)}/tickets/keys", lambda body: list(body["keys"]), asked)
    stated = [{"key": each["key"], **({"public": each["public"]} if each["public"] else {})} for each in keys]
    block = {"tickets": {"issuer": issuer, "keys": stated}}
    print(json.dumps(block, indent=2, ensure_ascii=False), file=standard_output())
    if remove:
        warn("removed the key and its tickets: if a study names it, publish that study again without it")


@tickets.command("status", example="tickets status habits")
@click.argument("study", metavar="STUDY_ID")
@collector_option
@json_option
def status(study: str, collector: str) -> None:
    """Show how many tickets and tokens there are, and who got a token."""
    from ldpkit.cli.client import client_of, study_path

    found = client_of(collector, "reading tickets").ask("GET", f"{study_path(study)}/tickets", _status)
    if not found["keys"]:
        raise InputError(f"study {study[:64]} has no key here", code="issuer.unknown_study")
    show(_status_lines(found), found)


def _status(body: Any) -> dict[str, Any]:
    keys, people = list(body["keys"]), list(body["people"])
    _status_lines({"keys": keys, "people": people})
    return {"keys": keys, "people": people}


def _status_lines(found: dict[str, Any]) -> list[str]:
    lines = []
    for each in found["keys"]:
        stratum = ", ".join(f"{name}={value}" for name, value in each["public"].items()) or "everybody"
        ended = f"; {each['ended']} more ended as a backup was put back" if each["ended"] else ""
        of_key = f"{each['tokens']} of {counted(each['tickets'], 'ticket')} got a token{ended}"
        lines.append(visible(f"{stratum}: {of_key}"))
    return [*lines, *(f"  {visible(each['name'])}: {HAS_TOKEN[each['token']]}" for each in found["people"])]


@tickets.command("resume", example="tickets resume --end-unused")
@click.option("--end-unused", is_flag=True, help="end tickets without a known token: they need a new one")
@click.option("--keep", is_flag=True, help="keep them valid: right if no token was given after the backup")
@database_option
def resume(end_unused: bool, keep: bool, database: str | None) -> None:
    """Let a database that was restored from a backup give tokens again."""
    from collector.migrations import opened
    from collector.settings import Settings
    from collector.tickets.issue import accept_copy

    if end_unused == keep:
        raise click.UsageError("give one of --end-unused and --keep")
    settings = Settings.load(database=database)
    with opened(settings.database, settings.lock_timeout) as found, found.write() as session:
        ended = accept_copy(session, end_unused)
    if end_unused:
        warn(ENDED.format(count=counted(ended, "unused ticket")))
