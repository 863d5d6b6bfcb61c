"""The paper's public data sets, from ../shared/data or the folder that LDPKIT_DATA names."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BESIDE = Path(__file__).parents[3] / "shared" / "data"
SOURCES = {
    "wine_red.csv.gz": "https://archive.ics.uci.edu/dataset/186/wine+quality (gzip of winequality-red.csv, "
    "with commas, names in snake case)",
    "wine_white.csv.gz": "https://archive.ics.uci.edu/dataset/186/wine+quality (gzip of "
    "winequality-white.csv, likewise)",
    "adult.csv.gz": "https://archive.ics.uci.edu/dataset/2/adult (adult.data and adult.test in one CSV with "
    "a header, names in snake case, no spaces after commas)",
    "abalone.csv.gz": "https://archive.ics.uci.edu/dataset/1/abalone (gzip of abalone.data with a header of "
    "names in snake case, rings last)",
    "kosarak_5_25_item_counts.csv.gz": "https://github.com/arbenson/discrete-subset-choice, "
    "data/kosarak-5-25.txt (how often each item occurs, as item,count in falling order)",
    "power_plant.csv.gz": "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant (gzip of its "
    "first sheet as CSV with a header: AT, V, AP, RH, PE)",
    "bike_sharing.csv.gz": "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset (gzip of hour.csv "
    "without instant and dteday)",
    "air_quality.csv.gz": "https://archive.ics.uci.edu/dataset/360/air+quality (gzip of AirQualityUCI.csv "
    "with commas and decimal points, without Date and Time and its empty columns and rows)",
    "3droad.csv.gz": "https://archive.ics.uci.edu/dataset/246/3d+road+network+north+jutland+denmark (gzip "
    "of 3D_spatial_network.txt with a header line)",
}


def path_of(name: str) -> Path:
    """Where a data file lies. Exits with what to download, and from where, when it is nowhere."""
    folders = [Path(os.environ["LDPKIT_DATA"])] if "LDPKIT_DATA" in os.environ else [BESIDE]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise SystemExit(
        f"{name} is not in {folders[0]}: make it from {SOURCES[name]}, put it in a folder, and set "
        "LDPKIT_DATA to that folder"
    )


def table(name: str) -> dict[str, NDArray[np.str_]]:
    """The columns of a gzipped CSV file, as text."""
    with gzip.open(path_of(name), "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return dict(zip(rows[0], np.array(rows[1:]).T, strict=True))


def wine() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Red and white wines: 11 measured properties and the colour (6497, 12), quality (6497,)."""
    parts = [(table("wine_red.csv.gz"), 0.0), (table("wine_white.csv.gz"), 1.0)]
    features = [
        np.column_stack(
            [
                *(columns[name].astype(float) for name in columns if name != "quality"),
                np.full(len(columns["quality"]), white),
            ]
        )
        for columns, white in parts
    ]
    quality = [columns["quality"].astype(float) for columns, _ in parts]
    return np.concatenate(features), np.concatenate(quality)


def adult() -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Census records: numbers and one column for each category (48842, d), income > 50K, test split."""
    columns = table("adult.csv.gz")
    numbers = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    kinds = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
    parts = [columns[name].astype(float) for name in numbers]
    for kind in kinds:
        parts += [(columns[kind] == value).astype(float) for value in np.unique(columns[kind])]
    rich = np.char.startswith(columns["income"], ">50K")
    return np.column_stack(parts), rich, columns["split"] == "test"


def kosarak() -> NDArray[np.int64]:
    """How often each item of the filtered click streams occurs, in falling order (2605,)."""
    return np.sort(table("kosarak_5_25_item_counts.csv.gz")["count"].astype(np.int64))[::-1]
