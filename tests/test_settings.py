"""Settings of the process: `yota.configure` and the environment are one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError


def test_configure_sets_the_environment_and_takes_it_back(tmp_path, monkeypatch):
    monkeypatch.setenv("YOTA_NUM_THREADS", "3")
    monkeypatch.delenv("YOTA_TARGET", raising=False)
    with yota.configure(target="c", threads=2, cache=tmp_path) as settings:
        assert (settings.target, settings.threads, settings.cache) == ("c", 2, tmp_path)
        assert os.environ["YOTA_NUM_THREADS"] == "2"
        with yota.configure(cache=False, threads=None):
            assert (settings.threads, settings.cache) == (None, None)
        assert settings.cache == tmp_path
    assert (yota.configure().target, yota.configure().threads) == ("numpy", 3)
    assert "YOTA_TARGET" not in os.environ


def test_the_target_of_the_process_is_the_default(monkeypatch):
    fg = yota.gradient(np.sum)
    monkeypatch.setenv("YOTA_TARGET", "c")
    assert "target c" in repr(yota.gradient(np.sum)) and "target numpy" in repr(fg)
    assert "target numpy" in repr(yota.gradient(np.sum, target="numpy"))
    # Sizes with names are for NumPy code alone.
    assert "target numpy" in repr(yota.gradient(np.sum, args=["float64[N]"]))
    monkeypatch.setenv("YOTA_TARGET", "fortran")
    with pytest.raises(ArgumentError, match=r"YOTA_TARGET='fortran' is not known"):
        yota.gradient(np.sum)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target": "C"}, "target='C' is not known"),
        ({"threads": 0}, "threads=0: give a positive integer"),
        ({"threads": True}, "threads=True"),
        ({"cache": ""}, "cache='': give the path"),
        ({"cache": 3}, "cache=3"),
    ],
)
def test_wrong_settings_change_nothing(wrong, said, monkeypatch):
    monkeypatch.delenv("YOTA_TARGET", raising=False)
    before = dict(os.environ)
    with pytest.raises(ArgumentError, match=said):
        yota.configure(**{"target": "c", **wrong})
    assert dict(os.environ) == before


def test_a_folder_is_found_from_another_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with yota.configure(cache="here") as settings:
        assert settings.cache == Path(tmp_path, "here")
