"""What a question asks, what leaves the device, and what epsilon means, in plain words."""

from math import exp

from ldp_client.mechanisms import mechanism_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemas.study import Question, Study


def odds(epsilon: float) -> str:
    """What epsilon means to a person, as odds."""
    factor = exp(epsilon)
    shown = f"{factor:.3g}" if factor < 1000 else f"{factor:.1e}"
    likely = 100 * factor / (1 + factor)
    return (
        f"Whatever was answered, any report is at most {shown} times as likely as with any other answer: "
        f"someone who thought two answers equally likely before seeing the report can be at most "
        f"{_percent(likely)} sure of one of them after."
    )


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value < 99 else f"{min(value, 99.9999):.4g} %"


def noise(question: "Question") -> str:
    """What the mechanism does to this question's answer."""
    mechanism = mechanism_for(question)
    return _NOISE[mechanism.name](question, mechanism)


def _laplace(question: "Question", mechanism: "object") -> str:
    low, high = question.bounds or (0, 1)
    scale = (float(high) - float(low)) / float(question.mechanism.epsilon)
    return f"Clipped to {low}..{high}, then Laplace noise of scale {scale:.4g} is added."


def _randomized_response(question: "Question", mechanism: "object") -> str:
    truth = float(getattr(mechanism, "p"))  # noqa: B009
    return f"The true answer is sent with probability {truth:.4f}, another one otherwise."


def _oue(question: "Question", mechanism: "object") -> str:
    q = float(getattr(mechanism, "q"))  # noqa: B009
    return (
        f"One bit for each of {len(question.choices)} choices is sent: the true one is 1 with "
        f"probability 0.5, each other with probability {q:.4f}."
    )


def _gaussian_statistics(question: "Question", mechanism: "object") -> str:
    count = len(getattr(mechanism, "coordinates"))  # noqa: B009
    sd = getattr(mechanism, "noise_sd")  # noqa: B009
    return (
        f"The record is scaled to its bounds, its features clipped to norm {question.norm}, and "
        f"{count} products of its entries are sent with Gaussian noise of standard deviation {sd:.4g}."
    )


_NOISE = {
    "laplace": _laplace,
    "randomized_response": _randomized_response,
    "oue": _oue,
    "gaussian_statistics": _gaussian_statistics,
}


def describe(study: "Study") -> "list[str]":
    """Lines that say what the study asks and what its privacy is."""
    days = f"{study.opens or 'any time'} to {study.closes or 'any time'}"
    lines = [f"{study.title} ({study.id}, version {study.version})", f"open: {days}", f"digest: {study.digest}"]
    for question in study.questions:
        privacy = mechanism_for(question).privacy
        delta = f", delta {float(privacy.delta):g}" if float(privacy.delta) else ""
        lines += [
            "",
            f"{question.id}: {question.text or question.ask}",
            f"  {question.mechanism.name}: true epsilon {float(privacy.epsilon):.9g}{delta}",
            f"  {noise(question)}",
            f"  {odds(float(privacy.epsilon))}",
        ]
    return [*lines, "", _total(study)]


def _total(study: "Study") -> str:
    delta = f", delta {float(study.delta):g}" if float(study.delta) else ""
    return f"all {len(study.questions)} questions together: epsilon {float(study.epsilon):g}{delta} (their sum)"
