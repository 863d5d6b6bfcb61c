"""What a study's public fields reveal, in plain words: their values are sent as they are."""

from ldp_client.words.text import ENGLISH, Words, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.documents.public import PublicField
    from ldp_client.documents.study import Study

# People expected in a cell. If there are fewer, its members can hardly hide among others.
FEW_PEOPLE = 20
# The most labels that are shown to a person.
MOST_CHOICES = 50


def public_lines(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """Return a line for each public field, which states that it is sent as it is; [] without such fields."""
    if not study.public:
        return []
    head, means = words.say("public.head"), words.say("public.means")
    return [head, *[f"  {public_line(field, words)}" for field in study.public], means]


def public_line(field: "PublicField", words: Words = ENGLISH) -> str:
    """Return one field in words: what is asked, that it is sent as it is, and its possible values."""
    named = f"{field.id} ({visible(field.text)})" if field.text else field.id
    key = "public.ticket" if field.from_ticket else "public.field"
    return words.say(key, field=named, values=values_in_words(field, words))


def values_in_words(field: "PublicField", words: Words = ENGLISH) -> str:
    """Return the values that a field may have, in words."""
    if field.bounds is not None:
        return words.say("public.number", low=field.bounds[0], high=field.bounds[1], step=field.step)
    shown = [visible(label) for label in field.choices[:MOST_CHOICES]]
    more = len(field.choices) - len(shown)
    return words.say(
        "public.one_of",
        choices=" | ".join([*shown, words.say("study.more_choices", more=more)] if more else shown),
    )


def cells_in_words(study: "Study", people: "Optional[int]", words: Words = ENGLISH) -> str:
    """Return how many combinations of public values expect few people, and what that means.

    people: the planned number of participants, None if it is not stated.
    """
    if not study.public:
        return words.say("public.none")
    cells: "dict[str, Any]" = {"cells": f"{study.cells:,}", "few": FEW_PEOPLE}
    if people is None:
        return words.say("public.cells", **cells)
    under = study.cells if people < FEW_PEOPLE * study.cells else 0
    facts = {"people": f"{people:,}", "each": f"{people / study.cells:.3g}", "under": f"{under:,}"}
    # Only people // FEW_PEOPLE cells can reach FEW_PEOPLE, however the people are spread.
    least = max(study.cells - people // FEW_PEOPLE, 0)
    return words.say("public.people", least=f"{least:,}", **cells, **facts)
