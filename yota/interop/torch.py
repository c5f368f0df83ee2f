"""yota functions in PyTorch: one autograd function whose derivatives are autograd functions."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
import torch

from yota.errors import ArgumentError
from yota.interop.hosting import hosted
from yota.interop.maps import Map, Tree, Trees
from yota.ir.callables import Derived, name_of
from yota.ir.types import TensorType, type_of
from yota.run.arguments import function_of
from yota.run.options import Dynamic, TargetName

__all__ = ["primitive", "wrap"]


def wrap(
    f: Callable[..., Any], *, target: TargetName | None = None, strict: bool = False, dynamic: Dynamic = "auto"
) -> Callable[..., Any]:
    """Wrap a plain NumPy function for PyTorch; autograd differentiates it to any order.

    Values are those of ``f``; derivatives are yota's generated code. On the CPU, tensors share memory with the
    arrays that ``f`` receives; ``f`` cannot write to these. For tensors on a GPU, ``f`` receives CuPy arrays on the
    same memory. ``torch.func`` and forward mode work as well.

    Parameters
    ----------
    f
        A plain NumPy function; arguments and results are numbers, arrays and structures of them. Other arguments,
        such as ``int``, ``bool`` and ``str``, are static and must be hashable.
    target, strict, dynamic
        See `yota.grad`.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns its results, with tensors instead of arrays.

    Raises
    ------
    ArgumentError
        When called, if tensors are on several devices or of a dtype that NumPy lacks, or if an argument cannot be
        hashed.

    Examples
    --------
    >>> import numpy as np, torch
    >>> energy = wrap(lambda x: np.sum(np.sin(x) ** 2))
    >>> x = torch.tensor([0.0, 0.5], dtype=torch.float64, requires_grad=True)
    >>> energy(x).backward()
    >>> x.grad
    tensor([0.0000, 0.8415], dtype=torch.float64)
    >>> torch.autograd.functional.hessian(energy, torch.zeros(2))
    tensor([[2., 0.],
            [0., 2.]])
    """
    options = {"target": target, "strict": strict, "dynamic": dynamic}
    trees = Trees(function_of(f), optree, _is_array, lambda flat: Tree(flat, name_of(f), options))

    def call(*args: Any, **kwargs: Any) -> Any:
        known, operands = trees.find(args, kwargs)
        found = _applied(known, operands)
        return optree.tree_unflatten(known.forms[0], found)

    return Derived((wrap, (f,), options), f, call=call)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, np.ndarray, np.generic, float, complex))


def _applied(map: Map, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map, registered with autograd."""
    moved = tuple(number for number, each in enumerate(operands) if getattr(each, "requires_grad", False))
    if not (moved and torch.is_grad_enabled() and _is_scalar(map, operands)):
        return _Call.apply(map, (), *operands)  # type: ignore[no-any-return]
    # The generated code computes the gradient together with the value.
    return (_Call.apply(map, moved, *operands)[0],)


