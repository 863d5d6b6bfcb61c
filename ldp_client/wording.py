"""What a study asks and what epsilon means, in plain words."""

from math import exp

from ldp_client.mechanisms import mechanism_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemas.study import Study


def odds(epsilon: float, delta: float = 0.0) -> str:
    """What epsilon (nats) and delta (probability) mean to a person, as odds."""
    factor = exp(epsilon)
    shown = f"{factor:.3g}" if factor < 1000 else f"{factor:.1e}"
    likely = 100 * factor / (1 + factor)
    exception = f" Both hold up to an added probability of 1 in {_count(1 / delta)}." if delta else ""
    return (
        f"Whatever was answered, any report is at most {shown} times as likely as with any other answer: "
        f"someone who thought two answers equally likely before seeing the report can be at most "
        f"{_percent(likely)} sure of one of them after.{exception}"
    )


def _count(value: float) -> str:
    return f"{value:,.0f}" if value < 1e10 else f"{value:.0e}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value < 99 else f"{min(value, 99.9999):.4g} %"


def describe(study: "Study") -> "list[str]":
    """Lines that say what the study asks and what its privacy is."""
    days = f"{study.opens or 'any time'} to {study.closes or 'any time'}"
    lines = [
        f"{study.title} ({study.id}, version {study.version})",
        f"open: {days}",
        f"digest: {study.digest}",
    ]
    for question in study.questions:
        mechanism = mechanism_for(question)
        privacy = mechanism.privacy
        delta = f", delta {float(privacy.delta):g}" if float(privacy.delta) else ""
        lines += [
            "",
            f"{question.id}: {question.text or question.ask}",
            f"  {mechanism.name}: true epsilon {float(privacy.epsilon):.9g}{delta}",
            f"  {mechanism.in_words()}",
            f"  {odds(float(privacy.epsilon), float(privacy.delta))}",
        ]
    return [*lines, *_route(study), "", _total(study)]


def _route(study: "Study") -> "list[str]":
    route = study.route
    if route is None:
        return []
    hosts = ", ".join([node.url for node in route.nodes])
    return [
        "",
        f"secret shares go to {len(route.nodes)} nodes: {hosts}",
        f"no sum over fewer than {route.fewest} devices is made; epsilon holds while not all nodes conspire",
        f"and at most {route.tolerate} devices cheat or drop out",
    ]


def _total(study: "Study") -> str:
    delta = f", delta {float(study.delta):g}" if float(study.delta) else ""
    if study.ask_one:
        return (
            f"each device answers one of the {len(study.questions)} questions, drawn at random: "
            f"epsilon {float(study.epsilon):g}{delta} (the largest of them)"
        )
    return (
        f"all {len(study.questions)} questions together: epsilon {float(study.epsilon):g}{delta} (their sum)"
    )
