"""Warnings and refusals for authors: how a study's reports leave, and what tickets carry."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.public import PublicField
from ldp_client.documents.study import Study
from ldp_client.words.channel import count_strata
from ldp_client.words.public import MOST_STRATA
from ldp_client.words.text import ENGLISH, Words, say, visible

# How long after a study's last day a collector accepts reports, unless its operator sets grace_days.
LATE_HOURS = 7 * 24
# The number of strata without a key that a warning names.
SHOWN = 3


def channel_warnings(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return warnings: a stratum has no key, or the collector rejects reports that leave late."""
    channel = study.channel
    if channel is None:
        return []
    lines = []
    lost, some = without_key(study)
    if lost:
        shown = "; ".join([*some, "…"] if lost > len(some) else some)
        facts = {"count": lost, "lost": f"{lost:,}", "strata": f"{count_strata(study):,}", "shown": shown}
        lines.append(words.say("channel.warning_strata", **facts))
    hours, days = 2 * channel.hours, study.retention_days
    # A report past its retention is never accepted, whatever the operator sets.
    if study.closes and days is not None and 24 * days < min(hours, LATE_HOURS + 1):
        lines.append(words.say("channel.warning_kept", hours=hours, days=days))
    elif study.closes and hours > LATE_HOURS:
        lines.append(words.say("channel.warning_late", hours=hours, days=LATE_HOURS // 24))
    return lines


def without_key(study: Study) -> tuple[int, list[str]]:
    """Return how many strata have no token key, and the first few in words; (0, []) without tokens."""
    tickets = study.channel.tickets if study.channel is not None else None
    if tickets is None:
        return 0, []
    # Each key has listed values, and no two keys share them.
    count, have = count_strata(study) - len(tickets.keys), [key.public for key in tickets.keys]
    shown: list[str] = []
    place = 0
    while len(shown) < min(count, SHOWN):
        values = _stratum(study.carried, place)
        if values not in have:
            shown.append(", ".join([f"{name}={visible(values[name])}" for name in sorted(values)]))
        place += 1
    return count, shown


def issuer_warnings(study: Study, collector: str, words: Words = ENGLISH) -> list[str]:
    """Return warnings if the issuer has the collector's address, or is on the device itself."""
    channel = study.channel
    if channel is None:
        return []
    here = channel.left_from_trial(collector)
    lines = [words.say("channel.warning_here", place=visible(url)) for url in here]
    if channel.tickets is not None and _host_of(channel.tickets.issuer) == _host_of(collector):
        lines.append(words.say("channel.warning_issuer"))
    return lines


def names_in_words(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return warnings for fields with so many values that a ticket's value may identify one person.

    Add a line if the fields together may: a ticket carries all of them.
    """
    carried = study.carried
    lines = [
        words.say("study.warning_names", field=field.id, values=f"{field.size:,}")
        for field in carried
        if field.size > MOST_STRATA
    ]
    together = 1
    for field in carried:
        together *= field.size
    if len(carried) > 1 and together > MOST_STRATA:
        names = ", ".join([field.id for field in carried])
        lines.append(words.say("study.warning_names_together", fields=names, values=f"{together:,}"))
    return lines


def _host_of(url: str) -> str:
    """Return a URL's host without its port: one machine has many ports."""
    return url.partition("://")[2].partition("/")[0].partition(":")[0].lower()


def _stratum(fields: tuple[PublicField, ...], place: int) -> dict[str, str]:
    """Return the values at a place in the order of all strata. The last field's value varies fastest."""
    values = {}
    for field in reversed(fields):
        values[field.id] = field.value(place % field.size)
        place //= field.size
    return values


def require_keys(study: Study) -> None:
    """Raise StudyError if tickets may carry a value that no key has: its stratum would get no tokens.

    This check is for authors. Devices accept such studies: participants in other strata answer, and must be
    able to withdraw.
    """
    tickets = study.channel.tickets if study.channel is not None else None
    if tickets is None:
        return
    for field in study.carried:
        have = {key.public[field.id] for key in tickets.keys}
        if len(have) < field.size:
            raise StudyError("channel.tickets.keys", _problem(field, have), code="study.stratum_key_missing")


def _problem(field: PublicField, have: set[str]) -> str:
    place = 0
    while field.value(place) in have:
        place += 1
    first, lost = visible(field.value(place)), field.size - len(have)
    return say("channel.stratum_without_key", field=field.id, first=first, lost=lost, size=field.size)
