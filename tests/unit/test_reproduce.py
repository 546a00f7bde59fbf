"""``sparsebayes reproduce``: verdicts, the list, data that is missing, files, and the page made from them."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import call, fail, succeed

import sparsebayes.studies.registry as registry
from sparsebayes.cli import reproducing
from sparsebayes.datasets import DatasetNotFoundError
from sparsebayes.studies.framework import (
    BESIDE,
    EQUAL,
    HIGHER,
    LOWER,
    Outcome,
    Row,
    Study,
    Verdict,
    of_mean_count,
    of_rate,
    of_squares,
)
from sparsebayes.studies.old_rvm import fit_old_rvm
from sparsebayes.studies.page import UNEXPLAINED, title
from sparsebayes.studies.reproduction import as_json, record, run_study


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def study(run, name="made-up", draw=lambda figure, data: figure.subplots().plot(data["x"])):
    return Study(name, "A paper", "Fig. 0", "A line.", run, draw, "half of it")


def fine(quick):
    rows = [Row("error", 1.0, 0.9, reduced="2 draws" if quick else ""), Row("by the way", None, 3.0, BESIDE)]
    return Outcome(rows, {"x": np.arange(3.0), "large": np.zeros(10_000), "nan": np.nan})


def worse(quick):
    rows = [
        Row("error", 1.0, 2.0, LOWER, 0.5, "a half", "it | is so", settings="initial=10"),
        Row("vectors", 1.0, 3.0),
    ]
    return Outcome(rows, {"x": [1.0]})


def without_data(quick):
    raise DatasetNotFoundError("Data set 'x' is not at hand.")


def broken(quick):
    raise ZeroDivisionError("by\nzero")


@pytest.fixture
def made_up(monkeypatch):
    """Studies of every fate, in the place of the papers'."""
    fates = {"fine": fine, "worse": worse, "missing": without_data, "broken": broken}
    studies = {name: study(run, name) for name, run in fates.items()}
    for module in (registry, reproducing):
        monkeypatch.setattr(module, "all_studies", lambda: studies)
    monkeypatch.setattr("sparsebayes.studies.page.all_studies", lambda: studies)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("direction", "ours", "verdict"),
        [
            (LOWER, 10.0, Verdict.MET),
            (LOWER, 9.95, Verdict.MET),
            (LOWER, 9.0, Verdict.BETTER),
            (LOWER, 10.01, Verdict.TOLERATED),
            (LOWER, 11.0, Verdict.TOLERATED),
            (LOWER, 11.1, Verdict.WORSE),
            (LOWER, np.nan, Verdict.WORSE),
            (HIGHER, 11.0, Verdict.BETTER),
            (HIGHER, 9.5, Verdict.TOLERATED),
            (HIGHER, 8.0, Verdict.WORSE),
            (EQUAL, 10.9, Verdict.MET),
            (EQUAL, 8.9, Verdict.WORSE),
            (BESIDE, 99.0, Verdict.BESIDE),
            (LOWER, None, Verdict.NOT_RUN),
        ],
    )
    def test_are_about_the_tolerance(self, direction, ours, verdict):
        assert Row("a", 10.0, ours, direction, 1.0).verdict is verdict

    def test_without_tolerance_the_least_loss_is_worse(self):
        assert Row("a", 10.0, 10.001).verdict is Verdict.WORSE

    @pytest.mark.parametrize(("ours", "words"), [(10.0, "the same"), (12.0, "20% more"), (5.0, "50% less")])
    def test_differences_in_words(self, ours, words):
        assert Row("a", 10.0, ours).difference == words

    def test_only_worse_and_failed_are_not_acceptable(self):
        assert Outcome([Row("a", 1.0, 1.5, LOWER, 1.0), Row("b", 1.0, None)]).acceptable
        assert not Outcome([Row("a", 1.0, 1.5)]).acceptable
        assert not Outcome(failed="x").acceptable
        assert Outcome(skipped="x").acceptable


class TestTolerances:
    """None of them sees a figure of ours; each is what simulation says it is."""

    def test_of_a_rate(self):
        rng = np.random.default_rng(0)
        drawn = 100.0 * rng.binomial(1000, 0.1, 20_000) / 1000
        assert of_rate(10.0, 1000)[0] == pytest.approx(2.0 * np.std(drawn), rel=0.02)
        assert of_rate(10.0, 1000, errors=1.0)[0] == pytest.approx(np.std(drawn), rel=0.02)

    def test_of_squares(self):
        rng = np.random.default_rng(0)
        errors = rng.chisquare(8, (20_000, 5)) / 8
        assert of_squares(3.0, 8, 5)[0] == pytest.approx(2.0 * 3.0 * np.std(np.mean(errors, axis=1)), rel=0.02)
        assert of_squares(3.0, 8)[0] == pytest.approx(3.0 * np.std(errors), rel=0.02)
        roots = np.sqrt(rng.chisquare(200, 20_000) / 200)
        assert of_squares(3.0, 200, root=True)[0] == pytest.approx(3.0 * np.std(roots), rel=0.02)

    def test_more_draws_allow_less(self):
        assert of_squares(1.0, 8, 100)[0] < of_squares(1.0, 8, 10)[0]
        assert of_mean_count(40.0)[0] == pytest.approx(2.0)