class _Call(torch.autograd.Function):  # type: ignore[misc]
    """A map on tensors, with its gradient by the operands ``moved``, if there are any."""

    @staticmethod
    def forward(map: Map, moved: tuple[int, ...], *operands: Any) -> Any:
        """The results."""
        return _evaluated(map.slopes(moved) if moved else map, operands)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save data for derivatives."""
        ctx.map, moved, *operands = inputs
        tensors = [each for each in operands if isinstance(each, torch.Tensor)]
        ctx.operands = [... if isinstance(each, torch.Tensor) else each for each in operands]
        values = output[: len(output) - len(moved)]
        ctx.moved, ctx.types = moved, tuple(_type_of(each) for each in values)
        ctx.smooth = tuple(number for number, each in enumerate(ctx.types) if each.differentiable)
        ctx.save_for_backward(*tensors, *output[len(values) :])
        ctx.save_for_forward(*tensors)
        rough = [each for number, each in enumerate(output) if number not in ctx.smooth]
        ctx.mark_non_differentiable(*rough)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Adjoints of the operands, also results of a map."""
        saved = iter(ctx.saved_tensors)
        operands = [next(saved) if each is ... else each for each in ctx.operands]
        wanted = tuple(number for number, needed in enumerate(ctx.needs_input_grad[2:]) if needed)
        if wanted == ctx.moved and not torch.is_grad_enabled():
            found: Sequence[Any] = [cotangents[0] * slope for slope in saved]
        else:
            seeds = [cotangents[number] for number in ctx.smooth]
            found = _applied(ctx.map.pullback(wanted, ctx.smooth), [*seeds, *operands])
        made = dict(zip(wanted, found, strict=True))
        return None, None, *[made.get(number) for number in range(len(operands))]

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> Any:
        """Tangents of the results."""
        saved = iter(ctx.saved_tensors)
        operands = [next(saved) if each is ... else each for each in ctx.operands]
        moved = tuple(number for number, each in enumerate(tangents) if each is not None)
        pushed = ctx.map.pushforward(moved, ctx.smooth, ctx.types)
        found = iter(_applied(pushed, [*operands, *[tangents[number] for number in moved]]))
        made = [next(found) if each.differentiable else None for each in ctx.types]
        return (*made, *[None] * len(ctx.moved))

    @staticmethod
    def vmap(info: Any, axes: Any, map: Map, moved: tuple[int, ...], *operands: Any) -> Any:
        """The map over points."""
        found = _applied((map.slopes(moved) if moved else map).over(tuple(axes[2:]), info.batch_size), operands)
        return found, (0,) * len(found)


# PyTorch reads it at each call.
_Call.forward.__signature__ = inspect.signature(_Call.forward)  # type: ignore[attr-defined]


def _is_scalar(map: Map, operands: Sequence[Any]) -> bool:
    """Whether a map is known to have one real scalar result."""
    found = map.known(tuple(_type_of(each) for each in operands))
    return found is not None and len(found) == 1 and not found[0].shape and found[0].dtype.kind == "f"


# -- arrays and tensors --------------------------------------------------------------------------------------


def _type_of(value: Any) -> TensorType:
    return TensorType(_dtype(value.dtype), tuple(value.shape)) if isinstance(value, torch.Tensor) else type_of(value)


@functools.cache
def _dtype(dtype: Any) -> np.dtype[Any]:
    """NumPy's name of a dtype; void if there is none."""
    try:
        found: np.dtype[Any] = torch.empty(0, dtype=dtype).numpy().dtype
    except TypeError:
        found = np.dtype(np.void)
    return found


def _evaluated(map: Map, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map, each in memory of its own."""
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    devices = {str(each.device): each.device for each in tensors}
    if len(devices) > 1:
        raise ArgumentError(f"{map} was called with tensors on {' and '.join(devices)}; move them to one: x.to(device)")
    device = next(iter(devices.values()), torch.device("cpu"))
    if device.type not in ("cpu", "cuda"):
        raise ArgumentError(f"{map} was called with tensors on {device}, which NumPy and CuPy do not reach: x.cpu()")
    if device.type == "cuda":
        with torch.cuda.device(device):
            return _on_device(map, operands)
    given = [_array(map, each) if isinstance(each, torch.Tensor) else each for each in operands]
    results = map(*given)
    return tuple(_tensor(map, each, alone=count in _ALONE) for each, count in zip(results, _held(results), strict=True))


def _on_device(map: Map, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a map of CuPy arrays, on the memory of the tensors."""
    from yota.run.machine.cupy import shared

    given = [shared(each.detach()) if isinstance(each, torch.Tensor) else each for each in operands]
    return tuple(torch.from_dlpack(shared(each)) for each in map(*given))


def _array(map: Map, tensor: Any) -> Any:
    """A read-only array on the memory of a tensor."""
    try:
        found = tensor.detach().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError) as fault:
        if "Batching rule" in str(fault):
            raise ArgumentError(
                f"{map} was called under vectorize=True or is_grads_batched=True, which cannot call Python; use "
                "torch.func, such as torch.func.jacrev"
            ) from None
        kind = f"{tensor.layout}" if tensor.layout is not torch.strided else f"{tensor.dtype}"
        raise ArgumentError(
            f"{map} was called with a tensor of {kind}, which NumPy does not have ({fault}). Convert it: x.to_dense(), "
            "or x.float()"
        ) from None
    found.flags.writeable = False
    return found[()]


