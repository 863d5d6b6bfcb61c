"""The mechanisms, by the names that studies use.

To add a mechanism, add a line to ldp_client/documents/catalogue.py and a file of the mechanism's name here.
Its class registers itself (docs/adding-a-mechanism.md). A file is loaded when a study names its mechanism.
"""

from importlib import import_module

from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy

__all__ = ["MECHANISMS", "Mechanism", "Privacy", "mechanism_for", "mechanisms_of"]

# The modules of mechanisms that have no file of their name.
HOMES = {
    "laplace": "number",
    "gaussian": "number",
    "randomized_response": "choice",
    "oue": "unary",
    "sue": "unary",
    "table_statistics": "tables.statistics",
    "table_normal_equations": "tables.statistics",
    "table_statistics_laplace": "tables.statistics",
}
# Most processes see few studies. A server that sees more rebuilds their mechanisms, in milliseconds.
MOST_STUDIES = 64
_built: dict[str, dict[str, Mechanism]] = {}


def mechanism_for(question: Question) -> Mechanism:
    """Build the mechanism that a question names, with the integers that follow from its ε and δ.

    Args:
        question: one question of a study.

    Returns:
        The mechanism, which may be shared: it holds no answer and no state.

    Raises:
        StudyError: ε or δ is too small for the question.
    """
    name = question.mechanism.name
    if name not in MECHANISMS:
        import_module(f"{__name__}.{HOMES.get(name, name)}")
    return MECHANISMS[name](question)


def mechanisms_of(study: Study) -> dict[str, Mechanism]:
    """Build the mechanism of every question, once per process and study: finding integers takes time.

    Args:
        study: the study; equal documents share their mechanisms.

    Returns:
        {question id: mechanism} in the study's order. The dictionary is the caller's own.

    Raises:
        StudyError: ε or δ is too small for a question.
    """
    built = _built.get(study.digest)
    if built is None:
        built = {question.id: mechanism_for(question) for question in study.questions}
        if len(_built) >= MOST_STUDIES:
            _built.clear()
        _built[study.digest] = built
    return dict(built)
