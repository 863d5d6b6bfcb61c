"""What the vectors of records and of secure sums ask, and their answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.portable import crafted
from tests.portable.vector_choices import choice_answers
from tests.portable.vector_draws import NORMAL_STRIPS, SEEDS, UNDECIDED, draw
from tests.portable.vector_numbers import NUMBER_ANSWERS


def record_studies() -> dict[str, Any]:
    features = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(10)]
    strong = {"name": "gaussian_statistics", "epsilon": "0.2", "delta": "1e-9"}
    return {
        "linear": studies.LINEAR,
        "logistic": studies.LOGISTIC,
        "wide-norm": {**studies.LINEAR, "norm": "1.75", "mechanism": strong},
        "ten": {**studies.LINEAR, "features": features},
        "one-logistic": {**studies.LOGISTIC, "features": studies.FEATURES[:1], "mechanism": strong},
    }


def _record_answers(question: dict[str, Any]) -> list[dict[str, Any]]:
    features = [feature["id"] for feature in question["features"]]
    response = question["response"]["id"]
    binary = "ask" in question["response"]
    ends: list[list[Any]] = [["no", "yes"], [True, False]] if binary else [[1, 5], [2.75, None]]
    return [
        {**dict.fromkeys(features, -100), response: ends[0][0]},
        {**dict.fromkeys(features, 100), response: ends[0][1]},
        {**dict.fromkeys(features, 0.37), response: ends[1][0]},
        {**dict.fromkeys(features, "NaN"), features[0]: "-Infinity", response: ends[1][1]},
    ]


def record_draws() -> Iterator[dict[str, Any]]:
    for study, question in record_studies().items():
        for answer in _record_answers(question):
            for seed in SEEDS:
                yield draw(study, answer, f"record {seed}")
    plain = _record_answers(studies.LINEAR)[2]
    for answer in (
        {**plain, "more": 1},
        {"age": 30, "years": 3},
        {**plain, "age": "30"},
        {**plain, "rate": True},
        3,
    ):
        yield draw("linear", answer, "record refused")
    coordinates = len(mechanism_for(Study(studies.document(studies.LINEAR)).questions[0]).coordinates)
    for strip, kept in UNDECIDED:
        start = crafted.undecided(NORMAL_STRIPS, strip, kept)
        yield draw("linear", plain, "record head", crafted.many_draws(coordinates, *start, seed="others"))
    rejected = crafted.rejected_word(NORMAL_STRIPS, 40)
    for start in ((rejected, 0xFFFFFFFF, b""), (crafted.tail_word(NORMAL_STRIPS), 0, b"")):
        yield draw("linear", plain, "record head", crafted.many_draws(coordinates, *start, seed="others"))


def noisy_studies() -> dict[str, Any]:
    features = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(10)]
    strong = {"name": "gaussian_record", "epsilon": "0.2", "delta": "1e-9", "response_share": "0.875"}
    return {
        "linear": studies.RECORD,
        "logistic": studies.YES_NO_RECORD,
        "small-norm": {**studies.RECORD, "norm": "0.002", "mechanism": strong},
        "ten-logistic": {**studies.YES_NO_RECORD, "features": features, "norm": "3", "mechanism": strong},
    }


def noisy_draws() -> Iterator[dict[str, Any]]:
    for study, question in noisy_studies().items():
        for answer in _record_answers(question):
            for seed in SEEDS:
                yield draw(study, answer, f"noisy {seed}")
            yield draw(study, answer, "noisy head", b"\xff" * 24)
    yield draw("logistic", {"age": 30, "years": 3}, "noisy refused")


LOGISTIC = {"response": {"id": "rate", "ask": "yes_no"}, "model": {"name": "logistic_regression"}}


def product_studies() -> dict[str, Any]:
    def study(epsilon: str, **weights: int) -> dict[str, Any]:
        stated: dict[str, Any] = {"name": "sampled_products", "epsilon": epsilon}
        return {**studies.PRODUCTS, "mechanism": {**stated, "weights": weights} if weights else stated}

    features = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(14)]
    return {
        "plain": study("1"),
        "weighted": study("0.25", squares=3, response=1000),
        "one": {**study("4"), "features": [{"id": "married", "ask": "yes_no"}]},
        "two-bytes": {**study("1"), "features": features},
        "logistic": {**study("2"), **LOGISTIC},
    }


def _product_answers(question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for place, married, response in ((-100, "no", 1), (100, "yes", 1e9), (0.37, True, 2.75), (40, False, 5)):
        features = question["features"]
        record = {feature["id"]: place if "bounds" in feature else married for feature in features}
        yield {
            **record,
            question["response"]["id"]: response if "bounds" in question["response"] else married,
        }


def product_draws() -> Iterator[dict[str, Any]]:
    for study, question in product_studies().items():
        for answer in _product_answers(question):
            for seed in range(6 if study == "two-bytes" else 20):
                yield draw(study, answer, f"product {seed}")
            # The first word is drawn again; a rounding of nothing, and of all but one.
            yield draw(study, answer, "product head", b"\xff" * 4 + bytes(8) + b"\xff" * 4)
            yield draw(study, answer, "product head", bytes(4) + b"\xff" * 8)
    for wrong in ({"age": "30"}, {"married": 1}, {"rate": None}, {"more": 1}):
        yield draw("plain", {"age": 30, "married": True, "rate": 3, **wrong}, "product refused")


LEVELS = [
    {"id": "age", "bounds": ["15", "65"], "cuts": ["25.3", "40", "64"]},
    {"id": "job", "ask": "choice", "choices": ["none", "part", "full", "own", "other"]},
    {"id": "married", "ask": "yes_no"},
]


def leveled_studies() -> dict[str, Any]:
    plain = {**studies.PRODUCTS, "features": LEVELS, "response": {"id": "rate", "bounds": ["1", "5"]}}
    return {
        "linear": {
            **plain,
            "mechanism": {"name": "sampled_products", "epsilon": "1", "weights": {"response": 3}},
        },
        "logistic": {**plain, **LOGISTIC, "features": [LEVELS[0], LEVELS[2]]},
        "choice": {**plain, **LOGISTIC, "features": [{**LEVELS[1], "choices": ["a", "b"]}]},
    }


def leveled_draws() -> Iterator[dict[str, Any]]:
    yield from _draws_of_levels(leveled_studies(), "levels")
    for wrong in ({"age": "30"}, {"job": 1}, {"job": "Full"}, {"job": None}):
        yield draw(
            "linear", {"age": 30, "job": "full", "married": True, "rate": 3, **wrong}, "levels refused"
        )


def _draws_of_levels(questions: dict[str, Any], seeds: str) -> Iterator[dict[str, Any]]:
    for study, question in questions.items():
        for age, job, married in ((-1e9, 0, "no"), (25.3, 1, True), (39.9, -1, "yes"), (64, 0, False)):
            values = {"age": age, "time": 80 - age, "married": married, "works": "yes"}
            record = {
                field["id"]: field["choices"][job] if "choices" in field else values[field["id"]]
                for field in question["features"]
            }
            rate = 2.7 if "bounds" in question["response"] else married
            for seed in range(30 if study == "linear" else 8):
                yield draw(study, {**record, "rate": rate}, f"{seeds} {seed}")


def several_studies() -> dict[str, Any]:
    def study(epsilon: str, products: int, features: Any, **weights: int) -> dict[str, Any]:
        stated = {"name": "sampled_products", "epsilon": epsilon, "products": products}
        mechanism = {**stated, "weights": weights} if weights else stated
        return {**studies.PRODUCTS, "mechanism": mechanism, "features": features}

    numbers = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(14)]
    plain = studies.PRODUCTS["features"]
    return {
        "two": study("2", 2, plain),
        "three": study("4", 3, plain, response=2, squares=5),
        "four": study("0.5", 4, numbers),
        "one": study("1", 1, plain),
        "logistic": {**study("8", 2, plain), **LOGISTIC},
        "levels": {**study("3", 3, LEVELS), "response": {"id": "rate", "bounds": ["1", "5"]}},
    }


def several_draws() -> Iterator[dict[str, Any]]:
    for study, question in several_studies().items():
        values = {"age": (-1e9, 25.3, 64), "job": ("none", "full", "other"), "married": ("no", True, "yes")}
        for place, rate in enumerate((1, 2.75, 1e9)):
            record = {
                field["id"]: values.get(field["id"], (-9, 0.37, 9))[place] for field in question["features"]
            }
            asked = rate if "bounds" in question["response"] else values["married"][place]
            for seed in range(16):
                yield draw(study, {**record, "rate": asked}, f"several {seed}")
            # The block is drawn again, and which lie; roundings of nothing, and of all but one.
            rounding = bytes(8 * question["mechanism"]["products"])
            for head in (b"\xff" * 4 + rounding + bytes(4) + b"\xff" * 8, bytes(4) + b"\xff" * 40):
                yield draw(study, {**record, "rate": asked}, "several head", head)


def summed_studies() -> dict[str, Any]:
    stated = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
    return {
        "moments": {**studies.NUMBER, "mechanism": stated},
        "cells": {**studies.NUMBER, "mechanism": {**stated, "cells": 5}},
        "three": {**studies.CHOICE, "mechanism": stated},
        "yes-no": {**studies.YES_NO, "mechanism": stated},
        "linear": {**studies.LINEAR, "mechanism": {**stated, "epsilon": "0.2", "delta": "1e-9"}},
        "logistic": {**studies.LOGISTIC, "mechanism": stated},
    }


def _summed_answers(question: dict[str, Any]) -> list[Any]:
    kinds = {"number": lambda _: NUMBER_ANSWERS, "record": _record_answers}
    return list(kinds.get(question["ask"], choice_answers)(question))


def summed_draws() -> Iterator[dict[str, Any]]:
    for study, question in summed_studies().items():
        for answer in _summed_answers(question):
            yield draw(study, answer, "summed a")
        yield draw(study, ["wrong"], "summed refused")
