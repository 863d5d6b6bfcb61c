"""The mechanisms, by the names that studies use.

To add a mechanism, add a line to ldp_client/documents/catalogue.py and a file of the mechanism's name here.
Its class registers itself (docs/adding-a-mechanism.md).
"""

from ldp_client.documents import catalogue
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy, register
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.memoized import memoized
from ldp_client.mechanisms.number import number_mechanism
from ldp_client.mechanisms.olh import Olh
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.mechanisms.summed_gaussian import SummedMechanism, summed_gaussian
from ldp_client.mechanisms.unary import Oue, Sue


def _of_table(question: Question) -> Mechanism:
    # Loaded only if a study asks a table: no device needs it.
    from ldp_client.mechanisms.tables import table_mechanism

    return table_mechanism(question)


for _kind in (
    RandomizedResponse,
    Oue,
    Sue,
    SubsetSelection,
    Olh,
    Hadamard,
    GaussianRecord,
    GaussianStatistics,
    SummedMechanism,
):
    register(_kind)
MECHANISMS["laplace"] = MECHANISMS["gaussian"] = number_mechanism
MECHANISMS["memoized"] = memoized
for _name in ("table_statistics", "table_normal_equations", "table_statistics_laplace"):
    MECHANISMS[_name] = _of_table
for _name in catalogue.MECHANISMS:
    if _name not in MECHANISMS:
        __import__(f"{__name__}.{_name}")

__all__ = ["MECHANISMS", "Mechanism", "Privacy", "mechanism_for", "mechanisms_of"]

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
    if question.protocol is not None:
        return summed_gaussian(question)
    return MECHANISMS[question.mechanism.name](question)


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
