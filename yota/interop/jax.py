"""yota functions in JAX: one JAX primitive that calls Python, with rules for all JAX transformations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from yota.errors import ArgumentError
from yota.interop.hosting import hosted
from yota.interop.maps import Map, Tree, Trees, Types
from yota.ir.callables import Derived, name_of
from yota.ir.types import TensorType
from yota.run.arguments import function_of
from yota.run.options import Dynamic, TargetName

__all__ = ["primitive", "wrap"]


def wrap(
    f: Callable[..., Any],
    *,
    results: Any = None,
    vmap_method: str = "batch",
    target: TargetName | None = None,
    strict: bool = False,
    dynamic: Dynamic = "auto",
) -> Callable[..., Any]:
    """Wrap a plain NumPy function for JAX, with support for all JAX transformations.

    ``jit``, ``grad``, ``jvp``, ``vjp``, ``jacfwd``, ``jacrev``, ``hessian``, ``linearize``, ``checkpoint`` and
    ``vmap`` apply in any order and to any depth. Values are those of ``f``; derivatives are yota's generated code.
    Python calls ``f`` with NumPy arrays, so it may branch on their values.

    Parameters
    ----------
    f
        A plain NumPy function; arguments and results are numbers, arrays and pytrees of them. Other arguments, such
        as ``int``, ``bool`` and ``str``, are static and must be hashable.
    results
        Shapes and dtypes of the results, as ``jax.pure_callback`` takes them, or a function that returns them for
        arguments of type ``jax.ShapeDtypeStruct``. By default, yota calls ``f`` with ones to find them.
    vmap_method
        Method of ``vmap``: ``"batch"`` applies `yota.batch`; ``"sequential"`` calls ``f`` for each point, which may
        then branch on its values.
    target, strict, dynamic
        See `yota.grad`.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns its results, with JAX arrays instead of NumPy arrays.

    Raises
    ------
    ArgumentError
        When called, if an argument cannot be hashed, or the shapes of the results cannot be found.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np
    >>> energy = wrap(lambda x: np.sum(np.sin(x) ** 2))
    >>> jax.jit(jax.grad(energy))(jnp.array([0.0, jnp.pi / 4])).round(3).tolist()
    [0.0, 1.0]
    >>> jax.hessian(energy)(jnp.zeros(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    if vmap_method not in ("batch", "sequential"):
        raise ArgumentError(f'vmap_method={vmap_method!r}: it is "batch" or "sequential"')
    options = {"target": target, "strict": strict, "dynamic": dynamic}
    trees = Trees(function_of(f), jax.tree_util, _is_array, lambda flat: Tree(flat, name_of(f), options))

    def call(*args: Any, **kwargs: Any) -> Any:
        known, given = trees.find(args, kwargs)
        arrays = [jnp.asarray(each) for each in given]
        weak = tuple(jax.typeof(each).weak_type and not each.ndim for each in arrays)
        if results is not None:
            known.say(_types_of(arrays, weak), *_said(results, args, kwargs))
        found = _call.bind(*arrays, map=known, method=vmap_method, weak=weak)
        return jax.tree_util.tree_unflatten(known.forms[0], found)

    return Derived((wrap, (f,), {"results": results, "vmap_method": vmap_method, **options}), f, call=call)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, float, complex))


def _said(results: Any, args: Any, kwargs: Any) -> tuple[Types, Any]:
    """Types and tree of the results that the user specified."""
    if callable(results):
        args, kwargs = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)) if _is_array(leaf) else leaf,
            (args, kwargs),
        )
        results = results(*args, **kwargs)
    leaves, tree = jax.tree_util.tree_flatten(results)
    return tuple(TensorType(np.dtype(each.dtype), tuple(each.shape)) for each in leaves), tree


# -- the primitive -------------------------------------------------------------------------------------------

_call = Primitive("yota")
_call.multiple_results = True
"""The primitive calls ``map`` with the operands; ``weak`` operands are Python numbers for it."""


def _types_of(operands: Sequence[Any], weak: Sequence[bool]) -> Types:
    """Types of the operands for ``map``."""
    kinds = {"f": np.dtype(float), "c": np.dtype(complex)}
    return tuple(
        TensorType(kinds[each.dtype.kind] if soft else np.dtype(each.dtype), tuple(each.shape), soft)
        for each, soft in zip(operands, weak, strict=True)
    )


