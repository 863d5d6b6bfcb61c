"""What an author is told before a study is published: warnings, notes, and one refusal."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.study import ASKER, Study
from ldp_client.explain import cells_in_words, describe, factors
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import rounded_up, say, visible
from schemas.priors import prior_lines
from schemas.study import Study as AuthoredStudy

# Above this ε a report almost reveals the answer: 99.97 % sure at 8.
HARDLY_PRIVATE = 8
# Above this δ, one person among thousands may have no privacy at all.
LARGE_DELTA = 1e-4
# The most values of the fields that name the part of a sample that a person is from.
MOST_STRATA = 1000
# How long after a study's last day a collector accepts reports, unless its operator sets grace_days.
LATE_HOURS = 7 * 24


def study_in_words(study: AuthoredStudy, people: int | None = None) -> tuple[list[str], list[str]]:
    """Describe a draft to its author: what it says, then what may be wrong with it.

    people: how many take part, for the small cells of public fields.
    """
    lines = describe(study)
    if study.public or people:
        lines.append(cells_in_words(study, people))
    for question in study.questions:
        priors = prior_lines(question.model.prior)
        lines += [say("study.prior", question=question.id, prior=line) for line in priors]
    advice = (warnings_of, notes_of, cuts_in_words, unstated_in_words)
    return lines, [line for advise in advice for line in advise(study)]


def warnings_of(study: Study) -> list[str]:
    """Return the warnings that people can read before they answer, one line each.

    They concern questions whose noise hides hardly anything (each, and all together), or that a public field
    asks without noise, tickets whose values may name a person, strata without a token key, and reports that
    leave too late.
    """
    costs = [
        (name, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta))
        for name, mechanism in mechanisms_of(study).items()
    ]
    if len(costs) > 1:
        costs.append((say("study.all_questions"), float(study.epsilon), float(study.delta)))
    lines = []
    for name, epsilon, delta in costs:
        if epsilon > HARDLY_PRIVATE:
            likely, shown = factors(epsilon)[1], rounded_up(epsilon, 4)
            lines.append(say("study.warning", name=name, epsilon=shown, likely=likely, most=HARDLY_PRIVATE))
        if delta > LARGE_DELTA:
            lines.append(say("study.warning_delta", name=name, delta=rounded_up(delta, 4)))
    versions = [study.shown_in(language) for language in study.languages] or [study]
    lines += dict.fromkeys([line for version in versions for line in _asked_both_ways(version)])
    lines += names_in_words(study)
    channel = study.channel
    if channel is not None and channel.tickets is not None:
        lost = study.strata - len(channel.tickets.keys)
        if lost:
            facts = {"lost": f"{lost:,}", "strata": f"{study.strata:,}"}
            lines.append(say("channel.warning_strata", count=lost, **facts))
    days = study.retention_days
    if channel is not None and study.closes and days is not None and 24 * days < 2 * channel.hours:
        lines.append(say("channel.warning_kept", hours=2 * channel.hours, days=days))
    elif channel is not None and study.closes and 2 * channel.hours > LATE_HOURS:
        lines.append(say("channel.warning_late", hours=2 * channel.hours, days=LATE_HOURS // 24))
    return lines


def _asked_both_ways(study: Study) -> list[str]:
    """Return a warning for each public field with the text of a question, or of a record's field."""
    return [
        say("study.warning_both", question=question.id, field=public.id)
        for question in study.questions
        for public in study.public
        if public.text and public.text in [question.text, *[field.text for field in question.fields]]
    ]


def names_in_words(study: Study) -> list[str]:
    """Return a warning if tickets carry so many combinations of values that one may name a person."""
    if study.strata <= MOST_STRATA:
        return []
    names = ", ".join([field.id for field in study.carried])
    return [say("study.warning_names", fields=names, values=f"{study.strata:,}")]


def notes_of(study: Study) -> list[str]:
    """Return a line for each question whose later rounds never see a changed answer."""
    return [say("study.repeats", name=question.id) for question in study.questions if question.repeats]


def unstated_in_words(study: Study) -> list[str]:
    """Return a line that names the missing fields about who asks, if any are missing."""
    document = study.document
    missing = [name for name in ASKER if name not in document]
    return [say("study.unstated", fields=", ".join(missing))] if missing else []


def cuts_in_words(study: Study) -> list[str]:
    """Return advice for each numeric record field whose cuts are whole numbers, as many answers are."""
    lines = []
    for field in [field for question in study.questions for field in question.features if field.cuts]:
        values = [float(cut) for cut in field.cuts]
        if all([value == int(value) for value in values]):
            better = f"{int(values[0]) - 0.5:.1f}"
            lines.append(say("study.note_cuts", name=field.id, cut=field.cuts[0], better=better))
    return lines


def require_keys(study: Study) -> None:
    """Raise StudyError if tickets may carry a value that no key has: its stratum would get no tokens.

    This check is for authors. Devices accept such studies: participants in other strata answer, and must be
    able to withdraw.
    """
    if study.channel is None or study.channel.tickets is None:
        return
    for field in study.carried:
        have = {key.public[field.id] for key in study.channel.tickets.keys}
        if len(have) == field.size:
            continue
        first = next(value for place in range(field.size) if (value := field.value(place)) not in have)
        facts = {"first": visible(first), "lost": field.size - len(have), "size": field.size}
        problem = say("channel.stratum_without_key", field=field.id, **facts)
        raise StudyError("channel.tickets.keys", problem, code="study.stratum_key_missing")
