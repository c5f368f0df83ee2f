"""What the recorded forms of libraries' functions are written with."""

from yota.ir.callables import original
from yota.ir.catalog import primitive
from yota.rules.language.statics import axes_of
from yota.tracing.current import current, paused
from yota.tracing.dispatch import concrete
from yota.tracing.implementations import calls_back, implements, records
from yota.tracing.methods import is_traced, is_tracer, turned, unboxed
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import overwrite

__all__ = [
    "Trace",
    "axes_of",
    "calls_back",
    "concrete",
    "current",
    "implements",
    "is_traced",
    "is_tracer",
    "np",
    "original",
    "overwrite",
    "paused",
    "primitive",
    "records",
    "turned",
    "unboxed",
]