class TestLikeWithLike:
    def test_a_mean_over_some_sets_is_held_against_the_papers_over_the_same(self):
        from sparsebayes.studies.papers import tipping_classification as table

        found = {"error": 20.0, "vectors": 5.0, "svm_error": 25.0, "svm_vectors": 50.0, "noise": 2.0}
        rows = table._means({"pima_ripley": found}, quick=True)
        judged = [row for row in rows if row.verdict is not Verdict.BESIDE]
        assert [row.paper for row in judged] == pytest.approx([19.6 / 20.1, 4.0 / 109.0])
        assert [row.ours for row in judged] == pytest.approx([20.0 / 25.0, 5.0 / 50.0])
        assert "1 of 8 sets" in judged[0].quantity
        assert [row.ours for row in rows if row.verdict is Verdict.BESIDE] == pytest.approx([20.0 / 20.1, 5.0 / 109.0])

    def test_a_draw_that_fails_makes_no_row_better(self):
        from sparsebayes.studies.papers import tipping_regression as table

        def rows(errors):
            draws = np.column_stack([errors, np.full(len(errors), 5.0)])
            svm = np.tile([1.0, 50.0], (len(errors), 1))
            found = {name: {"cross-validation": draws, "evidence": draws, "SVM": svm} for name in table.RVM}
            return table._means(found, "evidence", "", quick=True)

        good, bad = rows(np.ones(3)), rows(np.array([1.0, 1.0, 50.0]))
        assert good[0].tolerance == bad[0].tolerance
        assert bad[0].verdict is Verdict.WORSE

    def test_one_width_for_one_set(self):
        from sparsebayes.studies.papers import dsouza_figure3, dsouza_tables

        assert dsouza_figure3.choose_width is dsouza_tables.choose_width

    def test_the_header_of_jpeg_is_found(self):
        pytest.importorskip("PIL")
        import io

        from PIL import Image

        from sparsebayes.studies.images import jpeg, jpeg_header

        image = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=50, optimize=True)
        content = file.getvalue()
        header = jpeg_header(content)
        assert content[header - 10 : header - 8] == b"\xff\xda"  # a grey picture's start of scan has ten bytes
        assert 100 < header < 1000
        # What is not counted buys quality.
        assert jpeg(image, 1500, header=False) > jpeg(image, 1500)


class TestList:
    def test_names_every_study_with_its_paper(self):
        output = succeed("reproduce", "--list")
        for name, found in registry.all_studies().items():
            assert name in output
            assert found.caption
            assert found.what
        papers = {found.paper for found in registry.all_studies().values()}
        assert len(papers) == 5

    def test_every_file_of_a_study_is_in_the_list(self):
        files = {path.stem for path in Path(registry.__file__).parent.glob("papers/*.py")} - {"__init__"}
        assert files == set(registry.MODULES)

    def test_for_machines(self):
        assert len(json.loads(succeed("reproduce", "--list", "--json"))) == len(registry.MODULES)


