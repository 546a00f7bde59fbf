"""The C file compiles without a warning, and its numbers are those of predict."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from exported import CLASSIFICATIONS, N_ROWS, REGRESSIONS, ROWS, X, Y, expected, far_out, model, rows

from sparsebayes import RVC, SparseBayesRegressor
from sparsebayes.export import to_c

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
WARNINGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wmissing-prototypes"]
FLAGS = [*WARNINGS, "-O1", "-shared", "-fPIC"]
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")

REGRESSION = """
void drive(const double *x, int n, double *mean, double *std);
void drive(const double *x, int n, double *mean, double *std)
{
    for (int i = 0; i < n; ++i) {
        model_predict(x + i * MODEL_INPUTS, mean + i * MODEL_OUTPUTS, std ? std + i * MODEL_OUTPUTS : 0);
    }
}
"""
CLASSIFICATION = """
void drive(const double *x, int n, double *probabilities, double *label);
void drive(const double *x, int n, double *probabilities, double *label)
{
    for (int i = 0; i < n; ++i) {
        label[i] = model_predict(x + i * MODEL_INPUTS, probabilities + i * MODEL_CLASSES);
    }
}
"""


def compile_model(source, folder):
    path = folder / "model.c"
    path.write_text(source, encoding="ascii")
    subprocess.run([COMPILER, *FLAGS, "-o", folder / "model.so", path, "-lm"], check=True, timeout=60)
    return ctypes.CDLL(str(folder / "model.so"))


def drive(library, rows, *results):
    double = ctypes.POINTER(ctypes.c_double)
    rows = np.ascontiguousarray(rows)
    arrays = [None if result is None else result.ctypes.data_as(double) for result in results]
    library.drive(rows.ctypes.data_as(double), len(rows), *arrays)


@needs_compiler
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_agree(name, tmp_path):
    library = compile_model(to_c(model(name)) + REGRESSION, tmp_path)
    mean, std = (np.full_like(values, np.nan) for values in expected(name))
    drive(library, rows(name), mean, std)
    np.testing.assert_allclose(mean, expected(name)[0], **TOLERANCE)
    np.testing.assert_allclose(std, expected(name)[1], **TOLERANCE)
    alone = np.full_like(mean, np.nan)
    drive(library, rows(name)[:5], alone, None)
    np.testing.assert_array_equal(alone[:5], mean[:5])


@needs_compiler
@pytest.mark.parametrize("name", CLASSIFICATIONS)
def test_classifications_agree(name, tmp_path):
    library = compile_model(to_c(model(name)) + CLASSIFICATION, tmp_path)
    labels, probabilities = expected(name)
    said, places = np.full_like(probabilities, np.nan), np.full(N_ROWS, np.nan)
    drive(library, ROWS, said, places)
    np.testing.assert_allclose(said, probabilities, **TOLERANCE)
    np.testing.assert_array_equal(model(name).classes_[places.astype(int)], labels)


@needs_compiler
def test_names_are_data_whatever_they_are(tmp_path):
    """Text from a table must not become code: quotes, comments, trigraphs, escapes, other alphabets."""
    pandas = pytest.importorskip("pandas", reason="needs the extra files")
    names = ['a"; system("x"); "', "*/ /* ??/", "\\\n% ä 漢"]
    classes = np.array(['"', "\\0"])
    est = RVC().fit(pandas.DataFrame(X, columns=names), classes[(Y > 0.3).astype(int)])
    library = compile_model(to_c(est, name="model") + CLASSIFICATION, tmp_path)
    inputs = (ctypes.c_char_p * 3).in_dll(library, "model_input_names")
    assert [text.decode() for text in inputs] == names
    labels = (ctypes.c_char_p * 2).in_dll(library, "model_class_names")
    assert [text.decode() for text in labels] == classes.tolist()


def test_the_file_needs_nothing_and_allocates_nothing():
    for name in (*REGRESSIONS, *CLASSIFICATIONS):
        source = to_c(model(name))
        assert re.findall(r"#include.*", source) == ["#include <math.h>"]
        assert not re.search(r"\b(malloc|calloc|realloc|alloca|free)\b", source)


def test_two_models_live_in_one_program():
    source = to_c(model("rbf"), name="other_2")
    assert "void other_2_predict(" in source
    assert not re.search(r"\bmodel_", source)


@pytest.mark.parametrize("name", ["", "2x", "a b", "a-b", "_x", "ä", "a" * 32, None, "x\n"])
def test_a_name_that_is_no_identifier(name):
    with pytest.raises(ValueError, match="name="):
        to_c(SparseBayesRegressor().fit(X, Y), name=name)


@needs_compiler
@pytest.mark.parametrize("settings", [{}, {"multi_class": "ovr"}, {"classes": 2}], ids=["softmax", "ovr", "two"])
def test_classes_far_out_have_the_probabilities_of_predict_proba(settings, tmp_path):
    fitted, far = far_out(**settings)
    library = compile_model(to_c(fitted) + CLASSIFICATION, tmp_path)
    expected = fitted.predict_proba(far)
    said, places = np.full_like(expected, np.nan), np.full(len(far), np.nan)
    drive(library, far, said, places)
    np.testing.assert_allclose(said, expected, **TOLERANCE)
    np.testing.assert_array_equal(fitted.classes_[places.astype(int)], fitted.predict(far))
