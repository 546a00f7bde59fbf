"""A file is written whole or not at all."""

import os
import stat

import pytest
from modelfiles import run_program

from sparsebayes.export import load, save


class TestWriting:
    @pytest.mark.parametrize("function", ["replace", "fsync"])
    def test_a_failure_leaves_the_old_file(self, function, saved, monkeypatch):
        est, _, path = saved
        before = path.read_bytes()

        def fail(*args):
            raise OSError("disk full")

        monkeypatch.setattr(os, function, fail)
        with pytest.raises(OSError, match="disk full"):
            save(est, path, metadata={"other": 1})
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]

    def test_an_interrupt_leaves_no_trace(self, saved, monkeypatch):
        est, _, path = saved

        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(est, path)
        assert list(path.parent.iterdir()) == [path]

    def test_permissions_are_those_of_any_file(self, saved, tmp_path):
        est, _, path = saved
        (tmp_path / "plain").touch()
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
        path.chmod(0o640)
        save(est, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, saved, tmp_path):
        est, _, path = saved
        link = tmp_path / "latest"
        link.symlink_to(path)
        save(est, link, metadata={"new": True})
        assert link.is_symlink()
        assert load(path, with_metadata=True)[1] == {"new": True}

    def test_places_where_no_file_can_be(self, saved, tmp_path):
        est, *_ = saved
        with pytest.raises(FileNotFoundError, match="create it first"):
            save(est, tmp_path / "nowhere" / "a.model")
        with pytest.raises(IsADirectoryError, match="folder"):
            save(est, tmp_path)
        with pytest.raises(OSError, match="regular file"):
            save(est, os.devnull)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
    def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(self, saved, tmp_path):
        est, _, path = saved
        new, target = tmp_path / "new.model", tmp_path / "target.model"
        save(est, new)
        found = run_program("kill_save.py", path, new, target)
        assert found["torn"] == 0
        assert found["old"] > 0
        assert found["new"] > 0
        # Every line that opens, writes, syncs or renames was a moment to die at.
        assert found["lines"] > 20
