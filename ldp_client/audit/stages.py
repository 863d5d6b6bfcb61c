"""What of a mechanism is audited: itself, or each of its promises where it makes several.

A memoized mechanism draws a permanent noisy answer once and makes every report from it. It promises one
ε for the permanent answer, hence for all reports together, and a smaller one for a report alone. A record
with a yes/no response spends one share of ε on its features and the rest on its response.
"""

from copy import copy

from ldp_client.audit.parts import Features, Response, Together, has_parts
from ldp_client.audit.repeated import REPORTS, Again, Repeated
from ldp_client.mechanisms.base import Privacy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemas.rational import Rational
    from schemas.study import Question


class Stage:
    """A mechanism to audit, the ε that the study states for it, and its name among several ("" if alone).

    answers: what it is asked, where that is not what the question is. coin: the mechanism whose coin decides
    what a report supports, where that is not the stage's own.
    """

    def __init__(
        self,
        name: str,
        mechanism: "Any",
        epsilon: "Rational",
        answers: "dict[str, Any] | None" = None,
        coin: "Any" = None,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.answers = answers
        self.coin = coin or mechanism


def stages_of(mechanism: "Any", question: "Question") -> "list[Stage]":
    """The mechanism as it is, or what it is made of."""
    if hasattr(mechanism, "permanent"):
        return _memoized(mechanism, question.mechanism)
    if has_parts(mechanism):
        return _record(mechanism, question)
    return [Stage("", mechanism, question.mechanism.epsilon)]


def _memoized(mechanism: "Any", stated: "Any") -> "list[Stage]":
    """The permanent answer, one report, and many."""
    alone = copy(mechanism)
    alone.privacy = mechanism.report_privacy
    return [
        Stage("permanent answer", mechanism.first, stated.epsilon),
        Stage("one report", alone, stated.instantaneous_epsilon, coin=Again(mechanism)),
        Stage(f"{REPORTS} reports", Repeated(mechanism), stated.epsilon),
    ]


def _record(mechanism: "Any", question: "Question") -> "list[Stage]":
    """The features and the response, each with its exact share, and both together."""
    stated: "Any" = question.mechanism
    of_response = stated.epsilon * stated.response_share
    of_features = stated.epsilon - of_response
    features = Features(mechanism, Privacy(of_features, stated.delta))
    return [
        Stage("features", features, of_features),
        Stage("response", Response(mechanism, question), of_response, {"no": False, "yes": True}),
        Stage("whole report", Together(mechanism), stated.epsilon),
    ]