def _held(results: tuple[Any, ...]) -> list[tuple[int, int]]:
    """The reference count of each result, and its base array."""
    return [(sys.getrefcount(each), _references(getattr(each, "base", None))) for each in results]


def _references(base: Any) -> int:
    return 0 if base is None else sys.getrefcount(base)


_ALONE = _held((np.empty(1), np.empty(2)[:1]))
"""Reference counts of an unshared new array, and of a view of one."""


def _tensor(map: Map, result: Any, *, alone: bool) -> Any:
    """A result as a tensor; a copy if other code references the array."""
    array = np.asarray(result)
    if not (alone and array.flags.writeable and array.dtype.isnative and all(each >= 0 for each in array.strides)):
        array = np.array(array, array.dtype.newbyteorder("="))
    try:
        return torch.from_numpy(array)
    except TypeError as fault:
        raise ArgumentError(f"{map} gave an array of {array.dtype}, which PyTorch does not have: {fault}") from None


# -- PyTorch's functions in yota -----------------------------------------------------------------------------


def primitive(f: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a PyTorch function or module into a function of NumPy arrays that yota differentiates.

    yota records it as one op; PyTorch computes its derivatives, to any order (``torch.func``). Code for "numpy" and
    "c" calls it. Code for "cuda" and modules of `yota.generate` cannot.

    Parameters
    ----------
    f
        Takes and returns tensors, or structures of them, on the CPU. It must be pure and must not write into its
        arguments; use ``eval()`` mode for a module. The parameters of a module are constants. A function of the
        parameters is ``lambda p, x: torch.func.functional_call(module, p, x)``.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns its results, with arrays instead of tensors.

    Raises
    ------
    ArgumentError
        When called, if ``f`` raises, for example because dtypes differ: PyTorch does not convert them.

    Examples
    --------
    >>> import numpy as np, torch, yota
    >>> softplus = primitive(torch.nn.Softplus())
    >>> yota.gradient(lambda x: np.sum(softplus(x) ** 2))(np.array([0.0, 1.0])).round(2)
    array([0.69, 1.92])
    """
    return hosted(function_of(f), _Library(f))


class _Library:
    """The interface to PyTorch; see `yota.interop.hosting`."""

    name = "PyTorch"
    trees = optree

    def __init__(self, f: Callable[..., Any]) -> None:
        self._of = f
        self._modes: set[Any] = set()

    def run(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        mode = getattr(self._of, "training", None)
        # To read the state of the generator takes as long as a small network: it is read once in each mode.
        before = None if mode in self._modes else torch.get_rng_state()
        with torch.no_grad():
            found = function(*map(_shared, arrays))
        if before is not None:
            if not torch.equal(before, torch.get_rng_state()):
                raise ArgumentError(
                    f"{name_of(self._of)} draws random numbers, so that its derivative is that of another function; "
                    "switch a module to module.eval(), or pass what is random as an argument"
                )
            self._modes.add(mode)
        return np.array(found.detach().resolve_conj().resolve_neg().numpy())

    def vjp(self, function: Callable[..., Any], operands: Any) -> Any:
        found, back = torch.func.vjp(function, operands)
        return found, lambda cotangent: back(cotangent.to(found.dtype))[0]

    def vmap(self, function: Callable[..., Any], axes: tuple[int | None, ...]) -> Any:
        return torch.func.vmap(function, axes)

    def is_smooth(self, array: Any) -> bool:
        return bool(array.is_floating_point() or array.is_complex())

    def joined(self, arrays: Sequence[Any]) -> Any:
        kind = functools.reduce(torch.promote_types, [each.dtype for each in arrays])
        return torch.cat([each.reshape(-1).to(kind) for each in arrays])


def _shared(value: Any) -> Any:
    """An array as a tensor on its memory, if PyTorch supports that."""
    array = np.asarray(value)
    if not array.flags.writeable or any(each < 0 for each in array.strides):
        array = array.copy()
    return torch.from_numpy(array)
