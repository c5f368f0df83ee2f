"""Structures that a function reads are compared by content, in time that is linear in their distinct parts."""

from __future__ import annotations

import numpy as np

import yota
from yota.tracing.captured.checks import Fingerprint, fingerprint

TABLE: list = [2.0, np.ones(3)]
for _ in range(60):
    TABLE = [TABLE, TABLE]
DEEP = {"table": TABLE}


def scaled(x):
    value = DEEP["table"]
    while len(value) == 2 and type(value[0]) is list:
        value = value[0]
    return np.sum(x * value[0])


def test_shared_parts_are_looked_at_once():
    slope = yota.gradient(scaled)
    assert slope(np.ones(2)).tolist() == [2.0, 2.0]
    value = DEEP["table"]
    while type(value[0]) is list:
        value = value[0]
    value[0] = 3.0
    assert slope(np.ones(2)).tolist() == [3.0, 3.0]


def test_equal_content_has_equal_fingerprints():
    known = np.ones(3)
    one, other = ({"a": [1.0, (known, "b")], "c": {2}} for _ in range(2))
    assert fingerprint(one) == fingerprint(other)
    other["a"][1] = (known, "d")
    assert fingerprint(one) != fingerprint(other)
    other["a"][1] = (np.ones(3), "b")
    assert fingerprint(one) != fingerprint(other)


def test_a_structure_may_contain_itself():
    ring: list = [1.0]
    ring.append(ring)
    found = fingerprint(ring)
    assert type(found) is Fingerprint
    assert [each is ring for each in found.objects(set())] == [True]
