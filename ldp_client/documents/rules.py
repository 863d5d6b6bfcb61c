"""The rules that join several fields of a study. Each rule is stated once, as a call of `refuse_study`."""

import itertools
from typing import Any

from ldp_client.documents.channel import FEWEST_NOISY
from ldp_client.documents.errors import StudyError
from ldp_client.documents.public import PublicField, wrong_value

Parsed = dict[str, Any]

# Twenty features have some 9000 products of four features, all in one report.
MOST_FEATURES_OF_POWERS = 20
# Sixteen yes/no answers make as many cells. A posterior transforms all cells for each gradient.
MOST_CELLS = 1 << 16


def refuse_study(is_broken: Any, path: str, problem: str, code: str) -> None:
    """Raise StudyError if a rule is broken."""
    if is_broken:
        raise StudyError(path, problem, code=code)


def check_study(parsed: Parsed) -> None:
    """Raise StudyError if fields of a parsed study conflict."""
    opens, closes, protocol = parsed["opens"], parsed["closes"], parsed["protocol"]
    is_late = opens and closes and opens > closes
    refuse_study(is_late, "closes", "must not be before opens", "study.closes_before_opens")
    if protocol is not None:
        is_noisy = protocol["devices"] - protocol["max_faulty"] >= FEWEST_NOISY
        problem = f"must leave {FEWEST_NOISY} devices or more: devices − max_faulty ≥ {FEWEST_NOISY}"
        refuse_study(not is_noisy, "protocol.max_faulty", problem, "study.max_faulty_invalid")
        for name in ("sample_one_question", "public"):
            problem = "does not go with a secure sum, which counts every device and hides all else"
            refuse_study(parsed[name], name, problem, "study.not_for_secure_sums")
    if parsed["respondent"] == "holder":
        for name in ("protocol", "sample_one_question", "sections", "public", "channel"):
            problem = "does not go with the respondent 'holder', which releases statistics of many people"
            refuse_study(parsed[name], name, problem, "study.not_for_holders")
    if parsed["sections"]:
        _check_sections(parsed)
    private = set()
    for question in parsed["questions"]:
        # A file of answers has a column for each field of a record.
        private.add(question["id"])
        private.update([f"{question['id']}.{field['id']}" for field in _fields_of(question)])
    for index, field in enumerate(parsed["public"] or ()):
        problem = f"{field['id']!r} is a private question: its answer must not be sent without noise too"
        refuse_study(field["id"] in private, f"public[{index}].id", problem, "study.public_id_invalid")
    for index, question in enumerate(parsed["questions"]):
        _check_question(parsed, question, f"questions[{index}]")
    if parsed["channel"] is not None and parsed["channel"]["tickets"] is not None:
        _check_strata(parsed["public"] or (), parsed["channel"]["tickets"]["keys"])


def _check_sections(parsed: Parsed) -> None:
    """Raise StudyError unless each question is in exactly one section."""
    problem = "do not go with sample_one_question: each device is shown one question"
    code = "study.sections_with_sample_one_question"
    refuse_study(parsed["sample_one_question"], "sections", problem, code)
    left = {question["id"]: question for question in parsed["questions"]}
    for index, section in enumerate(parsed["sections"]):
        for place, name in enumerate(section["questions"]):
            path = f"sections[{index}].questions[{place}]"
            problem = f"{name!r} is not a question of this study, or is already in a section"
            refuse_study(name not in left, path, problem, "study.section_question_invalid")
            question = left.pop(name)
            once = question["mechanism"]["name"] != "memoized" and not question.get("refusal")
            is_box = question["ask"] == "yes_no" and once
            problem = f"{name!r} must be a yes/no that is asked once, without refusal: it is a box of a list"
            refuse_study(section["any_of"] and not is_box, path, problem, "study.section_question_invalid")
    problem = f"leave out {list(left)}: each question must be in a section"
    refuse_study(left, "sections", problem, "study.question_in_no_section")


