"""Metrics, losses and kernels of scikit-learn as their users call them: slopes are those of differences."""

import numpy as np
import pytest

import yota
from tests.tracing.checking import check

pytest.importorskip("sklearn")

from sklearn import metrics
from sklearn._loss import loss as losses
from sklearn.gaussian_process import kernels
from sklearn.linear_model._linear_loss import LinearModelLoss
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

RANDOM = np.random.default_rng(1)
Y, P, W = RANDOM.uniform(0.5, 3.0, 7), RANDOM.uniform(0.5, 3.0, 7), RANDOM.uniform(0.5, 2.0, 7)
X, RAW = RANDOM.standard_normal((7, 3)), RANDOM.standard_normal((7, 3))
LABELS = np.array([0, 1, 2, 1, 0, 2, 2])
TRUTHS = np.array([0, 1, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    "metric",
    [
        lambda y, p, w: metrics.mean_squared_error(y, p, sample_weight=w),
        lambda y, p, w: metrics.r2_score(y, p),
        lambda y, p, w: metrics.mean_tweedie_deviance(y, p, power=1.5),
        lambda y, p, w: metrics.log_loss(TRUTHS, p / 4, sample_weight=w),
        lambda y, p, w: metrics.brier_score_loss(TRUTHS, p / 4),
        lambda y, p, w: metrics.d2_pinball_score(y, p, alpha=0.3),
        lambda y, p, w: metrics.pairwise.chi2_kernel(y[:, None], p[:, None], gamma=w[0]),
        lambda y, p, w: metrics.pairwise.haversine_distances(np.stack([y, p], axis=1), np.stack([w, y], axis=1)),
        lambda y, p, w: metrics.pairwise_distances_argmin_min(y[:3, None], w[:, None])[1],
        lambda y, p, w: metrics.davies_bouldin_score(np.stack([y, p], axis=1), [0, 0, 0, 1, 1, 1, 2]),
        lambda y, p, w: StandardScaler().fit_transform(np.stack([y, p, w], axis=1)),
    ],
)
def test_metrics(metric):
    check(metric, Y, P, W)


@pytest.mark.parametrize(
    "loss",
    [
        losses.HalfSquaredError(),
        losses.PinballLoss(quantile=0.3),
        losses.HuberLoss(delta=0.4),
        losses.HalfPoissonLoss(),
        losses.HalfGammaLoss(),
        losses.HalfTweedieLoss(1.5),
        losses.HalfTweedieLossIdentity(1.5),
        losses.HalfTweedieLossIdentity(2.0),
        losses.ExponentialLoss(),
    ],
)
def test_losses(loss):
    check(lambda p: loss.loss_gradient(Y, p, W), P)
    check(lambda p: loss.gradient_hessian(Y, p)[:1], P)
    np.testing.assert_allclose(loss.gradient_hessian(Y, P)[1], _curvature(loss), rtol=1e-12)


def _curvature(loss):
    return yota.trace(lambda p: loss.gradient_hessian(Y, p)[1], P)[0]


def test_a_linear_model():
    labels = LABELS.astype(float)
    model = LinearModelLoss(losses.HalfMultinomialLoss(n_classes=3), fit_intercept=True)
    check(lambda w: model.loss(w, X, labels, l2_reg_strength=0.1), RAW[:4].T, second=True)
    check(lambda w: model.loss_gradient(w, X, labels)[1], RAW[:4].T)


def test_a_fitted_model():
    fitted = GaussianMixture(2, random_state=0).fit(RANDOM.standard_normal((20, 3)))
    check(lambda x: fitted.score_samples(x), X)


def test_kernels():
    check(lambda x, c: (kernels.ConstantKernel(c) * kernels.RBF(0.7) + kernels.WhiteKernel(0.1))(x), X, 1.3)
    check(lambda x, c: kernels.Matern(c, nu=1.5)(x, X[:2]), X + 0.1, 0.8)
    kernel = kernels.ExpSineSquared()
    theta = kernel.theta + 0.1
    recorded, _ = yota.trace(lambda t, x: kernel.clone_with_theta(t)(x), theta, X)
    np.testing.assert_allclose(recorded, kernel.clone_with_theta(theta)(X), rtol=1e-13)
