"""The gradients of all shipped rules: as CUDA kernels on the host they agree with NumPy, op by op."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.hosted import Source, load, needs_compiler
from tests.cuda.nvrtc import ENDS, compiled, needs_nvrtc, unit
from tests.cuda.specimens import Specimen, specimens
from yota.emit.targets import cuda
from yota.errors import CodegenError
from yota.tracing.replay import evaluate


@pytest.fixture(scope="module")
def generated() -> list[tuple[Specimen, Source]]:
    found, refused = [], list[str]()
    for specimen in specimens():
        try:
            found.append((specimen, cuda.generate(specimen.tape)))
        except CodegenError as error:
            refused.append(str(error))
    assert len(found) > 170
    assert all("has no form on the GPU" in text for text in refused)
    return found


@needs_compiler
def test_kernels_agree_with_numpy(generated: list[tuple[Specimen, Source]]) -> None:
    # GCC tells what is read before it is written only where it optimises.
    functions = load([source for _, source in generated], "-O1")
    wrong = []
    for (specimen, source), function in zip(generated, functions, strict=True):
        names = [entry.variable for entry in specimen.tape.inputs]
        expected = evaluate(specimen.tape, dict(zip(names, specimen.values, strict=True)))
        found = function(*specimen.values)
        pairs = zip(found if isinstance(found, tuple) else (found,), expected, strict=True)
        for number, (result, wanted) in enumerate(pairs):
            result, wanted = np.asarray(result), np.asarray(wanted)
            assert result.dtype == wanted.dtype and result.shape == wanted.shape, specimen.name
            scale = np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0.0)
            if not np.allclose(result, wanted, rtol=1e-9, atol=1e-12 + 1e-11 * scale, equal_nan=True):
                wrong.append(f"{specimen.name}[{number}]: {result.ravel()[:4]} for {wanted.ravel()[:4]}\n{source.text}")
    assert not wrong, "\n".join(wrong)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ENDS)
def test_kernels_compile_without_warnings(generated: list[tuple[Specimen, Source]], architecture: str) -> None:
    # Whether a text compiles does not depend on how long the compiler thinks about it.
    found = compiled(unit([source for _, source in generated]), architecture, "--Ofast-compile=max")
    assert found.succeeded and not found.log, found.log[:4000]