def _check_strata(public: tuple[Parsed, ...], keys: tuple[Parsed, ...]) -> None:
    """Raise StudyError unless each key has its own values of the public fields that tickets carry."""
    fields = [PublicField(item) for item in public]
    carried = [field for field in fields if field.from_ticket]
    seen: list[dict[str, str]] = []
    for index, key in enumerate(keys):
        path, values = f"channel.tickets.keys[{index}].public", key["public"] or {}
        wrong = wrong_value(carried, values)
        if wrong is not None:
            raise StudyError(f"{path}.{wrong[0]}", wrong[1], code="study.ticket_public_invalid")
        problem = "must differ from every other key's: two keys of one stratum tell people apart"
        refuse_study(values in seen, path, problem, "study.ticket_public_invalid")
        seen.append(values)


def _fields_of(question: Parsed) -> list[Parsed]:
    """Return the fields of a record or table, the response last; empty for other questions."""
    fields = list(question.get("features", ()))
    if "response" in question:
        fields.append(question["response"])
    return fields


def _check_question(parsed: Parsed, question: Parsed, path: str) -> None:
    """Raise StudyError if fields of a parsed question conflict with each other, or with its study."""
    mechanism, protocol, ask = question["mechanism"], parsed["protocol"], question["ask"]
    name, statistic = mechanism["name"], mechanism.get("statistic")
    is_summed, is_memoized = name == "summed_gaussian", name == "memoized"
    is_numbered = isinstance(question.get("choices"), range)
    at = f"{path}.mechanism"
    # 1. The question and its study.
    is_wrong = (ask == "table") != (parsed["respondent"] == "holder")
    problem = "must be 'table' if the study's respondent is 'holder', and only then"
    refuse_study(is_wrong, f"{path}.ask", problem, "study.table_for_holders")
    if ask == "table":
        _check_table(question, at)
    problem = "must be 'summed_gaussian' if the study's protocol is 'secure_sum', and only then"
    refuse_study(is_summed != (protocol is not None), f"{at}.name", problem, "study.summed_gaussian_for_sums")
    # 2. The question and its mechanism.
    is_wrong = mechanism.get("cells") is not None and ask != "number"
    problem = "is for questions that ask a number"
    refuse_study(is_wrong, f"{at}.cells", problem, "study.cells_not_for_question")
    problem = "is for questions that ask a record"
    is_wrong = statistic is not None and ask != "record"
    refuse_study(is_wrong, f"{at}.statistic", problem, "study.statistic_not_for_question")
    is_wrong = is_summed and (statistic is None) != (mechanism.get("share") is None)
    problem = 'needs "statistic": "marginals", which needs a share'
    refuse_study(is_wrong, f"{at}.share", problem, "study.share_needs_marginals")
    if is_memoized:
        is_below = mechanism["instantaneous_epsilon"] < mechanism["epsilon"]
        problem = "must be below epsilon, which is for all reports"
        refuse_study(not is_below, f"{at}.instantaneous_epsilon", problem, "study.instantaneous_too_large")
        is_wrong = ask == "yes_no" and mechanism["of"] != "randomized_response"
        problem = "must be 'randomized_response' for a question that asks 'yes_no'"
        refuse_study(is_wrong, f"{at}.of", problem, "study.memoized_yes_no")
    # A sum counts every device, a permanent refusal could not end, and a number has no place for it.
    is_wrong = question.get("refusal") and (protocol is not None or is_memoized or is_numbered)
    problem = "does not go with a secure sum, with 'memoized' or with numbered choices"
    refuse_study(is_wrong, f"{path}.refusal", problem, "study.refusal_invalid")
    is_wrong = question.get("ordered") is not None and is_numbered
    problem = "needs labels: numbered choices have an order already"
    refuse_study(is_wrong, f"{path}.ordered", problem, "study.ordered_needs_labels")
    # 3. The fields of a record.
    if "response" in question:
        _check_fields(question, path)


