"""yota's functions in PyTorch, held against PyTorch's own derivatives and against differences."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from yota.errors import ArgumentError, TracingError

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import yota  # noqa: E402
from tests.cuda.device import device  # noqa: E402, F401
from yota.errors import CodegenError  # noqa: E402
from yota.interop.maps import Map  # noqa: E402
from yota.interop.torch import _on_device, primitive, wrap  # noqa: E402


def loss(x: Any, w: Any) -> Any:
    return np.sum(np.tanh(x @ w) ** 2)


def native(x: Any, w: Any) -> Any:
    return (torch.tanh(x @ w) ** 2).sum()


def leaves(dtype: Any = torch.float64) -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(3)
    x = torch.rand(3, dtype=dtype, generator=made)
    # Not contiguous.
    return x.requires_grad_(), torch.rand(2, 3, dtype=dtype, generator=made).T.requires_grad_()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_are_those_of_pytorch(dtype: str) -> None:
    x, w = leaves(getattr(torch, dtype))
    f = wrap(loss)
    for _ in range(2):  # the second time its value and gradient come from one call
        found, wanted = torch.autograd.grad(f(x, w), (x, w)), torch.autograd.grad(native(x, w), (x, w))
        torch.testing.assert_close(found, wanted)
        assert found[0].dtype == x.dtype


def test_twice_differentiable() -> None:
    x, w = leaves()
    f = wrap(loss)
    f(x, w)
    assert gradcheck(f, (x, w), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, (x, w))
    found = torch.autograd.functional.hessian(lambda x: f(x, w.detach()), x.detach())
    torch.testing.assert_close(found, torch.autograd.functional.hessian(lambda x: native(x, w.detach()), x.detach()))


def test_structures_and_integer_results() -> None:
    def parts(p: Any, k: int) -> Any:
        return {"a": np.exp(p["x"]) * p["y"], "at": np.argmax(p["x"]), "b": k * np.cumsum(p["x"])}

    x, _ = leaves()
    y = torch.tensor(2.5, dtype=torch.float64, requires_grad=True)
    found = wrap(parts)({"x": x, "y": y}, 2)
    assert not found["at"].requires_grad and int(found["at"]) == int(torch.argmax(x))
    smooth = lambda x, y: tuple(wrap(parts)({"x": x, "y": y}, 2)[name] for name in "ab")
    assert gradcheck(smooth, (x, y)) and gradgradcheck(smooth, (x, y))


def test_complex_numbers() -> None:
    z = torch.tensor([1 + 2j, 0.3 - 0.1j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(wrap(lambda z: np.exp(z) * (1 + 2j) * np.real(z)), z)
    assert gradgradcheck(wrap(lambda z: np.sum(np.abs(z) ** 2 * np.real(z))), z)
    np.testing.assert_allclose(wrap(lambda z: 2 * z)(z.detach().conj()), 2 * np.conj(z.detach().numpy()))


def test_functional_transformations() -> None:
    x, w = (each.detach() for each in leaves())
    points, f = torch.stack([x, 2 * x]), wrap(loss)
    grad, vmap = torch.func.grad, torch.func.vmap
    torch.testing.assert_close(torch.func.hessian(f)(x, w), torch.func.hessian(native)(x, w))
    torch.testing.assert_close(vmap(grad(f), (0, None))(points, w), vmap(grad(native), (0, None))(points, w))
    total = lambda one: lambda p, w: vmap(one, (0, None))(p, w).sum()
    torch.testing.assert_close(grad(total(f), 1)(points, w), grad(total(native), 1)(points, w))


def test_modules_train_through_it() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)
            self.energy = wrap(lambda h: np.sum(np.sin(h) ** 2, axis=-1))

        def forward(self, x: Any) -> Any:
            return self.energy(self.linear(x)).mean()

    net, x = Net(), torch.rand(7, 3)
    net(x).backward()
    found = net.linear.weight.grad.clone()
    net.zero_grad()
    (torch.sin(net.linear(x)) ** 2).sum(-1).mean().backward()
    torch.testing.assert_close(found, net.linear.weight.grad)
    with torch.no_grad():
        assert not net(x).requires_grad


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_shared() -> None:
    seen: list[int] = []

    def doubled(x: Any) -> Any:
        y = 2 * x
        seen.extend((address(x), address(y)))
        return y

    x = torch.rand(6)[::2]
    y = wrap(doubled)(x)
    assert seen == [x.data_ptr(), y.data_ptr()]


def test_memory_that_somebody_else_has_is_not() -> None:
    kept = np.ones(3)
    for f in (lambda x: kept, lambda x: kept[::1], lambda x: x, lambda x: x[1:], lambda x: np.broadcast_to(2.0, 3)):
        x = torch.ones(3, dtype=torch.float64)
        wrap(f)(x).add_(1)
        assert kept.sum() == 3 and x.sum() == 3
    assert wrap(lambda x: x[::-1] * 2)(torch.arange(3.0)).tolist() == [4.0, 2.0, 0.0]
    assert wrap(lambda x: (x * 2)[::-1])(torch.arange(3.0)).tolist() == [4.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        wrap(lambda x: x.fill(0))(x)


def test_numbers_and_arrays_beside_tensors() -> None:
    assert wrap(lambda x, s: x * s)(torch.ones(2), 2.0).dtype == torch.float32
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    wrap(lambda x, c: np.sum(x * c))(x, np.array([3.0, 4.0])).backward()
    assert x.grad.tolist() == [3.0, 4.0]
    empty = torch.zeros(0, requires_grad=True)
    wrap(lambda x: np.sum(x**2))(empty).backward()
    assert empty.grad.shape == (0,)


def test_what_the_function_captured_may_change() -> None:
    scale = np.array([1.0, 2.0])
    f, x = wrap(lambda x: np.sum(x * scale)), torch.ones(2, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        (found,) = torch.autograd.grad(f(x), x)
        np.testing.assert_array_equal(found, scale)
        scale[:] = 5


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wrap(np.sin)(torch.ones(3, dtype=torch.bfloat16)), r"a tensor of torch\.bfloat16.*x\.float\(\)"),
        (lambda: wrap(np.sin)(torch.eye(3).to_sparse()), r"a tensor of torch\.sparse_coo.*x\.to_dense\(\)"),
        (lambda: wrap(np.sin)(torch.ones(2, device="meta")), "tensors on meta, which NumPy and CuPy do not reach"),
        (
            lambda: torch.autograd.functional.jacobian(wrap(lambda x: np.sin(x) * x[0]), torch.ones(2), vectorize=True),
            r"vectorize=True or is_grads_batched=True.*torch\.func\.jacrev",
        ),
        (lambda: wrap(np.add)(torch.ones(2), torch.ones(2, device="meta")), r"on cpu and meta; move them to one"),
        (lambda: wrap(lambda x: np.longdouble(x))(torch.ones(2)), "which PyTorch does not have"),
        (lambda: wrap(lambda x, s: x)(torch.ones(2), {1}), "a set, which is neither an array nor hashable"),
        (lambda: primitive(lambda x, s: x)(np.ones(2), {1}), "a set, which is neither an array nor hashable"),
    ],
)
def test_what_has_no_way(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
    with pytest.raises(TracingError, match="returned a str"):
        wrap(lambda x: "text")(torch.ones(2))


# -- PyTorch's functions in yota -----------------------------------------------------------------------------


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1)).double().eval()


X = np.array([0.1, 0.2, -0.3])


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_modules_are_primitives(target: Any) -> None:
    net = network()
    f, by_torch = primitive(net), lambda x: (net(torch.sin(x)) ** 2).sum()
    loss = lambda x: np.sum(f(np.sin(x)) ** 2)
    gradient = yota.gradient(loss, target=target)
    assert yota.trace(loss, X)[1].operations["hosted"] == 1
    np.testing.assert_allclose(f(X), net(torch.tensor(X)).detach(), rtol=1e-15)
    for _ in range(2):
        np.testing.assert_allclose(gradient(X), torch.func.grad(by_torch)(torch.tensor(X)).detach(), rtol=1e-12)
        with torch.no_grad():
            net[0].weight.mul_(1.5)


def test_derivatives_of_higher_order_and_many_points() -> None:
    net = network()
    f, by_torch = primitive(net), lambda x: (net(torch.sin(x)) ** 2).sum()
    loss = lambda x: np.sum(f(np.sin(x)) ** 2)
    wanted = torch.func.hessian(by_torch)(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(yota.hessian(loss)(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(yota.hvp(loss)(X, X), wanted @ X, rtol=1e-12)
    many = np.stack([X, 2 * X])
    one = yota.gradient(loss)
    np.testing.assert_allclose(yota.batch(one)(many), [one(X), one(2 * X)], rtol=1e-12)


def test_trees_of_parameters() -> None:
    net = network()
    f = primitive(lambda p, x, k: (torch.func.functional_call(net, p, x), x[k], torch.argmax(x)))

    def loss(p: Any, x: Any) -> Any:
        value, chosen, place = f(p, x, np.array([0, 2]))
        return np.sum(value**2) + np.sum(chosen**2) * place

    given = {name: each.detach().numpy() for name, each in net.named_parameters()}
    value, (by_p, by_x) = yota.value_and_grad(loss, (0, 1))(given, X)
    x = torch.tensor(X, requires_grad=True)
    native = (net(x) ** 2).sum() + (x[[0, 2]] ** 2).sum() * torch.argmax(x)
    wanted = torch.autograd.grad(native, (x, *net.parameters()))
    assert value == pytest.approx(float(native.detach()))
    for found, right in zip((by_x, *[by_p[(name,)] for name in given]), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_results_and_arguments_keep_to_themselves() -> None:
    kept, same = torch.ones(2, dtype=torch.float64), primitive(lambda x: x)
    x = np.ones(2)
    primitive(lambda x: kept)(x)[:] = 3
    same(x)[:] = 3
    assert kept.sum() == 2 and x.sum() == 2
    scaled = primitive(lambda x, k: 2 * x if k is True else k * x)
    assert [scaled(x, k)[0] for k in (True, 1, 3)] == [2, 1, 3]
    frozen = np.arange(6.0)[::-2]
    frozen.flags.writeable = False
    np.testing.assert_array_equal(yota.gradient(lambda x: np.sum(same(x) ** 2))(frozen), 2 * frozen)


def test_where_a_primitive_cannot_go() -> None:
    dropped = torch.nn.Sequential(network(), torch.nn.Dropout())
    f = primitive(dropped)
    slope = yota.gradient(lambda x: np.sum(f(x)))
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"Sequential draws random numbers, .* module\.eval\(\)"):
            slope(X)
    dropped.eval()
    slope(X)
    dropped.train()
    for call in (f, slope):
        with pytest.raises(ArgumentError, match="draws random numbers"):
            call(X)
    f = primitive(network())
    with pytest.raises(ArgumentError, match=r"Sequential of PyTorch raised for float32\[3\]: .* same dtype"):
        yota.gradient(lambda x: np.sum(f(x)))(X.astype(np.float32))
    for target, named in (("numpy", "calls Sequential of PyTorch"), ("c", "hosted of float64"), ("cuda", "hosted")):
        with pytest.raises(CodegenError, match=named):
            yota.generate(lambda x: np.sum(f(x)), {"x": "float64[3]"}, target=target)


# -- GPUs, on the stand-in -----------------------------------------------------------------------------------


def test_arrays_of_cupy_s_share_the_memory_of_tensors(device: Any) -> None:  # noqa: F811
    seen: list[int] = []

    def doubled(x: Any) -> Any:
        assert type(x) is device.ndarray
        seen.append(address(x))
        return (2 * x,)

    x, w = torch.arange(4.0, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    options = {"target": "numpy", "strict": False, "dynamic": "auto"}
    (found,) = _on_device(Map(doubled, options), (x,))
    assert seen == [x.data_ptr()] and found.tolist() == [0.0, 2.0, 4.0, 6.0]
    slopes = Map(lambda x: (np.sum(np.sin(x) ** 2),), options).pullback((0,), (0,))
    (found,) = _on_device(slopes, (w.sum(), x))
    assert device.launches
    torch.testing.assert_close(found, 4 * torch.sin(2 * x))


def test_hosts_are_attributes_that_come_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert yota.interop.torch.wrap is wrap
    monkeypatch.delitem(sys.modules, "yota.interop.jax", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs jax: pip install 'yota-ad\[jax\]'"):
        yota.interop.__getattr__("jax")
