"""The rules of a study document that join several of its fields."""

from ldp_client.documents.channel import check_channel
from ldp_client.documents.errors import StudyError
from ldp_client.documents.paper import check_paper
from ldp_client.documents.priors import check_prior, given_priors
from ldp_client.documents.route import FEWEST_NOISY
from ldp_client.documents.sections import check_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Of four features there are some 9000 products then, in one report.
MOST_FEATURES_OF_POWERS = 20
# Their answers together are one of 2**16 cells, over which a posterior takes a transform for each gradient.
MOST_YES_NO = 16


def check_together(parsed: "dict[str, Any]") -> None:
    """Raises StudyError for a parsed study whose fields do not go together."""
    if parsed["opens"] and parsed["closes"] and parsed["opens"] > parsed["closes"]:
        raise StudyError(
            "closes",
            f"{parsed['closes']} is before opens, {parsed['opens']}",
            code="study.closes_before_opens",
        )
    route = parsed["route"]
    if route is not None and route["clients"] - route["tolerate"] < FEWEST_NOISY:
        problem = f"must leave {FEWEST_NOISY} clients or more: clients − tolerate ≥ {FEWEST_NOISY}"
        raise StudyError("route.tolerate", problem, code="study.tolerate_invalid")
    if route is not None and parsed["ask_one"]:
        raise StudyError(
            "ask_one",
            "does not go with a secure sum, which counts every device in each answer",
            code="study.ask_one_with_secure_sum",
        )
    if parsed["unit"] == "holder":
        _check_holder(parsed)
    if parsed["sections"]:
        check_sections(parsed)
    if parsed["public"]:
        _check_public(parsed)
    for index, question in enumerate(parsed["questions"]):
        _check_question(parsed, question, f"questions[{index}]")
    _check_field_names(parsed["questions"])
    check_paper(parsed, StudyError)
    check_channel(parsed)


def _check_field_names(questions: "list[dict[str, Any]]") -> None:
    """A field of a record is record.field where answers stand side by side: no question looks like one.

    Authors and collectors check it; to a browser, which answers by object, it is no matter.
    """
    records = [question["id"] for question in questions if question.get("response")]
    for index, question in enumerate(questions):
        for record in records:
            if question["id"].startswith(record + "."):
                problem = f"looks like the name of a field of {record}: give it another"
                raise StudyError(f"questions[{index}].id", problem, code="study.id_like_record_field")


def _check_question(parsed: "dict[str, Any]", question: "dict[str, Any]", path: str) -> None:
    _check_unit(parsed["unit"] or "person", question, path)
    _check_route(parsed["route"], question, f"{path}.mechanism")
    _check_memoized(question, f"{path}.mechanism")
    _check_refusal(parsed, question, f"{path}.refusal")
    if question.get("ordered") is not None and isinstance(question["choices"], range):
        raise StudyError(
            f"{path}.ordered",
            "needs labels: numbered choices have an order already",
            code="study.ordered_needs_labels",
        )
    if question["ask"] in ("record", "table"):
        _check_record(question, path)
    check_prior(question, path, StudyError)


def _check_holder(parsed: "dict[str, Any]") -> None:
    """A data holder releases statistics of its own records to whoever wants them, on every question."""
    if parsed["route"] is not None:
        raise StudyError(
            "route",
            "does not go with the unit 'holder': its statistics have their own noise",
            code="study.secure_sum_for_holders",
        )
    if parsed["ask_one"]:
        raise StudyError(
            "ask_one",
            "does not go with the unit 'holder', who answers every question",
            code="study.ask_one_for_holders",
        )


