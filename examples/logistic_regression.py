"""Logistic regression on the breast-cancer data: a loss in plain NumPy, its gradient from yota, SciPy's optimiser."""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import yota


def load():
    """569 tumours: thirty standardised measurements each, and +1 for a benign one, -1 for a malignant one."""
    measurements, benign = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(measurements), np.where(benign == 1, 1.0, -1.0)


def fit(X, y, C):
    """Weights and intercept that minimise ``|w|**2 / 2 + C * sum(log(1 + exp(-y (X w + b))))``."""

    def loss(parameters):
        weights, intercept = parameters[:-1], parameters[-1]
        margins = y * (X @ weights + intercept)
        return 0.5 * np.sum(weights**2) + C * np.sum(np.logaddexp(0.0, -margins))

    start = np.zeros(X.shape[1] + 1)
    return minimize(
        yota.value_and_grad(loss), start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", type=float, default=1.0, help="inverse strength of the regularisation (default: 1)")
    options = parser.parse_args()

    X, y = load()
    found = fit(X, y, options.C)
    weights, intercept = found.x[:-1], found.x[-1]
    reference = LogisticRegression(C=options.C, tol=1e-10, max_iter=10_000).fit(X, y)
    difference = max(np.max(np.abs(weights - reference.coef_[0])), abs(intercept - reference.intercept_[0]))
    accuracy = np.mean(np.sign(X @ weights + intercept) == y)

    print(f"loss at the optimum          {found.fun:.6f} after {found.nit} iterations, {found.nfev} gradients")
    print(f"accuracy                     {accuracy:.1%}")
    print(f"largest difference from scikit-learn's parameters {difference:.1e}")
    assert difference < 1e-4, "the optimum is not scikit-learn's"


if __name__ == "__main__":
    main()
