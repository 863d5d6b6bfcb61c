"""The draft of a consent text, from the study's statements and the code's behaviour."""

from __future__ import annotations

from collections.abc import Iterator

from inference.design.dossier_parts import Part, blank, how_it_leaves, listed, once, says, together
from ldp_client import mechanisms_of
from ldp_client.explain import odds_of, who_asks
from ldp_client.words.text import visible
from schemas import Question, Study


def consent(study: Study) -> Iterator[Part]:
    """Yield the text that a participant reads before the first answer."""
    yield says("For the participant's page, or an app that asks for consent before its device answers:")
    yield says(f"You are asked to take part in “{visible(study.title)}”.")
    yield says(visible(study.purpose)) if study.purpose else blank("Why the study is done.")
    yield says(
        "Your device adds chance to your answers before anything is sent. How much the report can still tell "
        "of them, at most, whoever reads it:"
        if study.protocol is None
        else "Your answers leave the device as pieces, one for each of several parties. Who puts all pieces "
        "together knows your answers. While nobody does:"
    )
    rows = [(visible(one.full_text or one.id), _consequence(study, one)) for one in study.questions]
    if len(rows) > 1:
        rows.append((together(study), odds_of(study, float(study.epsilon), float(study.delta))))
    yield Part("table", "", ("question", "what can be known"), tuple(rows))
    if any(one.repeats for one in study.questions):
        yield says(f"{once(study)} What is said above holds for all reports of these together.")
    if study.public:
        fields = ", ".join(visible(field.text or field.id) for field in study.public)
        yield says(f"This is sent as it is, without chance: {fields}.")
    yield from how_it_leaves(study)
    yield says(
        "Taking part is voluntary; nothing is sent unless you agree. You can withdraw later, on this device; "
        "what was calculated, copied or published before then stays."
    )
    for language in study.languages[1:]:
        yield from _in_language(study.shown_in(language), language)
    yield from (says(line) for line in who_asks(study))
    left = {"whom to ask": study.contact, "how long the reports are kept": study.retention_days is not None}
    missing = [what for what, stated in left.items() if not stated]
    yield blank(f"For participants: {', '.join([*missing, 'where to complain'])}.")
    yield blank("I have read this and agree to take part: ☐  (day)")


def _in_language(study: Study, language: str) -> Iterator[Part]:
    yield says(f"The study's own words in “{language}”, as the participant's page shows them:")
    words = (study.title, study.purpose, *(one.full_text for one in study.questions))
    yield listed([visible(text) for text in words if text])


def _consequence(study: Study, question: Question) -> str:
    privacy = mechanisms_of(study)[question.id].privacy
    return odds_of(study, float(privacy.epsilon), float(privacy.delta))