def _check_public(parsed: "dict[str, Any]") -> None:
    """What is sent in clear has a name of its own, and travels in a report beside payloads."""
    if parsed["route"] is not None:
        raise StudyError(
            "public",
            "does not go with a secure sum: nodes see no report that could carry it",
            code="study.public_with_secure_sum",
        )
    if parsed["unit"] == "holder":
        raise StudyError(
            "public",
            "does not go with the unit 'holder': a table is of many people",
            code="study.public_for_holders",
        )
    private = set()
    for question in parsed["questions"]:
        private.add(question["id"])
        # A file of answers has a column for each field of a record.
        fields = list(question.get("features") or ())
        fields += [question["response"]] if "response" in question else []
        private.update([f"{question['id']}.{field['id']}" for field in fields])
    for index, field in enumerate(parsed["public"]):
        if field["id"] in private:
            problem = f"{field['id']!r} is a private question: what is protected is never sent in clear too"
            raise StudyError(f"public[{index}].id", problem, code="study.public_id_invalid")


def _check_unit(unit: str, question: "dict[str, Any]", path: str) -> None:
    table = question["ask"] == "table"
    if table and unit != "holder":
        raise StudyError(
            f"{path}.ask", "a table needs the study's unit 'holder'", code="study.table_needs_holders"
        )
    if unit == "holder" and not table:
        raise StudyError(
            f"{path}.ask", "must be 'table': the study's unit is 'holder'", code="study.holders_need_tables"
        )
    if table:
        _check_table(question, path)


def _check_table(question: "dict[str, Any]", path: str) -> None:
    mechanism = question["mechanism"]
    if mechanism["average"] is not None and mechanism["count_share"] is not None:
        # Without one record all later groups would be others: nothing hides that.
        raise StudyError(
            f"{path}.mechanism.count_share",
            "does not go with average, which needs a public count",
            code="study.count_share_with_average",
        )
    if mechanism.get("share") is not None and not _tells_moments(mechanism):
        raise StudyError(
            f"{path}.mechanism.share",
            "needs the fields' means: an intercept, and no average",
            code="study.share_needs_means",
        )
    if mechanism.get("fourth_moments"):
        _check_fourth_moments(question, f"{path}.mechanism.fourth_moments")
    if mechanism["intercept"] is False and "centre" in given_priors(question["model"]):
        raise StudyError(
            f"{path}.model.prior.centre",
            "needs statistics with an intercept",
            code="study.centre_needs_intercept",
        )


def _tells_moments(mechanism: "dict[str, Any]") -> bool:
    return mechanism["intercept"] is not False and mechanism["average"] is None


def _check_fourth_moments(question: "dict[str, Any]", path: str) -> None:
    if question["mechanism"]["average"] is not None:
        raise StudyError(
            path,
            "are those of records: average does not go with it",
            code="study.fourth_moments_with_average",
        )
    if len(question["features"]) > MOST_FEATURES_OF_POWERS:
        raise StudyError(
            path, f"are for at most {MOST_FEATURES_OF_POWERS} features", code="study.fourth_moments_too_many"
        )


def _check_route(route: "Any", question: "dict[str, Any]", path: str) -> None:
    """Noise that is shared among devices protects nobody unless only their sum is ever seen."""
    summed = question["mechanism"]["name"] == "summed_gaussian"
    if summed and route is None:
        raise StudyError(
            f"{path}.name",
            "'summed_gaussian' needs the study's route 'secure_sum'",
            code="study.summed_gaussian_needs_route",
        )
    if route is not None and not summed:
        raise StudyError(
            f"{path}.name",
            "the route 'secure_sum' needs 'summed_gaussian'",
            code="study.route_needs_summed_gaussian",
        )
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
            'goes with "statistic": "marginals", and that with it',
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
        raise StudyError(
            f"{path}.of",
            "must be 'randomized_response' for a question that asks 'yes_no'",
            code="study.memoized_yes_no",
        )