def _check_table(question: Parsed, path: str) -> None:
    mechanism = question["mechanism"]
    is_grouped = mechanism["average"] is not None
    # Removing one record would change all later groups, and no noise hides that.
    is_wrong = is_grouped and mechanism["count_share"] is not None
    problem = "does not go with average, which needs a public count"
    refuse_study(is_wrong, f"{path}.count_share", problem, "study.count_share_with_average")
    is_wrong = mechanism.get("share") is not None and (is_grouped or mechanism["intercept"] is False)
    problem = "needs the fields' means: an intercept, and no average"
    refuse_study(is_wrong, f"{path}.share", problem, "study.share_needs_means")
    is_large = is_grouped or len(question["features"]) > MOST_FEATURES_OF_POWERS
    problem = f"need single records, without average, of at most {MOST_FEATURES_OF_POWERS} features"
    is_wrong = mechanism.get("fourth_moments") and is_large
    refuse_study(is_wrong, f"{path}.fourth_moments", problem, "study.fourth_moments_invalid")


def _check_fields(question: Parsed, path: str) -> None:
    """Raise StudyError unless the fields of a record or table fit each other and the mechanism."""
    features, response, mechanism = question["features"], question["response"], question["mechanism"]
    is_sampled, statistic = mechanism["name"] == "sampled_products", mechanism.get("statistic")
    problem = f"{response['id']!r} is also a feature"
    is_twice = response["id"] in [feature["id"] for feature in features]
    refuse_study(is_twice, f"{path}.response.id", problem, "study.response_is_feature")
    # 1. The norm.
    is_wrong = (question["norm"] is None) != (is_sampled or statistic is not None)
    problem = "is needed, except by 'sampled_products' and marginals, which clip each field to its own bounds"
    refuse_study(is_wrong, f"{path}.norm", problem, "study.norm_invalid")
    # 2. Fields that only sampled products take.
    for index, feature in enumerate(features):
        name = "cuts" if feature.get("cuts") else "ask"
        is_wrong = not is_sampled and (name == "cuts" or "bounds" not in feature)
        problem = "needs 'sampled_products'; else state a number without cuts, a yes/no with bounds 0 and 1"
        refuse_study(is_wrong, f"{path}.features[{index}].{name}", problem, "study.feature_not_for_mechanism")
    problem = "must be a number: a yes/no has no marginal moments to find"
    is_wrong = statistic is not None and "bounds" not in response
    refuse_study(is_wrong, f"{path}.response", problem, "study.marginals_response")
    # 3. Levels, in few enough cells for a posterior.
    is_cut = any(is_leveled(feature) for feature in features)
    if not is_cut and any("bounds" in field for field in _fields_of(question)):
        return
    cells = 1
    for index, feature in enumerate(features):
        # The levels of a cut, or of the binary characters of a choice or a yes/no.
        cuts = feature.get("cuts")
        cells *= len(cuts) + 1 if cuts else power_of_two(len(feature.get("choices") or ()))
        if "bounds" in feature:
            low, high = feature["bounds"]
            ends = [float(low)] + [float(cut) for cut in cuts or ()] + [float(high)]
            is_rising = len(ends) > 2 and all(start < end for start, end in itertools.pairwise(ends))
            problem = "must be given, as another feature is a choice or has cuts, and rise between the bounds"
            refuse_study(not is_rising, f"{path}.features[{index}].cuts", problem, "study.cuts_invalid")
    problem = f"make {cells} cells together, a choice a power of two of them: {MOST_CELLS} at most"
    refuse_study(cells > MOST_CELLS, f"{path}.features", problem, "study.levels_invalid")


def is_leveled(feature: Parsed) -> bool:
    """Return True if a parsed feature has levels: bins or choices, not just a yes/no."""
    return bool(feature.get("cuts") or feature.get("choices"))


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least 2 and at least `least`."""
    return max(2, 1 << (least - 1).bit_length())
