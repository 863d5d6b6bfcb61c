"""An engine accepts columns of a type that is refused when reports are read one by one.

Defence: `ldpkit summarize`, `summarize_dataset`, `count_dataset`: columns of other types are read row by
row, and refused with the same message.
"""

from __future__ import annotations

import pyarrow
import pyarrow.parquet
import pytest

from ldp_client.documents.errors import InputError
from summaries import summarize_dataset
from summaries.reading import summarize_files
from tests.kit.errors import raises
from tests.summaries.engines_data import REPORTS, STUDY, table

SOME = table(REPORTS[:20])


def changed(name, values):
    return SOME.set_column(SOME.schema.get_field_index(name), name, values)


def texts(payloads):
    return {name: payload and payload.decode("latin1") for name, payload in payloads.items()}


OTHERWISE = {
    "payloads are text": changed(
        "payloads", pyarrow.array([texts(one) for one in SOME["payloads"].to_pylist()])
    ),
    "ids are bytes": changed("report_id", SOME["report_id"].cast(pyarrow.binary()).combine_chunks()),
    "the version is true": changed("version", pyarrow.array([True] * 20)),
    "the version is a word for true": changed("version", pyarrow.array([True] * 20).dictionary_encode()),
}


@pytest.mark.parametrize("found", OTHERWISE.values(), ids=OTHERWISE)
def test_engine_rejects_column_types_that_the_row_reader_rejects(found, tmp_path):
    path = str(tmp_path / "x.parquet")
    pyarrow.parquet.write_table(found, path)
    with raises(InputError, "reports.many_refused", "20 of 20") as wanted:
        summarize_files(STUDY, [path])
    with pytest.raises(InputError) as refused:
        summarize_dataset(STUDY, path, workers=1)
    assert str(refused.value) == str(wanted.value)