def _abstract(*operands: Any, map: Map, weak: tuple[bool, ...], **_: Any) -> list[Any]:
    found = map.types(_types_of(operands, weak))
    return [jax.core.ShapedArray(each.shape, jax.dtypes.canonicalize_dtype(each.dtype)) for each in found]


def _on_host(map: Map, weak: tuple[bool, ...], *operands: Any) -> tuple[Any, ...]:
    """The results for JAX arrays in main memory."""
    arrays = [np.asarray(each) for each in operands]
    return map(*[each.item() if soft else each[()] for each, soft in zip(arrays, weak, strict=True)])


def _called_back(map: Map, weak: tuple[bool, ...], wanted: Sequence[Any], *operands: Any) -> tuple[Any, ...]:
    """The results, with the types that JAX expects."""
    found = _on_host(map, weak, *operands)
    for one, type_ in zip(found, wanted, strict=True):
        if np.shape(one) != type_.shape:
            raise ArgumentError(
                f"{map} gave a result of shape {np.shape(one)}, and of shape {type_.shape} for other arguments; in JAX "
                "the shape of a result depends on shapes alone"
            )
    return tuple(np.asarray(one, type_.dtype) for one, type_ in zip(found, wanted, strict=True))


def _evaluated(*operands: Any, map: Map, weak: tuple[bool, ...], **_: Any) -> list[Any]:
    # JAX passes NumPy arrays of its callers unchanged, such as tangents.
    if any(device.platform == "gpu" for each in operands if isinstance(each, jax.Array) for device in each.devices()):
        return _on_device(map, [jnp.asarray(each) for each in operands])
    # A copy, because JAX arrays are immutable and the function may keep and change its result.
    return [jnp.array(each) for each in _on_host(map, weak, *operands)]


def _on_device(map: Map, operands: Sequence[Any]) -> list[Any]:
    """The results of a map of CuPy arrays, on the memory of JAX arrays."""
    from yota.run.machine.cupy import shared

    return [jax.dlpack.from_dlpack(shared(one)) for one in map(*[shared(each) for each in operands])]


def _lowered(*operands: Any, map: Map, weak: tuple[bool, ...], **_: Any) -> Any:
    wanted = tuple(_abstract(*operands, map=map, weak=weak))
    return jax.pure_callback(functools.partial(_called_back, map, weak, wanted), wanted, *operands)


def _forward(operands: Sequence[Any], tangents: Sequence[Any], *, map: Map, method: str, weak: tuple[bool, ...]) -> Any:
    """The derivative along tangents, as a linear function that JAX can transpose."""
    moved = tuple(position for position, each in enumerate(tangents) if type(each) is not ad.Zero)
    given = [tangents[position] for position in moved]
    types = map.types(_types_of(operands, weak))
    if len(types) == 1 and not types[0].shape and types[0].dtype.kind == "f":
        value, *slopes = _call.bind(*operands, map=map.slopes(moved), method=method, weak=weak)
        terms = [jnp.real(jnp.vdot(slope, tangent)) for slope, tangent in zip(slopes, given, strict=True)]
        return [value], [sum(terms[1:], terms[0]).astype(value.dtype)]
    found = _call.bind(*operands, map=map, method=method, weak=weak)
    smooth = tuple(number for number, each in enumerate(types) if each.differentiable)
    pushed, soft = map.pushforward(moved, smooth, types), (*weak, *[False] * len(moved))
    made = dict(zip(smooth, _call.bind(*operands, *given, map=pushed, method=method, weak=soft), strict=True))
    return found, [made.get(number, ad.Zero(jax.typeof(one).to_tangent_aval())) for number, one in enumerate(found)]


def _transposed(cotangents: Sequence[Any], *operands: Any, map: Map, method: str, weak: tuple[bool, ...]) -> list[Any]:
    """The transpose of a map that is linear in the missing operands: its pullback at zero."""
    missing = tuple(position for position, each in enumerate(operands) if ad.is_undefined_primal(each))
    pulled, rest = map.transposed(missing, len(operands), len(cotangents))
    given = [_conjugated(ad.instantiate_zeros(each)) for each in cotangents]
    at = [jnp.zeros(each.aval.shape, each.aval.dtype) if ad.is_undefined_primal(each) else each for each in operands]
    soft = (*[False] * len(given), *weak[:rest])
    found = _call.bind(*given, *at[:rest], map=pulled, method=method, weak=soft)
    made = dict(zip(missing, found, strict=True))
    return [_conjugated(made[position]) if position in made else None for position in range(len(operands))]