class TestCommand:
    def test_a_wrong_name_is_one_line(self):
        message = fail("reproduce", "tf-fig1", "no-such-study")
        assert "no study is called 'no-such-study'" in message
        assert "tf-fig1" in message

    def test_without_a_name_says_what_to_do(self):
        assert "--list" in fail("reproduce")

    def test_the_rest_go_on(self, made_up):
        pytest.importorskip("matplotlib")
        result = call("reproduce", "all", "--quick", "--out", "out")
        assert result.exit_code == 4
        for words in ("not run: Data set 'x'", "FAILED: ZeroDivisionError: by zero", "better", "worse", "half of it"):
            assert words in result.stdout
        assert {path.name for path in Path("out").glob("fine.*")} == {"fine.json", "fine.png", "fine.svg"}
        assert not Path("out/missing.png").exists()

    def test_missing_data_alone_are_no_failure(self, made_up):
        succeed("reproduce", "fine", "missing", "--out", "out")

    def test_for_machines(self, made_up):
        result = call("reproduce", "fine", "worse", "--json")
        assert result.exit_code == 4
        assert [found["acceptable"] for found in json.loads(result.stdout)["studies"]] == [True, False]

    def test_without_matplotlib(self, made_up, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        assert "sparsebayes[plot]" in succeed("reproduce", "fine", "--out", "out")
        assert Path("out/fine.json").exists()

    def test_the_page_is_made_from_json(self, made_up):
        call("reproduce", "all", "--quick", "--out", "out")
        changed = json.loads(Path("out/fine.json").read_text(encoding="utf-8"))
        changed["rows"][0]["ours"] = 0.1234
        Path("out/fine.json").write_text(json.dumps(changed), encoding="utf-8")
        succeed("reproduce", "--page", "page.md", "--out", "out")
        page = Path("page.md").read_text(encoding="utf-8")
        for words in (
            "0.1234",
            "2 draws",
            "**worse**",
            "it \\| is so",
            "tolerance 0.5: a half",
            "**Not run**",
            "quick",
            "with initial=10",
        ):
            assert words in page
        assert Path("images/page/fine.png").exists()
        assert "![A line.](images/page/fine.png)" in page

    def test_the_page_shows_what_is_worse_with_its_reason(self, made_up):
        call("reproduce", "all", "--quick", "--out", "out")
        succeed("reproduce", "--page", "page.md", "--out", "out")
        page = Path("page.md").read_text(encoding="utf-8")
        section = page.split("## What is worse")[1].split("\n## ")[0]
        for words in ("| error | 1 | 2 | it \\| is so |", f"| vectors | 1 | 3 | {UNEXPLAINED} |", "ZeroDivisionError"):
            assert words in section
        assert "0.9" not in section

    def test_headings_are_figures_of_papers_and_links_find_them(self, made_up, monkeypatch):
        found = {"paper": "Tipping & Faul 2003", "what": "Fig. 1"}
        assert title(found) == "Tipping & Faul 2003, Fig. 1"
        call("reproduce", "fine", "--out", "out")
        succeed("reproduce", "--page", "page.md", "--out", "out")
        page = Path("page.md").read_text(encoding="utf-8")
        assert "\n## A paper, Fig. 0\n" in page
        assert "[A paper, Fig. 0](#a-paper-fig-0)" in page

    def test_a_page_of_nothing_is_refused(self):
        assert "has no study's JSON" in fail("reproduce", "--page", "page.md", "--out", "nowhere")


class TestRecords:
    def test_have_figures_seed_versions_and_machine(self):
        found = json.loads(as_json(record(study(fine), run_study(study(fine), True), True)))
        assert (
            found["rows"][0] | {"paper": 1.0, "ours": 0.9, "verdict": "better", "reduced": "2 draws"}
            == found["rows"][0]
        )
        assert found["seed"] == 0
        assert found["machine"]["packages"]["numpy"]
        assert found["data"] == {"x": [0.0, 1.0, 2.0], "large": {"shape": [10_000]}, "nan": None}
        assert found["left_out"] == "half of it"

    def test_do_not_tell_where_the_data_lie(self, monkeypatch, tmp_path):
        monkeypatch.setenv("SPARSEBAYES_DATA", str(tmp_path))

        def run(quick):
            raise DatasetNotFoundError(f"{tmp_path} has no such file")

        assert str(tmp_path) not in run_study(study(run), True).skipped

    def test_pictures_are_reproducible(self, made_up):
        pytest.importorskip("matplotlib")
        for name in "ab":
            succeed("reproduce", "fine", "--out", name)
        for form in ("png", "svg"):
            assert Path(f"a/fine.{form}").read_bytes() == Path(f"b/fine.{form}").read_bytes()


@pytest.mark.parametrize(("name", "status"), [("tf-fig1", 0), ("bo-fig2", 4)])
def test_a_study_from_end_to_end(name, status):
    """The second has a row that is worse than the paper's beyond its tolerance, and the command says so."""
    pytest.importorskip("matplotlib")
    succeed("reproduce", name, "--quick", status=status)
    found = json.loads(Path(f"reproduction/{name}.json").read_text(encoding="utf-8"))
    assert found["acceptable"] == (status == 0)
    assert ("worse" in [row["verdict"] for row in found["rows"]]) == (status == 4)
    assert Path(f"reproduction/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_sets_that_are_not_at_hand_are_rows_that_were_not_run(monkeypatch):
    from sparsebayes import datasets
    from sparsebayes.studies.papers import bo_table1

    def load(name, *arguments, **options):
        raise DatasetNotFoundError(f"Data set {name!r} is not at hand.")

    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setattr(bo_table1, "_SPLITS", {"sinc": 2, "boston": 2, "abalone": 1})
    outcome = bo_table1.run(quick=True)
    left = [row for row in outcome.rows if row.verdict is Verdict.NOT_RUN]
    assert [row.why for row in left] == [f"Data set {name!r} is not at hand." for name in ("boston_mass", "abalone")]
    assert list(outcome.data) == ["sinc"]


class TestOldMachine:
    def test_regression(self):
        x = np.linspace(-5, 5, 40)[:, None]
        y = np.sin(x[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(40)
        model = fit_old_rvm(x, y, 0.5)
        assert len(model.vectors) < 20
        assert np.mean((model.decision_function(x) - np.sin(x[:, 0])) ** 2) < 0.01

    def test_classes(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 2))
        y = (X[:, 0] > 0).astype(int)
        model = fit_old_rvm(X, y, 0.3, classes=True)
        assert np.mean((model.decision_function(X) > 0) == y) > 0.9
