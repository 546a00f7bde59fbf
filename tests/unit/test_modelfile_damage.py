"""Files that are damaged, or made by a stranger, are refused in one sentence."""

import hashlib
import json
import pickle
import sys
from contextlib import suppress

import pytest
from modelfiles import problem, resealed, run_program, same

from sparsebayes import SparseBayesRegressor
from sparsebayes.export import ModelFileError, load, save


@pytest.mark.skipif(sys.platform != "linux", reason="limits and audits as Linux has them")
class TestMutatedCopies:
    """Loaded in a process with a limit on memory that ends at the first thing run, imported or written."""

    @pytest.fixture
    def small(self, path):
        """A file of a few thousand bytes, so that the copies can be many."""
        save(SparseBayesRegressor().fit(*problem()), path)
        return path

    def test_ten_thousand_torn_copies_are_the_same_model_or_refused(self, small):
        became = run_program("mutate_modelfile.py", small, 10_000, "torn")
        assert became["loaded"] + became["refused"] == 10_000
        # Spaces at the end, and the version of the library, are no part of the model.
        assert 0 < became["loaded"] < 2_000

    def test_two_thousand_strangers_do_no_harm(self, small):
        became = run_program("mutate_modelfile.py", small, 2_000, "stranger")
        assert became["loaded"] + became["refused"] == 2_000
        assert became["loaded"] > 0


class TestDamagedFiles:
    @pytest.mark.parametrize("field", ["format", "version", "sparsebayes", "sha256", "payload"])
    def test_a_missing_field(self, field, saved):
        *_, path = saved
        document = json.loads(path.read_text())
        del document[field]
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match=path.name):
            load(path)

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"", "JSON"),
            (b"\x89PNG\r\n\x1a\n\x00", "JSON"),
            (pickle.dumps([1]), "JSON"),
            (b"[]", "format"),
            (b'{"format": "other"}', "format"),
            (b'{"format": "sparsebayes-model", "version": 2}', "version is 2"),
            (b'{"format": "sparsebayes-model", "version": true}', "version is True"),
            (b"[" * 100_000, "nested too deeply"),
            (b'{"a":' * 100_000, "nested too deeply"),
            (b"NaN", "JSON"),
            (b"1" * 10_000, "JSON"),
        ],
        ids=range(11),
    )
    def test_other_content(self, content, match, path):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=match):
            load(path)

    def test_no_file(self, path):
        with pytest.raises(FileNotFoundError):
            load(path)


def array(**changes):
    return {"$array": {"dtype": "f8", "shape": [1], "order": "C", "base64": "AAAAAAAAAAA="} | changes}


def text_array(**changes):
    return {"$array": {"dtype": "U3", "shape": [2], "order": "C", "items": ["a", "b"]} | changes}


@pytest.mark.parametrize(
    "node",
    [
        array(dtype="O"),
        array(dtype="V8"),
        array(dtype="c16"),
        array(dtype="f4"),
        array(dtype=8),
        array(shape=[2]),
        array(shape=[-1]),
        array(shape=[True]),
        array(shape=[1.0]),
        array(shape=[2**62, 2**62]),
        array(shape=[0, 2**70]),
        array(shape=[1] * 100),
        array(shape=None),
        array(order="K"),
        array(base64="AAAA"),
        array(base64="not base64!"),
        array(base64=None),
        array(base64=["AAAAAAAAAAA="]),
        array(dtype="b1", shape=[8], base64="AgAAAAAAAAA="),
        array(extra=1),
        text_array(dtype="U0"),
        text_array(dtype="U4000000000"),
        text_array(dtype="S3"),
        text_array(dtype="U٣"),
        text_array(items=["a", 1]),
        text_array(items="ab"),
        text_array(shape=[3]),
        {"$array": []},
        {"$array": None},
        {"$scalar": array()["$array"]},
        {"$float": "1.0"},
        {"$float": []},
        {"$tuple": {"a": 1}},
        {"$dict": [["a"]]},
        {"$dict": [[None, 2]]},
        {"$dict": [[[], 2]]},
        {"$dict": 3},
        {"$unknown": 1},
        {"$tuple": [], "$float": "inf"},
        {"$tuple": [], "other": 1},
        {"$enum": {"class": "Status", "member": "NONE"}},
        {"$enum": {"class": "Status", "member": "converged"}},
        {"$enum": {"class": "os", "member": "system"}},
        {"$enum": {"class": ["Status"], "member": "CONVERGED"}},
        {"$dataclass": {"class": "Record", "fields": {}}},
        {"$dataclass": {"class": "Record", "fields": {"other": 1}}},
        {"$dataclass": {"class": "Popen", "fields": {}}},
        {"$solver": {"class": "Sequential", "parameters": {"other": 1}}},
        {"$solver": {"class": "Sequential", "parameters": []}},
        {"$solver": {"class": "RVR", "parameters": {}}},
        {"$basis": {"kind": "callable", "parameters": {"function": "os.system"}}},
        {"$basis": {"kind": "nowhere", "parameters": {}}},
        {"$basis": {"kind": "rbf", "parameters": {"other": 1}}},
        {"$sum": []},
        {"$sum": [1]},
        {"$functions": {"n_features": 0, "parts": []}},
        {"$functions": {"n_features": 1, "parts": [[]]}},
        {"$functions": {"n_features": 1, "parts": [3]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "linear", "feature": 1}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "linear", "feature": 2**70}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "callable", "function": "f", "centre": [0.0]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "rbf", "width": 1.0, "centre": [0.0, 1.0]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "rbf", "width": array(), "centre": [0.0]}] * 2]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "polynomial", "powers": [10**12]}]]}},
        {"$functions": {"n_features": 1, "parts": [[{"kind": "polynomial"}]]}},
    ],
    ids=lambda node: json.dumps(node)[:60],
)
def test_a_stranger_gets_one_sentence(node, saved):
    *_, path = saved

    def change(payload):
        payload["estimator"]["state"]["extra_"] = node
        return payload

    resealed(path, change)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("levels", [100, 300, 500, 700, 800, 900, 5000, 100_000])
def test_deep_nesting_is_no_crash(levels, saved):
    *_, path = saved
    document = json.loads(path.read_text())
    document["payload"]["estimator"]["state"]["extra_"] = "HERE"
    text = json.dumps(document["payload"], separators=(",", ":")).replace('"HERE"', "[" * levels + "]" * levels)
    document |= {"sha256": hashlib.sha256(text.encode()).hexdigest(), "payload": "HERE"}
    path.write_text(json.dumps(document).replace('"HERE"', text))
    # How deep is too deep depends on how deep the caller is; a handful of levels never is.
    if levels == 100:
        assert load(path).extra_
        return
    with suppress(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"estimator": {}, "metadata": None},
        {"estimator": {"class": "Pipeline", "state": {}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": []}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {"predict": 1}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {"__class__": "RVR"}}, "metadata": None},
        {"estimator": {"class": "RVR", "state": {}}, "metadata": [1]},
    ],
    ids=range(8),
)
def test_a_payload_that_is_no_model(payload, saved):
    *_, path = saved
    resealed(path, lambda _: payload)
    with pytest.raises(ModelFileError):
        load(path)


def test_a_parameter_that_the_file_does_not_know_gets_its_default(saved):
    est, X, path = saved

    def change(payload):
        del payload["estimator"]["state"]["degree"]
        return payload

    resealed(path, change)
    assert load(path).degree == 3
    assert same(load(path).predict(X), est.predict(X))
