"""The command `ldpkit invite` and the group `ldpkit tickets`, for an issuer of blind tickets."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from collector.settings import Settings
from ldp_client.device.arguments import LOOPBACK, checked_url
from ldp_client.documents.errors import InputError, LdpkitError, TransferError, UsageError
from ldp_client.words.text import counted, visible
from ldpkit.cli.client import Client, RefusalError, study_path
from ldpkit.cli.commands import collector_option, command, group, id_argument, out_option
from ldpkit.cli.invited import NAME, Person, new_links, public_document, public_option, read_people
from ldpkit.cli.output import show, warn
from schemas.disk import STREAM

MOST, AT_ONCE, NAMES_AT_ONCE = 1_000_000, 10_000, 1000
DIRECTORY = "/.well-known/private-token-issuer-directory"
LINKS_HELP = "a new file: links, one a line, or *.csv with names or numbers (default: print them)"
LOST = (
    "others may have been made and lost. `ldpkit invite {study} --disable` admits all reports again; after "
    "--revoke-all, only new ones are valid. At an issuer, --again unused replaces them"
)
ENDED = (
    "{count} ended: people without a token need a new one. List only people who say that they have none: "
    "ldpkit invite STUDY_ID --names FILE --again all"
)
HAS_TOKEN = {True: "has a token", False: "no token yet", None: "may have a token"}


@command("invite", "invite habits --count 500 --out links.csv")
@id_argument
@click.option("--count", type=click.IntRange(1, MOST), metavar="N", help="make so many")
@click.option("--names", metavar="FILE.csv", help=f"one for each: a column {NAME!r}, and public fields")
@click.option("--disable", is_flag=True, help="instead, revoke all and admit reports without tickets")
@click.option("--revoke-all", is_flag=True, help="instead, revoke all: people need new ones")
@public_option
@click.option(
    "--again",
    type=click.Choice(["unused", "all"]),
    help="at an issuer: replace unused ones, of these or all unnamed people; or all, for second tokens",
)
@out_option(LINKS_HELP, required=False)
@click.option("--qr", metavar="FOLDER", help="a new folder, with the link of each as an SVG file")
@click.option("--address", metavar="URL", help="where people reach the collector, if not at --collector")
@collector_option
def invite(
    study: str,
    count: int | None,
    names: str | None,
    disable: bool,
    revoke_all: bool,
    public: dict[str, str],
    again: str | None,
    out: str | None,
    qr: str | None,
    address: str | None,
    collector: Client,
) -> None:
    """Make tickets to a study, as links and QR codes; from then on only they let a report in.

    --collector names a collector, or an issuer of blind tickets. Only an issuer stores names.
    """
    # 1. Check the options.
    if [count is not None, names is not None, disable, revoke_all].count(True) != 1:
        raise click.UsageError("give --count, --names, --disable or --revoke-all")
    is_making = not disable and not revoke_all
    if not is_making and (public or again or out or qr or address):
        raise click.UsageError("--public, --again, --out, --qr and --address go with --count or --names")
    if names and public:
        raise click.UsageError("--names: the file has the public values")
    people = read_people(names) if names else [Person("", public)] * (count or 0)
    path = f"{study_path(study)}/tickets"
    # 2. Revoke tickets.
    if not is_making:
        collector.ask("POST", f"{path}/{'disable' if disable else 'revoke'}", lambda body: body["id"], {})
        line = "everybody's reports to {} are let in" if disable else "only new tickets to {} count"
        show([line.format(study)])
        return
    # 3. Or make them. A collector gets no names: with them its database could join people and reports.
    link, is_issuer = _link_of(collector, study, address, bool(again))
    if qr and not link:
        raise UsageError("--qr: give the collector's --address, for the links", code="ticket.needs_address")
    if qr:
        # Import it first: without it, the tickets would be made but not drawn.
        import segno  # noqa: F401
    more = {"again": True, "second": again == "all"} if again else {}
    batches = _batches(people, by_name=is_issuer and bool(names), more=more)
    head = [NAME, *people[0].public] if names else ["number"]
    done = 0
    with new_links(out or STREAM, qr, link, head) as write:
        try:
            for invited, asked in batches:
                tickets, warnings = collector.ask("POST", path, _made, asked, again=False)
                if len(tickets) != len(invited):
                    raise TransferError(
                        f"{collector.url} made {len(tickets)} tickets instead of {len(invited)}",
                        code="server.answer_not_json",
                    )
                for line in warnings if not done or "people" in asked else ():
                    warn(visible(line))
                write(invited, tickets)
                done += len(tickets)
        except LdpkitError as error:
            lost = LOST.format(study=study)
            others = "the others were not made" if isinstance(error, RefusalError) else lost
            warn(f"{counted(done, 'ticket')} written; {others}")
            raise
    warn(f"made {counted(done, 'ticket')} to {study} at {collector.url}; they are kept nowhere else")


def _link_of(client: Client, study: str, address: str | None, again: bool) -> tuple[str, bool]:
    """Return the part of links before a ticket, "" for none, and whether the server is an issuer.

    Raises UsageError for a wrong address, before any request, and for `again` at a collector.
    """
    base = _base_of_links(address, study) if address else ""
    try:
        # An issuer has a directory of its keys.
        client.send("GET", DIRECTORY)
        is_issuer = True
    except RefusalError as refusal:
        if refusal.status != 404:
            raise
        is_issuer = False
    if again and not is_issuer:
        raise UsageError("--again is for an issuer; at a collector: --revoke-all", code="ticket.again_here")
    # An issuer does not know the collector's address.
    if not base and not is_issuer:
        base = _base_of_links(client.url, study)
    return base and f"{base}/s/{study}#ticket=", is_issuer


def _batches(
    people: Sequence[Person], by_name: bool, more: dict[str, bool]
) -> Iterator[tuple[list[Person], dict[str, Any]]]:
    """Yield people and the request for their tickets: by name, or by number for each stratum."""
    if by_name:
        for start in range(0, len(people), NAMES_AT_ONCE):
            invited = list(people[start : start + NAMES_AT_ONCE])
            named = [{"name": person.name, "public": public_document(person.public)} for person in invited]
            yield invited, {"people": named, **more}
        return
    strata: dict[tuple[tuple[str, str], ...], list[Person]] = {}
    for person in people:
        strata.setdefault(tuple(person.public.items()), []).append(person)
    for stratum in strata.values():
        public = public_document(stratum[0].public)
        for start in range(0, len(stratum), AT_ONCE):
            invited = stratum[start : start + AT_ONCE]
            # Only the first request ends earlier tickets, or it would end those of the one before.
            yield invited, {"count": len(invited), "public": public, **({} if start else more)}


def _base_of_links(address: str, study_id: str) -> str:
    """Return the base URL of links, checked before tickets are made. Raises UsageError."""
    page, host, _ = checked_url(address)
    # `ldpkit publish` prints the study's own address, which operators copy.
    for path in (f"/s/{study_id}", f"/v1/studies/{study_id}"):
        page = page.removesuffix(path)
    if host in LOOPBACK:
        warn(f"links to {page} work only on this machine: --address gives the URL for other people")
    return page


def _made(body: Any) -> tuple[list[str], list[str]]:
    """Return made tickets and warnings. Raises ValueError for what cannot be in a link."""
    tickets = [str(ticket) for ticket in body["tickets"]]
    if not all(ticket.isascii() and ticket.replace("-", "").replace("_", "").isalnum() for ticket in tickets):
        raise ValueError
    return tickets, [str(line) for line in body["warnings"]]


@group("tickets")
def tickets() -> None:
    """Work with an issuer of blind tickets, which is not the collector."""


@tickets.command("key", example="tickets key habits --public region=north")
@id_argument
@public_option
@collector_option
def key(study: str, public: dict[str, str], collector: Client) -> None:
    """Make a key for a study or a stratum unless there is one; print the study's channel.tickets.

    --collector is the issuer's address: devices use it too.
    """
    asked = {"public": public_document(public)}
    keys = collector.ask("POST", f"{study_path(study)}/tickets/keys", lambda body: list(body["keys"]), asked)
    stated = [{"key": each["key"], **({"public": each["public"]} if each["public"] else {})} for each in keys]
    print(json.dumps({"tickets": {"issuer": collector.url, "keys": stated}}, indent=2))


@tickets.command("status", example="tickets status habits")
@id_argument
@collector_option
def status(study: str, collector: Client) -> None:
    """Show how many tickets and tokens there are, and who got a token."""

    def read(body: Any) -> list[str]:
        lines = []
        for each in body["keys"]:
            stratum = ", ".join(f"{name}={value}" for name, value in each["public"].items()) or "everybody"
            ended = f"; {each['ended']} more ended as a backup was put back" if each["ended"] else ""
            of_key = f"{each['tokens']} of {counted(each['tickets'], 'ticket')} got a token{ended}"
            lines.append(visible(f"{stratum}: {of_key}"))
        return lines + [f"  {visible(each['name'])}: {HAS_TOKEN[each['token']]}" for each in body["people"]]

    lines = collector.ask("GET", f"{study_path(study)}/tickets", read)
    if not lines:
        raise InputError(f"study {study[:64]} has no key here", code="issuer.unknown_study")
    show(lines)


@tickets.command("resume", example="tickets resume --unused end")
@click.option(
    "--unused",
    type=click.Choice(["end", "keep"]),
    required=True,
    help="end tickets without a known token, or keep them: right if no token was given after the backup",
)
def resume(unused: str) -> None:
    """Let a database that was restored from a backup give tokens again."""
    from collector.issuer.issue import accept_copy
    from collector.migrations import opened

    settings = Settings.load()
    with opened(settings.database, settings.lock_timeout) as database, database.write() as session:
        ended = accept_copy(session, unused == "end")
    if unused == "end":
        warn(ENDED.format(count=counted(ended, "unused ticket")))
