"""The command `ldpkit invite`, which controls access to a study."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from collector.operator.at_a_collector import (
    OVER,
    add_json,
    add_remote,
    collector_of,
    show,
)
from collector.operator.links import MOST, new_place, room_for, saying, writer
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError, LdpkitError, UsageError
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collector.remote.operating import RemoteCollector

AT_ONCE = 10_000
# Paths before a study's id: of the page for participants, and of the document for devices.
OF_A_STUDY = "/s/", "/v1/studies/"
# Each picture is a file.
MOST_PICTURES = 10_000


def add_access_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "make tickets to a study, as links and QR codes; from then on only they let a report in"
    invite = add_remote(subparsers, "invite", text, "invite habits --count 500 --out links.csv", run_invite)
    invite.add_argument("study", metavar="STUDY_ID")
    action = invite.add_mutually_exclusive_group(required=True)
    action.add_argument("--count", type=int, metavar="N", help="make so many")
    action.add_argument(
        "--disable", action="store_true", help="revoke all tickets and admit reports without them"
    )
    text = "revoke all tickets: people need new ones"
    action.add_argument("--revoke-all", action="store_true", help=text)
    text = "for a public field that tickets carry, once for each: its value in these tickets"
    invite.add_argument("--public", action="append", default=[], metavar="FIELD=VALUE", help=text)
    text = "a new file: links, one a line, or *.csv with numbers, tickets and links (default: print them)"
    invite.add_argument("--out", metavar="FILE", help=text)
    invite.add_argument("--qr", metavar="FOLDER", help="a new folder, with the link of each as an SVG file")
    invite.add_argument(
        "--address", metavar="URL", help="where people reach the collector, if not at --collector"
    )
    invite.add_argument("--dry-run", action="store_true", help="only print what would be done")
    add_json(invite)


def public_values(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the values that --public states, by field. Raises InputError."""
    values: dict[str, str] = {}
    for setting in arguments.public:
        name, equals, value = setting.partition("=")
        if not equals or name in values:
            raise UsageError(
                f"--public {name[:64]}: must be FIELD=VALUE, once for each field", code="ticket.wrong_public"
            )
        values[name] = value
    return values


def run_invite(arguments: argparse.Namespace) -> int:
    """ldpkit invite STUDY_ID (--count N … | --disable | --revoke-all) [--json]"""
    if arguments.count is None:
        return _change_tickets(arguments)
    if not 1 <= arguments.count <= MOST:
        raise UsageError(f"--count {arguments.count}: must be from 1 to {MOST}", code="ticket.wrong_count")
    if arguments.qr and arguments.count > MOST_PICTURES:
        raise UsageError(
            f"--qr: makes a file of each, of {MOST_PICTURES} at most", code="ticket.too_many_pictures"
        )
    public = public_values(arguments)
    collector = collector_of(arguments, "inviting")
    page = _place_of_links(arguments.address or collector.url, arguments.study)
    status = collector.status(arguments.study)
    made = f"{counted(arguments.count, 'ticket')} to {arguments.study} at {collector.url}"
    if arguments.dry_run:
        _rehearse(collector, status, public)
        with new_place(arguments.out, arguments.qr):
            # An empty file is removed again; an existing file is refused.
            pass
        others = "" if status["tickets_left"] is not None else "; from then on only they let a report in"
        show(_invited(arguments, []), arguments.json, lambda _: [f"would make {made}{others}"])
        return 0
    if arguments.qr:
        # Import it first: without it, the tickets would be made but not drawn.
        import segno  # noqa: F401
    link = f"{page}/s/{arguments.study}#ticket="
    # With --json, the links are part of the one JSON object on standard output.
    kept = io.StringIO() if arguments.json and not arguments.out else None
    try:
        room = room_for(link, arguments.count, arguments.out or "")
        with new_place(arguments.out, arguments.qr, room) as file:
            write = writer(file if kept is None else kept, arguments.out or "", arguments.qr, link)
            _make_all(collector, arguments.study, arguments.count, public, write)
    finally:
        # No other copy exists, so show the tickets made before an error too.
        if kept is not None and kept.tell():
            _show_all(arguments, kept.getvalue().splitlines())
    if arguments.json and kept is None:
        show(_invited(arguments, None), True, lambda _: ())
    print(f"made {made}; they are kept nowhere else", file=sys.stderr)
    return 0


