"""Small programs as scientists write them: loops, recursion, classes, views; against central differences, both ways."""

from __future__ import annotations

import collections
import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import yota

RNG = np.random.default_rng(7)
SIX, POINTS, IMAGE = RNG.normal(size=6), RNG.normal(size=(5, 3)), RNG.normal(size=(7, 8))
SERIES = RNG.normal(1.0, 2.0, size=12)


def manipulator(angles):
    """The tool of an arm."""
    pose = np.eye(4)
    for i, angle in enumerate(angles):
        c, s, twist = np.cos(angle), np.sin(angle), [0.0, np.pi / 2, -np.pi / 2][i % 3]
        joint = np.zeros((4, 4))
        joint[0] = [c, -s * np.cos(twist), s * np.sin(twist), 0.3 * c]
        joint[1] = [s, c * np.cos(twist), -c * np.sin(twist), 0.3 * s]
        joint[2, 1:] = np.sin(twist), np.cos(twist), 0.1
        joint[3, 3] = 1.0
        pose = pose @ joint
    return np.linalg.norm(pose[:3, 3] - 0.2) ** 2 + pose[0, 1]


def interpolated_rotation(p, q, t):
    p, q = p / np.linalg.norm(p), q / np.sqrt(q @ q)
    if (d := np.dot(p, q)) < 0:
        q, d = -q, -d
    angle = np.arccos(d)
    return (np.sin((1 - t) * angle) * p + np.sin(t * angle) * q) @ np.arange(4.0) / np.sin(angle)


def dihedral_angle(p):
    back, axis, ahead = p[0] - p[1], p[2] - p[1], p[3] - p[2]
    axis /= np.linalg.norm(axis)
    v, w = (each - np.dot(each, axis) * axis for each in (back, ahead))
    return np.arctan2(np.dot(np.cross(axis, v), w), np.dot(v, w))


def pendulum_in_place(y):
    y = np.array(y)
    for _ in range(6):
        k = np.zeros((4, 2))
        for stage, c in enumerate([0, 0.5, 0.5, 1]):
            z = y + c * 0.1 * (k[stage - 1] if stage else 0)
            k[stage] = [z[1], -np.sin(z[0])]
        y += 0.1 / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    return y[0] * y[1]


def stiff_step(y):
    z = y
    for _ in range(4):
        rate = np.array([-z[0] + z[1] * z[2], z[0] - z[1] * z[2] - z[1] ** 2, z[1] ** 2])
        slope = np.array([[-1, z[2], z[1]], [1, -z[2] - 2 * z[1], -z[1]], [0, 2 * z[1], 0]])
        z = z - np.linalg.solve(np.eye(3) - 0.1 * slope, z - y - 0.1 * rate)
    return np.dot(z, [1, 2, 3])


def diffusion(u):
    u = u.copy()
    for _ in range(3):
        new = u.copy()
        new[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u = new
    return np.mean(u**2)


def cholesky_by_hand(B):
    A = B @ B.T + 4 * np.eye(3)
    L = np.zeros_like(A)
    for i, j in itertools.product(range(3), repeat=2):
        if j <= i:
            s = A[i, j] - L[i, :j] @ L[j, :j]
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
    return 2 * np.sum(np.log(np.diag(L))) + L[2, 1]


def expansion_by_minors(A):
    if len(A) == 1:
        return A[0, 0]
    return sum((-1) ** j * A[0, j] * expansion_by_minors(np.delete(A[1:], j, axis=1)) for j in range(len(A)))


def extrapolated_integral(a, b):
    f, R, h = (lambda x: 1 / (1 + x**2)), np.zeros((4, 4)), b - a
    R[0, 0] = h / 2 * (f(a) + f(b))
    for i in range(1, 4):
        h /= 2
        R[i, 0] = R[i - 1, 0] / 2 + h * sum(f(a + (2 * k - 1) * h) for k in range(1, 2 ** (i - 1) + 1))
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[3, 3]


def thin_film(n, wavelength):
    M = np.eye(2, dtype=complex)
    for index, depth in zip(n, [0.1, 0.2, 0.15], strict=True):
        phase = 2 * np.pi * index * depth / wavelength
        M = M @ np.array([[np.cos(phase), 1j * np.sin(phase) / index], [1j * index * np.sin(phase), np.cos(phase)]])
    above, below = M[0] @ [1, 1.5], M[1] @ [1, 1.5]
    return abs((above - below) / (above + below)) ** 2


def kalman_filter(noise):
    q, r, mean, variance, total = np.exp(noise[0]), math.exp(noise[1]), 0.0, 1.0, 0.0
    for seen in SERIES:
        mean, variance = 0.9 * mean, 0.81 * variance + q
        spread, error = variance + r, seen - mean
        total += 0.5 * (np.log(2 * np.pi * spread) + error * error / spread)
        mean += variance / spread * error
        variance *= 1 - variance / spread
    return total


def hidden_states(logits, means):
    A = np.exp(logits)
    A /= A.sum(1, keepdims=True)
    state, total = np.array([0.5, 0.5]), 0.0
    for seen in SERIES[:6]:
        state = (state @ A) * np.exp(-0.5 * (seen - means) ** 2)
        total = total + np.log(scale := state.sum())
        state = state / scale
    return total


def robust_weights(z):
    u, out = z / 4, np.zeros_like(z)
    inside = np.abs(u) < 0.5
    out[inside] = (1 - u[inside] ** 2) ** 3
    out[~inside] = 0.1 * u[~inside]
    return out.sum()


def assembled_bar(k):
    K = np.zeros((5, 5))
    for e in range(4):
        K[e : e + 2, e : e + 2] += k[e] ** 2 * np.array([[1, -1], [-1, 1]])
    u = np.linalg.solve(K[1:, 1:], np.array([0, 0, 0, 1.0]))
    return u[-1] + u[1] ** 2


def scattered_forces(u):
    ends, f = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]), np.zeros(6)
    np.add.at(f, ends[:, 0], u[ends[:, 1]] ** 2)
    np.subtract.at(f, ends[:, 1], u[ends[:, 0]])
    return f @ f


