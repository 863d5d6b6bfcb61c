"""Warnings and notes for an author before a study is published, in the words of a language."""

from collections.abc import Iterator, Sequence
from typing import Any

from ldp_client.documents.asker import ASKER
from ldp_client.documents.study import Study as DeviceStudy
from ldp_client.explain import factors
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import ENGLISH, Words, letters, rounded_up, visible
from schemas.channel_warnings import channel_warnings, names_in_words
from schemas.names import names_in
from schemas.study import Study

# The name of the field that separates waves in a fit.
WAVE = "wave"
# Above this ε a report almost reveals the answer: 99.97 % sure at 8.
HARDLY_PRIVATE = 8
# Above this δ, one person among thousands may have no privacy at all.
LARGE_DELTA = 1e-4


def warnings_of(study: DeviceStudy, words: Words = ENGLISH) -> list[str]:
    """Return the warnings that people can read before they answer, one line each.

    They concern questions whose noise hides hardly anything (each, and all together), choices that look like
    another choice, and texts that are asked both with noise and as a public field.
    """
    lines = []
    for name, mechanism in mechanisms_of(study).items():
        lines += _warnings(name, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta), words)
    if len(study.questions) > 1:
        lines += _warnings(words.say("study.all_questions"), float(study.epsilon), float(study.delta), words)
    shown = [study.shown_in(language) for language in study.languages] or [study]
    both = [line for one in shown for line in _asked_both_ways(one, words)]
    lines += [*dict.fromkeys(both), *names_in_words(study, words)]
    lines += channel_warnings(study, words)
    return lines + list(dict.fromkeys([line for one in shown for line in _label_warnings(one, words)]))


def _asked_both_ways(study: DeviceStudy, words: Words) -> Iterator[str]:
    document = study.document
    for question in study.questions if study.public else ():
        asked = {letters(name) for name in names_in(document, question.id)}
        for field in study.public:
            if asked & {letters(name) for name in (field.id, field.text) if name}:
                yield words.say("study.warning_both", question=question.id, field=field.id)


def _label_warnings(study: DeviceStudy, words: Words) -> list[str]:
    lines = []
    choices: list[tuple[str, Sequence[Any]]] = [(one.id, one.choices) for one in study.questions]
    choices += [(field.id, field.choices) for one in study.questions for field in one.features]
    choices += [(field.id, field.choices) for field in study.public]
    for name, labels in choices:
        for label in _mistakable([label for label in labels if isinstance(label, str)]):
            lines.append(words.say("study.warning_label", name=name, label=visible(label)))
    return lines


# Cyrillic and Greek letters that look like Latin letters, and letters or symbols that show nothing.
LOOK_ALIKE = {
    **dict(
        zip(
            map(ord, "аеорсухіјѕԁһАВЕКМНОРСТХІЈЅοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"), "aeopcyxijsdhABEKMHOPCTXIJSoABEZHIKMNOPTYX"
        )
    ),
    **dict.fromkeys((0x2800, 0x115F, 0x1160, 0x3164, 0xFFA0)),
}


def _mistakable(labels: list[str]) -> list[str]:
    """Return labels with invisible characters, and labels that look like an earlier label."""
    from unicodedata import normalize

    seen: set[str] = set()
    found = []
    for label in labels:
        looks = " ".join(normalize("NFKC", label).translate(LOOK_ALIKE).split()).casefold()
        if not label.isprintable() or not looks or looks in seen:
            found.append(label)
        seen.add(looks)
    return found


def notes_of(study: DeviceStudy, words: Words = ENGLISH) -> list[str]:
    """Return a line for each question whose later rounds never see a changed answer."""
    return [words.say("study.repeats", name=question.id) for question in study.questions if question.repeats]


def taken_in_words(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return a warning if a question or field has the name that a fit of several versions adds."""
    known = [*[one.id for one in study.questions], *[field.id for field in study.public]]
    return [words.say("study.warning_taken", name=WAVE)] if WAVE in known else []


def unstated_in_words(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return a line that names the missing fields about who asks, if any are missing."""
    document = study.document
    missing = [name for name in ASKER if name not in document]
    return [words.say("study.unstated", fields=", ".join(missing))] if missing else []


def cuts_in_words(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return advice for each numeric record field whose cuts are whole numbers, as many answers are."""
    fields = [field for question in study.questions for field in question.features if field.cuts]
    lines = []
    for field in fields:
        values = [float(cut) for cut in field.cuts]
        if all([value == int(value) for value in values]):
            cut = field.cuts[0]
            lines.append(
                words.say("study.note_cuts", name=field.id, cut=cut, better=f"{int(values[0]) - 0.5:.1f}")
            )
    return lines


def _warnings(name: str, epsilon: float, delta: float, words: Words) -> list[str]:
    lines = []
    if epsilon > HARDLY_PRIVATE:
        facts = {
            "name": name,
            "epsilon": rounded_up(epsilon, 4),
            "likely": factors(epsilon)[1],
        }
        lines.append(words.say("study.warning", most=HARDLY_PRIVATE, **facts))
    if delta > LARGE_DELTA:
        lines.append(words.say("study.warning_delta", name=name, delta=rounded_up(delta, 4)))
    return lines
