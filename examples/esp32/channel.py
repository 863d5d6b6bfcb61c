"""How a report of a study with a channel leaves: its token comes first, then a moment of its own."""

from binascii import hexlify, unhexlify

import ledger
from exchange import PROBLEM, Collector, media_type_of, said

from ldp_client.core.tokens import (
    REQUEST_TYPE,
    RESPONSE_TYPE,
    Asking,
    challenge_of,
    draw,
    header_of,
    short_id_of,
)
from ldp_client.documents.channel import CHANNEL, Channel
from ldp_client.documents.errors import StudyError

HOUR_S = 3600


class Leaving:
    """What a report's leaving needs of its study, as the ledger keeps it: digest, channel (or None)."""

    def __init__(self, digest, channel):
        self.digest = digest
        self.channel = Channel(CHANNEL.read(channel, "channel", StudyError)) if channel else None


def draw_due(channel, now, random):
    """A second of the window after that of `now` (seconds since 1970), drawn evenly."""
    length = channel.hours * HOUR_S
    return (now // length + 1) * length + int.from_bytes(random(8), "big") % length


def header_now(study, report_id, issuer, ticket, now, random):
    """[fields] that the report leaves with at this moment; None while it does not leave."""
    channel = study.channel
    if not channel:
        return [("LDPKit-Ticket", ticket)] if ticket else []
    if now is None:
        return None
    kept = ledger.leaving_of(report_id)
    if channel.tickets and not kept.get("token"):
        obtain(study, report_id, kept, issuer, ticket, now, random)
        return None
    due, length = kept.get("due"), channel.hours * HOUR_S
    # A clock that was moved far back would never come there. Where one jumped ahead, or a board slept, the
    # report waits once more: it may be right behind its token.
    is_late = due is not None and now - due > length and not kept.get("late")
    if due is None or due - now > 2 * length or is_late:
        postpone(study, report_id, now, random, is_late)
        return None
    if due > now:
        return None
    return [("Authorization", header_of(unhexlify(kept["token"])))] if channel.tickets else []


def postpone(study, report_id, now, random, is_late=False):
    """Not sent, in vain, or overdue (is_late): the report leaves at a fresh moment of the next window."""
    ledger.keep_leaving(report_id, {"due": draw_due(study.channel, now, random), "late": is_late})


def obtain(study, report_id, kept, issuer, ticket, now, random):
    """Ask for the token, and once more with the key that the issuer names; else it is asked for later."""
    # Another ticket is of another stratum, perhaps: the issuer may name its key.
    if kept.get("turned") and kept.get("ticket") != ticket:
        kept = dict(kept, turned=False)
    for _ in range(2):
        # Written before it leaves: a lost answer is asked for again, by the very same request.
        if "nonce" not in kept:
            kept = prepared(study, report_id, kept, random)
        asking = asking_of(study, kept)
        try:
            answer = ask(study, issuer, ticket, asking.body)
        except (OSError, ValueError):
            return
        status, headers, body = answer
        is_token = status == 200 and media_type_of(headers) == RESPONSE_TYPE
        token = asking.token(body, random) if is_token else None
        if token:
            given = {"token": hexlify(token).decode(), "due": draw_due(study.channel, now, random)}
            return ledger.keep_leaving(report_id, given, whole=True)
        other = said(headers, body, "application/problem+json")
        place, turned = named_key(study.channel.tickets.keys, other)
        is_named = other.get("type") == PROBLEM + "token-key-other" and place is not None
        if not is_named or kept.get("turned", 0) >= turned or place == kept["key"]:
            return
        kept = {"key": place, "turned": turned, "ticket": ticket}


def named_key(keys, other):
    """Where the study has the key that the issuer names, None for nowhere; and 2 where it is named by its id.

    A study may name the issuer's keys in another order, so that an id may correct what a place said.
    """
    meant = other.get("key_id")
    ids = [short_id_of(key.spki) for key in keys]
    if meant is None:
        place = other.get("key")
        # Nor is 1.0 or true a place, which Python finds in the range.
        return (place if type(place) is int and place in range(len(keys)) else None), 1
    return (ids.index(meant) if meant in ids else None), 2


def prepared(study, report_id, kept, random):
    """What is drawn for one token, durable before it is used."""
    key = kept.get("key", 0)
    nonce, salt, factor = draw(study.channel.tickets.keys[key], random)
    drawn = {"key": key, "turned": kept.get("turned", 0), "factor": f"{factor:x}"}
    drawn["ticket"] = kept.get("ticket", "")
    drawn.update(nonce=hexlify(nonce).decode(), salt=hexlify(salt).decode())
    ledger.keep_leaving(report_id, drawn, whole=True)
    return drawn


def asking_of(study, kept):
    tickets = study.channel.tickets
    challenge = challenge_of(tickets.name, study.digest)
    secrets = unhexlify(kept["nonce"]), unhexlify(kept["salt"]), int(kept["factor"], 16)
    return Asking(tickets.keys[kept["key"]], challenge, *secrets)


def ask(study, issuer, ticket, body):
    fields = [("Content-Type", REQUEST_TYPE), ("LDPKit-Ticket", ticket)]
    return issuer.request("POST", path_of(study.channel.tickets.issuer) + "/v1/tokens", fields, body)


def path_of(url):
    _, slash, path = url.partition("://")[2].partition("/")
    return slash + path


def issuer_of(study, roots):
    """The study's issuer over TLS, None where it has none."""
    if not (study.channel and study.channel.tickets):
        return None
    scheme, _, rest = study.channel.tickets.issuer.partition("://")
    if scheme != "https":
        raise RuntimeError("the issuer is not reached over TLS")
    host, _, port = rest.partition("/")[0].partition(":")
    return Collector(host, int(port or 443), roots)