def _change_tickets(arguments: argparse.Namespace) -> int:
    """Forget the tickets. Raises UsageError for options of --count."""
    for_new = (*arguments.public, arguments.out, arguments.qr, arguments.address, arguments.dry_run)
    if any(for_new):
        raise UsageError(
            "--public, --out, --qr, --address and --dry-run go with --count", code="ticket.needs_count"
        )
    study_id = arguments.study
    if arguments.disable:
        collector_of(arguments, "inviting").disable_tickets(study_id)
        said = f"everybody's reports to {study_id} are let in"
    else:
        collector_of(arguments, "inviting").revoke_tickets(study_id)
        said = f"only new tickets let a report to {study_id} in"
    show({"study": study_id, "done": True}, arguments.json, lambda _: [said])
    return 0


def _show_all(arguments: argparse.Namespace, links: list[str]) -> None:
    """Print links that are in no file. Raises InputError if standard output cannot be written."""
    try:
        with saying("standard output"):
            show(_invited(arguments, links), True, lambda _: ())
            sys.stdout.flush()
    except (OSError, InputError):
        _say_what_undoes(arguments.study, 0)
        raise


def _rehearse(collector: RemoteCollector, status: dict[str, Any], public: dict[str, str]) -> None:
    """Raise InputError if inviting would fail: the study is over, or --public does not fit it."""
    from collector.tickets.codes import values_of
    from schemas import Study

    if status["state"] in OVER:
        raise InputError(
            f"study {status['id']} was {status['state']}: its tickets would admit no reports",
            code="ticket.study_ended",
        )
    document = collector.published(status["id"])
    if document is not None:
        values_of(Study.from_json(document), public)


def _invited(arguments: argparse.Namespace, links: list[str] | None) -> dict[str, Any]:
    """Return the result of inviting, for programs. links: the links that are in no file."""
    count = arguments.count if links is None else len(links)
    places = {"links": links, "file": arguments.out, "folder": arguments.qr}
    return {"study": arguments.study, "tickets": count, "done": bool(count), **places}


def _place_of_links(address: str, study_id: str) -> str:
    """Return the base URL of links, checked before tickets are made. Raises InputError."""
    from collector.remote.client import require_address

    require_address(address)
    page, parts = address.rstrip("/"), urlsplit(address)
    # The path may belong to the collector: a proxy can serve it below a path such as /s/panel.
    if page.endswith(tuple(place + study_id for place in OF_A_STUDY)):
        # `ldpkit publish` prints this address; links based on it would be broken.
        raise UsageError(
            f"{page} is a study's address: name the collector's own, without /s/ID",
            code="ticket.study_address",
        )
    if parts.hostname in LOOPBACK:
        text = "work only on this machine: --address gives the URL for other people"
        print(f"links to {page} {text}", file=sys.stderr)
    elif parts.scheme == "http":
        print(f"links to {page} send reports unencrypted: use https://", file=sys.stderr)
    return page


def _say_what_undoes(study_id: str, done: int) -> None:
    print(
        f"{counted(done, 'ticket')} written; others may have been made and lost. `ldpkit invite "
        f"{study_id} --disable` admits all reports again; after --revoke-all, only new ones are valid",
        file=sys.stderr,
    )


def _make_all(
    collector: RemoteCollector,
    study_id: str,
    count: int,
    public: dict[str, str],
    write: Callable[[list[str]], None],
) -> None:
    """Make the tickets and write them, AT_ONCE at a time. Raises the collector's refusals."""
    from collector.remote.client import RefusalError

    done = 0
    try:
        while done < count:
            tickets, warnings = collector.invite(study_id, min(AT_ONCE, count - done), public)
            for line in warnings if not done else ():
                print(visible(line), file=sys.stderr)
            write(tickets)
            done += len(tickets)
    except RefusalError:
        print(f"{counted(done, 'ticket')} written; the others were not made", file=sys.stderr)
        raise
    except (LdpkitError, OSError):
        _say_what_undoes(study_id, done)
        raise