def _conjugated(value: Any) -> Any:
    """The conjugate, because JAX transposes and yota computes adjoints."""
    return jnp.conj(value) if value.dtype.kind == "c" else value


def _batched(
    operands: Sequence[Any], axes: Sequence[int | None], *, map: Map, method: str, weak: tuple[bool, ...]
) -> Any:
    size = next(each.shape[axis] for each, axis in zip(operands, axes, strict=True) if axis is not None)
    if method == "batch":
        # A batched number is an array and no longer weak.
        soft = tuple(one and axis is None for one, axis in zip(weak, axes, strict=True))
        found = _call.bind(*operands, map=map.over(tuple(axes), size), method=method, weak=soft)
    else:
        many = [jnp.moveaxis(each, axis, 0) for each, axis in zip(operands, axes, strict=True) if axis is not None]

        def one(points: Any) -> Any:
            rest = iter(points)
            given = [each if axis is None else next(rest) for each, axis in zip(operands, axes, strict=True)]
            return _call.bind(*given, map=map, method=method, weak=weak)

        found = jax.lax.map(one, many)
    return found, [0] * len(found)


_call.def_impl(_evaluated)
_call.def_abstract_eval(_abstract)
ad.primitive_jvps[_call] = _forward
ad.primitive_transposes[_call] = _transposed
batching.primitive_batchers[_call] = _batched
mlir.register_lowering(_call, mlir.lower_fun(_lowered, multiple_results=True))


# -- JAX's functions in yota ---------------------------------------------------------------------------------


def primitive(f: Callable[..., Any], *, jit: bool = True) -> Callable[..., Any]:
    """Turn a JAX function into a function of NumPy arrays that yota differentiates.

    yota records it as one op; JAX computes its derivatives, to any order. Code for "numpy" and "c" calls it. Code
    for "cuda" and modules of `yota.generate` cannot.

    Parameters
    ----------
    f
        A pure function of JAX arrays or pytrees of them.
    jit
        Whether XLA compiles it and its derivatives; without, it may branch on values.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns its results, with NumPy arrays.

    Raises
    ------
    ArgumentError
        When called, if ``f`` raises, or if JAX would round double precision to single.

    Examples
    --------
    >>> import jax, numpy as np, yota
    >>> softplus = primitive(jax.nn.softplus)
    >>> yota.gradient(lambda x: np.sum(softplus(x) ** 2))(np.array([0.0, 1.0], np.float32)).round(2)
    array([0.69, 1.92], dtype=float32)
    """
    return hosted(function_of(f), _Library(jit))


class _Library:
    """The interface to JAX; see `yota.interop.hosting`."""

    name = "JAX"
    trees = jax.tree_util

    def __init__(self, jit: bool) -> None:
        self._jit = functools.cache(jax.jit) if jit else lambda function: function

    def run(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        kinds = {np.asarray(each).dtype for each in arrays if not isinstance(each, (float, complex))} or {
            np.dtype(float)
        }
        if any(each in (np.float64, np.complex128) for each in kinds) and not jax.config.jax_enable_x64:
            raise ArgumentError(
                "JAX computes in single precision, and got numbers in double. Write "
                'jax.config.update("jax_enable_x64", True), or pass x.astype(np.float32)'
            )
        try:
            # Within `jit`, to find the shapes of results.
            with jax.ensure_compile_time_eval():
                return np.array(self._jit(function)(*arrays))
        except jax.errors.ConcretizationTypeError as fault:
            raise ArgumentError(
                "a JAX function uses a traced value in a branch or a shape, which XLA does not support. Use jnp.where "
                f"or jax.lax.cond, or pass jit=False: {str(fault).splitlines()[0]}"
            ) from fault

    def vjp(self, function: Callable[..., Any], operands: Any) -> Any:
        found, back = jax.vjp(function, operands)
        return found, lambda cotangent: [
            _conjugated(each) for each in back(_conjugated(cotangent.astype(found.dtype)))[0]
        ]

    def vmap(self, function: Callable[..., Any], axes: tuple[int | None, ...]) -> Any:
        return jax.vmap(function, axes)

    def is_smooth(self, array: Any) -> bool:
        return bool(jnp.issubdtype(jnp.result_type(array), jnp.inexact))

    def joined(self, arrays: Sequence[Any]) -> Any:
        return jnp.concatenate([jnp.ravel(each) for each in arrays])
