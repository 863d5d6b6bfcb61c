"""How a study's reports leave, in plain words."""

from ldp_client.words.text import ENGLISH, Words, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.documents.study import Study


def channel_lines(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """Return lines about how reports leave, [] if the study does not state it."""
    channel = study.channel
    if channel is None:
        return []
    lines = [words.say("channel.head"), "  " + words.say("channel.batches", count=channel.hours)]
    if channel.tickets is not None:
        lines.append("  " + words.say("channel.tickets", issuer=visible(channel.tickets.issuer)))
        keys, strata = len(channel.tickets.keys), count_strata(study)
        which = "channel.strata" if keys == strata else "channel.some_strata"
        lines += ["  " + words.say(which, keys=keys, strata=f"{strata:,}")] if strata > 1 else []
    else:
        lines.append("  " + words.say("channel.direct"))
    return lines


def count_strata(study: "Study") -> int:
    """Return how many combinations of values tickets can carry, 1 if they carry none."""
    count = 1
    for field in study.carried:
        count *= field.size
    return count