def pooled(u):
    blocks = u[:6].reshape(3, 2, 4, 2)
    sums = u.cumsum(0).cumsum(1)
    return np.sum(blocks.max(axis=(1, 3)) ** 2) + np.sum((sums[3:, 3:] - sums[:-3, 3:]) ** 2)


def aliases(x):
    y = x.copy()
    view, every = y[1:4], y[::2]
    every *= 2
    y[2] = 100 * x[0]
    view[0] = view[1]
    y[1:] += y[:-1]
    M = np.outer(y, y)[:4, :4]
    T = M.T
    T[0] = T[1] * 2
    M[[0, 1]], M[:, [2, 3]] = M[[1, 0]], M[:, [3, 2]]
    row = M[0]
    M[0] = M[1]
    M[1] = row
    return np.sum(M * np.arange(16).reshape(4, 4)) + view.sum() * every[-1]


def containers(x):
    groups: Any = collections.defaultdict(float)
    window: Any = collections.deque(maxlen=3)
    total = 0.0
    for i, v in enumerate(x):
        groups[i % 3] += v**2
        window.append(v)
        total += sum(window) / len(window) * v
    values = x.tolist()
    values.append(values.pop(0))
    values.insert(2, values[-1] * 2)
    values.sort(key=abs)
    return math.prod(groups.values()) + total + sum(a * b for a, b in zip(values, itertools.count(1)))


class Tree(NamedTuple):
    value: Any
    left: Any = None
    right: Any = None


@dataclass(frozen=True)
class Body:
    at: Any
    velocity: Any
    mass: float = 2.0

    def moved(self, step):
        return replace(self, at=self.at + step * self.velocity, velocity=self.velocity - step * self.at)

    @functools.cached_property
    def energy(self):
        return 0.5 * self.mass * self.velocity @ self.velocity


def records(x):
    def total(tree):
        return 0.0 if tree is None else tree.value * (1 + total(tree.left)) + total(tree.right) ** 2

    body = Body(x[:3], x[3:])
    for _ in range(3):
        body = body.moved(0.1)
    return body.energy + total(Tree(x[0], Tree(x[1], Tree(x[2])), Tree(x[3], None, Tree(x[4]))))


PROGRAMS = [
    (manipulator, SIX[:3]),
    (interpolated_rotation, SIX[:4], SIX[2:], 0.3),
    (dihedral_angle, POINTS),
    (pendulum_in_place, SIX[:2]),
    (stiff_step, np.array([0.5, 0.4, 0.1])),
    (diffusion, IMAGE),
    (cholesky_by_hand, POINTS[:3]),
    (expansion_by_minors, IMAGE[:4, :4]),
    (extrapolated_integral, 0.4, 2.0),
    (thin_film, np.array([1.3, 1.7, 1.45]), 0.55),
    (kalman_filter, SIX[:2]),
    (hidden_states, IMAGE[:2, :2], SIX[:2]),
    (robust_weights, SERIES),
    (assembled_bar, SIX[:4] + 2),
    (scattered_forces, SIX),
    (pooled, IMAGE),
    (aliases, SIX),
    (containers, SIX),
    (records, SIX),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_programs(program):
    f, *args = program
    args = [np.array(each) if isinstance(each, np.ndarray) else each for each in args]
    value, _ = yota.grad(f, *args)
    np.testing.assert_allclose(value, f(*args), rtol=1e-11)
    assert yota.gradcheck(f, *args)
    np.testing.assert_allclose(yota.itrace(f, *args)[1].play(*args), f(*args), rtol=1e-12)
