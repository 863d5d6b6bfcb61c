"""The rules that join several fields of a question, or a question and its study."""

from ldp_client.documents.errors import StudyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Twenty features have some 9000 products of four features, all in one report.
MOST_FEATURES_OF_POWERS = 20
# Sixteen answers make 2**16 cells. A posterior transforms all cells for each gradient.
MOST_YES_NO = 16


def check_question(parsed: "dict[str, Any]", question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError if fields of a parsed question conflict with each other, or with its study."""
    _check_unit(parsed["respondent"] or "person", question, path)
    _check_protocol(parsed["protocol"], question, f"{path}.mechanism")
    _check_memoized(question, f"{path}.mechanism")
    _check_refusal(parsed, question, f"{path}.refusal")
    if question.get("ordered") is not None and isinstance(question["choices"], range):
        problem = "needs labels: numbered choices have an order already"
        raise StudyError(f"{path}.ordered", problem, code="study.ordered_needs_labels")
    if question["ask"] in ("record", "table"):
        _check_record(question, path)


def _check_unit(unit: str, question: "dict[str, Any]", path: str) -> None:
    table = question["ask"] == "table"
    if table and unit != "holder":
        raise StudyError(
            f"{path}.ask", "a table needs the study's respondent 'holder'", code="study.table_needs_holders"
        )
    if unit == "holder" and not table:
        problem = "must be 'table': the study's respondent is 'holder'"
        raise StudyError(f"{path}.ask", problem, code="study.holders_need_tables")
    if table:
        _check_table(question, path)


def _check_table(question: "dict[str, Any]", path: str) -> None:
    mechanism = question["mechanism"]
    if mechanism["average"] is not None and mechanism["count_share"] is not None:
        # Removing one record would change all later groups, and no noise hides that.
        problem = "does not go with average, which needs a public count"
        raise StudyError(f"{path}.mechanism.count_share", problem, code="study.count_share_with_average")
    if mechanism.get("share") is not None and not _tells_moments(mechanism):
        problem = "needs the fields' means: an intercept, and no average"
        raise StudyError(f"{path}.mechanism.share", problem, code="study.share_needs_means")
    if mechanism.get("fourth_moments"):
        _check_fourth_moments(question, f"{path}.mechanism.fourth_moments")


def _tells_moments(mechanism: "dict[str, Any]") -> bool:
    return mechanism["intercept"] is not False and mechanism["average"] is None


def _check_fourth_moments(question: "dict[str, Any]", path: str) -> None:
    if question["mechanism"]["average"] is not None:
        problem = "need single records: they do not go with average"
        raise StudyError(path, problem, code="study.fourth_moments_with_average")
    if len(question["features"]) > MOST_FEATURES_OF_POWERS:
        raise StudyError(
            path, f"are for at most {MOST_FEATURES_OF_POWERS} features", code="study.fourth_moments_too_many"
        )


def _check_protocol(protocol: "Any", question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError unless `summed_gaussian` and secure sums go together: shared noise hides sums only."""
    summed = question["mechanism"]["name"] == "summed_gaussian"
    if summed and protocol is None:
        problem = "'summed_gaussian' needs the study's protocol 'secure_sum'"
        raise StudyError(f"{path}.name", problem, code="study.summed_gaussian_needs_protocol")
    if protocol is not None and not summed:
        problem = "the protocol 'secure_sum' needs 'summed_gaussian'"
        raise StudyError(f"{path}.name", problem, code="study.protocol_needs_summed_gaussian")
    if question["mechanism"].get("cells") is not None and question["ask"] != "number":
        raise StudyError(
            f"{path}.cells", "is for questions that ask a number", code="study.cells_not_for_question"
        )
    if question["mechanism"].get("statistic") is not None and question["ask"] != "record":
        raise StudyError(
            f"{path}.statistic", "is for questions that ask a record", code="study.statistic_not_for_question"
        )
    if summed and (question["mechanism"].get("statistic") is None) != (
        question["mechanism"].get("share") is None
    ):
        raise StudyError(
            f"{path}.share",
            'needs "statistic": "marginals", which needs a share',
            code="study.share_needs_marginals",
        )


def _check_memoized(question: "dict[str, Any]", path: str) -> None:
    mechanism = question["mechanism"]
    if mechanism["name"] != "memoized":
        return
    if not mechanism["instantaneous_epsilon"] < mechanism["epsilon"]:
        raise StudyError(
            f"{path}.instantaneous_epsilon",
            "must be below epsilon, which is for all reports",
            code="study.instantaneous_epsilon_too_large",
        )
    if question["ask"] == "yes_no" and mechanism["of"] != "randomized_response":
        problem = "must be 'randomized_response' for a question that asks 'yes_no'"
        raise StudyError(f"{path}.of", problem, code="study.memoized_yes_no")


def _check_refusal(parsed: "dict[str, Any]", question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError if the question offers refusal, but its noise does not support that."""
    if not question.get("refusal"):
        return
    if parsed["protocol"] is not None:
        problem = "does not go with a secure sum, in which every device counts in each answer"
        raise StudyError(path, problem, code="study.refusal_with_secure_sum")
    if question["mechanism"]["name"] == "memoized":
        problem = "does not go with 'memoized': a person who refuses once would refuse forever"
        raise StudyError(path, problem, code="study.refusal_with_memoized")
    if isinstance(question.get("choices"), range):
        problem = "needs choices with labels: numbered choices leave no place for it"
        raise StudyError(path, problem, code="study.refusal_needs_labels")


def _check_record(question: "dict[str, Any]", path: str) -> None:
    response = question["response"]
    if response["id"] in [feature["id"] for feature in question["features"]]:
        raise StudyError(
            f"{path}.response.id", f"{response['id']!r} is also a feature", code="study.response_is_feature"
        )
    if question["mechanism"].get("statistic") is not None:
        _check_marginals(question, path)
        return
    _check_fields(question, path)


def _check_fields(question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError unless fields fit: sampled products need bounds, others a norm and number features."""
    if question["mechanism"]["name"] == "sampled_products":
        if question["norm"] is not None:
            problem = "does not go with 'sampled_products', which clips each field to its own bounds"
            raise StudyError(f"{path}.norm", problem, code="study.norm_invalid")
        if any([is_leveled(feature) for feature in question["features"]]):
            _check_levels(question, path)
            return
        fields = list(question["features"])
        fields.append(question["response"])
        if not any(["bounds" in field for field in fields]):
            _check_cells(question, path)
        return
    if question["norm"] is None:
        raise StudyError(f"{path}.norm", "is missing", code="study.norm_missing")
    _check_bounds_of_features(question, path)


def _check_cells(question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError if too many yes/no features make too many cells."""
    if len(question["features"]) > MOST_YES_NO:
        problem = f"must be {MOST_YES_NO} at most if all features and the response are yes/no"
        raise StudyError(f"{path}.features", problem, code="study.cells_invalid")


def is_leveled(feature: "dict[str, Any]") -> bool:
    """Return True if a parsed feature has levels: bins or choices, not just a yes/no."""
    return bool(feature.get("cuts") or feature.get("choices"))


def entries_of(feature: "dict[str, Any]") -> int:
    """Return the number of entries of a parsed feature with levels: its cuts, or characters of a choice."""
    if feature.get("cuts"):
        return len(feature["cuts"])
    return power_of_two(len(feature.get("choices") or ())) - 1


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least 2 and at least `least`."""
    size = 2
    while size < least:
        size *= 2
    return size


def _check_levels(question: "dict[str, Any]", path: str) -> None:
    """Raise StudyError unless all features have levels, in few enough cells for a posterior."""
    cells = 1
    for index, feature in enumerate(question["features"]):
        where = f"{path}.features[{index}]"
        if feature.get("bounds") is not None:
            _check_cuts(feature, where)
        cells *= 1 + entries_of(feature)
    if cells > 1 << MOST_YES_NO:
        problem = f"make {cells} cells together (a choice's number of them is a power of two): 65536 at most"
        raise StudyError(f"{path}.features", problem, code="study.levels_invalid")


def _check_cuts(feature: "dict[str, Any]", path: str) -> None:
    if not feature["cuts"]:
        problem = "are missing: if a feature is a choice or has cuts, every number needs cuts"
        raise StudyError(f"{path}.cuts", problem, code="study.cuts_invalid")
    ends = [float(end) for end in feature["bounds"][:1] + feature["cuts"] + feature["bounds"][1:]]
    if not all([one < other for one, other in zip(ends, ends[1:])]):
        raise StudyError(f"{path}.cuts", "must rise, between the bounds", code="study.cuts_not_rising")


def _check_bounds_of_features(question: "dict[str, Any]", path: str) -> None:
    for index, feature in enumerate(question["features"]):
        if is_leveled(feature):
            name = "cuts" if feature.get("cuts") else "ask"
            raise StudyError(
                f"{path}.features[{index}].{name}",
                "is for 'sampled_products' alone",
                code="study.feature_field_not_for_mechanism",
            )
        if "bounds" not in feature:
            problem = "a yes/no feature needs 'sampled_products'; else give it as a number, bounds 0 and 1"
            raise StudyError(f"{path}.features[{index}].ask", problem, code="study.feature_ask_invalid")


def _check_marginals(question: "dict[str, Any]", path: str) -> None:
    if question["norm"] is not None:
        problem = "does not go with marginals, which need the fields' bounds alone"
        raise StudyError(f"{path}.norm", problem, code="study.norm_with_marginals")
    _check_bounds_of_features(question, path)
    if "bounds" not in question["response"]:
        problem = "must be a number: a yes/no has no marginal moments to find"
        raise StudyError(f"{path}.response", problem, code="study.marginals_response")
