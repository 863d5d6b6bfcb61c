"""What an author should think of once more before a study is published, in the words of a language."""

from math import log

from ldp_client.describing import factors
from ldp_client.documents.asker import ASKER
from ldp_client.documents.sections import names_of
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.channel import channel_warnings
from ldp_client.words.public import names_in_words
from ldp_client.words.text import ENGLISH, Words, letters, rounded_up, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ldp_client.documents.study import Study

# Above it a report nearly is the answer: 99.97 % sure at 8.
HARDLY_PRIVATE = 8
# Above it, somebody among thousands may have no privacy at all.
LARGE_DELTA = 1e-4


def warnings_of(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """A line for each question whose noise hides hardly anything, one for all of them together, and one for
    each choice that people may mistake for another. One for each text asked behind noise and in clear.
    """
    lines = []
    for name, mechanism in mechanisms_of(study).items():
        lines += _warnings(name, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta), words)
    if len(study.questions) > 1:
        lines += _warnings(words.say("study.all_questions"), float(study.epsilon), float(study.delta), words)
    shown = [study.shown_in(language) for language in study.languages] or [study]
    both = [line for one in shown for line in _asked_both_ways(one, words)]
    lines += [*dict.fromkeys(both), *_paper_warnings(study, words), *names_in_words(study, words)]
    lines += channel_warnings(study, words)
    return lines + list(dict.fromkeys([line for one in shown for line in _label_warnings(one, words)]))


def _asked_both_ways(study: "Study", words: Words) -> "Iterator[str]":
    for question in study.questions:
        asked = {letters(name) for name in names_of(study, question)}
        for field in study.public:
            if asked & {letters(name) for name in (field.id, field.text) if name}:
                yield words.say("study.warning_both", question=question.id, field=field.id)


def _label_warnings(study: "Study", words: Words) -> "list[str]":
    lines = []
    choices: "list[tuple[str, Sequence[Any]]]" = [(one.id, one.choices) for one in study.questions]
    choices += [(field.id, field.choices) for one in study.questions for field in one.features]
    choices += [(field.id, field.choices) for field in study.public]
    for name, labels in choices:
        for label in _mistakable([label for label in labels if isinstance(label, str)]):
            lines.append(words.say("study.warning_label", name=name, label=visible(label)))
    return lines


def _paper_warnings(study: "Study", words: Words) -> "list[str]":
    """The same of dice: those that hide hardly anything, or nothing of one answer."""
    lines = []
    for one in study.paper.questions if study.paper is not None else ():
        name = words.say("paper.name", id=one.id)
        if one.ratio is None:
            lines.append(words.say("paper.warning", name=name))
        else:
            lines += _warnings(name, log(one.ratio.numerator) - log(one.ratio.denominator), 0.0, words)
    return lines


# Cyrillic and Greek letters that look like Latin ones; and what is a letter or symbol, and shows nothing.
LOOK_ALIKE = {
    **dict(
        zip(
            map(ord, "аеорсухіјѕԁһАВЕКМНОРСТХІЈЅοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"), "aeopcyxijsdhABEKMHOPCTXIJSoABEZHIKMNOPTYX"
        )
    ),
    **dict.fromkeys((0x2800, 0x115F, 0x1160, 0x3164, 0xFFA0)),
}


def _mistakable(labels: "list[str]") -> "list[str]":
    """Labels with characters that nobody sees, and those that look like one before them."""
    from unicodedata import normalize

    seen: "set[str]" = set()
    found = []
    for label in labels:
        looks = " ".join(normalize("NFKC", label).translate(LOOK_ALIKE).split()).casefold()
        if not label.isprintable() or not looks or looks in seen:
            found.append(label)
        seen.add(looks)
    return found


def notes_of(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """A line for each question whose later rounds never see a changed answer."""
    return [words.say("study.repeats", name=question.id) for question in study.questions if question.repeats]


def unstated_in_words(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """A line that names what the study does not state of who asks, unless it states all."""
    missing = [name for name in ASKER if name not in study.document]
    return [words.say("study.unstated", fields=", ".join(missing))] if missing else []


def cuts_in_words(study: "Study", words: Words = ENGLISH) -> "list[str]":
    """Advice for each number of records that is cut where people who say whole numbers are."""
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


def _warnings(name: str, epsilon: float, delta: float, words: Words) -> "list[str]":
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