def _check_refusal(parsed: "dict[str, Any]", question: "dict[str, Any]", path: str) -> None:
    """No answer is an answer where the noise of a report hides it, and the model tells it from the others."""
    if not question.get("refusal"):
        return
    if parsed["route"] is not None:
        raise StudyError(
            path,
            "does not go with a secure sum, in which every device counts in each answer",
            code="study.refusal_with_secure_sum",
        )
    if question["mechanism"]["name"] == "memoized":
        raise StudyError(
            path,
            "does not go with 'memoized': whoever refuses once would refuse for good",
            code="study.refusal_with_memoized",
        )
    if isinstance(question.get("choices"), range):
        raise StudyError(
            path,
            "needs choices with labels: of numbered ones no place is left for it",
            code="study.refusal_needs_labels",
        )
    if parsed["paper"] and question["id"] in [one["id"] for one in parsed["paper"]["questions"]]:
        raise StudyError(
            path, "does not go with paper, whose matrix has no row for it", code="study.refusal_with_paper"
        )


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
    needed = "linear_regression" if "bounds" in response else "logistic_regression"
    if question["model"]["name"] != needed:
        kind = "number" if "bounds" in response else "yes/no"
        raise StudyError(
            f"{path}.model.name", f"a {kind} response needs {needed!r}", code="study.model_not_for_response"
        )


def _check_fields(question: "dict[str, Any]", path: str) -> None:
    """Sampled products take each field by its own bounds; all else a norm, and numbers as features."""
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
    """Where all is yes/no, features make cells."""
    if len(question["features"]) > MOST_YES_NO:
        problem = f"must be {MOST_YES_NO} at most where all are yes/no, and so is the response"
        raise StudyError(f"{path}.features", problem, code="study.cells_invalid")
    if "feature_correlation" in given_priors(question["model"]):
        problem = "is for a number among the features: pairs of yes/no have a prior of their own"
        raise StudyError(
            f"{path}.model.prior.feature_correlation", problem, code="study.correlation_prior_invalid"
        )


def is_leveled(feature: "dict[str, Any]") -> bool:
    """Whether a parsed feature is one of some levels, not just a yes/no."""
    return bool(feature.get("cuts") or feature.get("choices"))


def entries_of(feature: "dict[str, Any]") -> int:
    """How many entries a parsed feature with levels has: below each cut or not, or characters of a choice."""
    if feature.get("cuts"):
        return len(feature["cuts"])
    return power_of_two(len(feature.get("choices") or ())) - 1


def power_of_two(least: int) -> int:
    """The smallest one that is two, and `least`, at least."""
    size = 2
    while size < least:
        size *= 2
    return size


def _check_levels(question: "dict[str, Any]", path: str) -> None:
    """Where one feature has levels, all have, in few enough cells for a posterior."""
    cells = 1
    for index, feature in enumerate(question["features"]):
        where = f"{path}.features[{index}]"
        if feature.get("bounds") is not None:
            _check_cuts(feature, where)
        cells *= 1 + entries_of(feature)
    if cells > 1 << MOST_YES_NO:
        problem = f"make {cells} cells together (a choice's number of them is a power of two): 65536 at most"
        raise StudyError(f"{path}.features", problem, code="study.levels_invalid")
    for name in given_priors(question["model"]):
        if name.startswith("feature_"):
            problem = "is for features that are numbers without cuts: levels have shares"
            raise StudyError(f"{path}.model.prior.{name}", problem, code="study.level_prior_invalid")


def _check_cuts(feature: "dict[str, Any]", path: str) -> None:
    if not feature["cuts"]:
        problem = "are missing: beside a choice or a number with cuts, every number has some"
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
        raise StudyError(
            f"{path}.norm",
            "does not go with marginals, which need the fields' bounds alone",
            code="study.norm_with_marginals",
        )
    _check_bounds_of_features(question, path)
    if "bounds" not in question["response"]:
        raise StudyError(
            f"{path}.response",
            "must be a number: a yes/no has no marginal moments to find",
            code="study.marginals_response",
        )
    if question["model"]["name"] != "marginals":
        raise StudyError(
            f"{path}.model.name", "the statistic 'marginals' needs 'marginals'", code="study.marginals_model"
        )
