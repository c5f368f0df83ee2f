"""Statements about arrays for the random programs: of 12 elements, of 4 rows of 5, and of 3 rows of 3.

Of alternatives between angles one is chosen. ``NUMBER``, ``VECTOR`` and ``LONG`` stand for expressions, ``I`` for the
number of the trip.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_CHOICE = re.compile(r"«([^«»]*)»")

LONG = """
np.roll(p, «1|-1|2|5»)
np.roll(p, 1) - 2*p + np.roll(p, -1)
np.pad(p[1:-1], 1, mode=«'wrap'|'edge'|'constant'|'reflect'»)
np.pad(p, ((2, 1),), mode=«'wrap'|'edge'|'constant'|'reflect'»)[1:13]
np.concatenate([p[5:], p[:5]])
np.concatenate([p[:4]*«a|b|t», x[4:9], p[9:]])
np.concatenate([v, p[::2], w])
np.where(p > 0.1, p, b*p)
np.where(np.roll(p, 1) < p, p**2, np.roll(p, 2))
np.where(np.arange(12) % 3 == 1, p, x[:12])
G.reshape(20)[4:16]
np.stack([p[:6], p[6:]], axis=1).reshape(12)
np.append(p[1:], «a|v[1]»)
x[I:I+2].repeat(6)
""".strip().split("\n")
"""Expressions of 12 elements: neighbours, edges and joined pieces."""

STATEMENTS = """
p = np.tanh(LONG)

p = p + 0.1*np.sin(LONG)

d = «np.empty_like(p)|np.zeros(12, p.dtype)|p.copy()»
d[:5] = «a|0.5*p[-1]|p[5:10]|v[:1]»
d[5:] = np.sin(p)[«5:|:7»]
p = d

d = np.zeros_like(p)
d[1:-1] = p[2:] - p[:-2]
d[0], d[-1] = d[«1|5|10»], NUMBER
p = p + 0.1*d

p[«1|5|11»:] *= 0.9
p[:«1|5|11»] += NUMBER

d = np.zeros((4, 4, 2), G.dtype)
d[..., 0] = «G[:, 1:]|G[:, :1]|G[0, :4]|p[:4]|a»
d[..., 1] = «G[3, 1:]|G[:, 2, None]|np.sin(G)[:, :4]»
G[:, :4] = np.tanh(«d[..., 0] + 0.3*d[..., 1]|d[..., 1].T*d[..., 0]|np.sum(d, axis=2)»)

d = np.zeros((4, 4, 2), G.dtype)
d[:, «0|1|-1»] = «p[:2]|G[:, :1]|a»
d[:, 2:] = G[:, :2, None]
G[:, :4] = np.tanh(«np.sum(d, axis=2)|np.sum(d, axis=1)[:, :1]|d[..., 1].T|d[1, :, 0]»)

d = np.zeros_like(G)
d[1:-1, 1:-1] = G[2:, 1:-1] + G[:-2, 1:-1] - 2*G[1:-1, 2:]
G = G + 0.1*d

G = G + 0.1*(np.roll(G, 1, «0|1») - np.roll(G, -2, «0|1»))

G = np.tanh(np.pad(G[1:-1, 1:-1], 1, mode=«'edge'|'wrap'|'constant'»))

d = G.copy()
d[:, 0] = «0|p[:4]|G[:, -1]»
d[:, 1:] = «G[:, :-1]|G[:, :1]|p[:4]»*0.9
G = d

«G[:, 0]|G[:, -1]|G[2]|G[1:3, 2]» = «a|0.5|G[1, 3]|v[1]»

M = np.tanh(«M@m|M@M.T|np.outer(v, w)|M*v|m.T@M + u|M[::-1]@m»)

M = np.tanh(M + 0.1*(«np.outer(u, v)|np.eye(3)*b|M[:, :2]@M[:2]|np.linalg.inv(M + 9*np.eye(3))»))

M[«0|1|2»] = VECTOR

c, (d, e) = yota.scan(step, np.tanh(c), «p|v|x|G|M»)
b, v, e = 0.1*np.sum(d), np.tanh(np.sum(e)*v), 0.0

b = np.tanh(«np.sum(p*np.roll(p, 3))|np.sum(G*G[::-1])|np.max(p)|np.trace(M)|np.prod(v)»)
""".strip().split("\n\n")

STEPS = (
    "np.tanh(c + 0.1*np.sum(r)), (c*1.0, r*1.0)",
    "c*0.5 + np.sum(np.sin(r)), (np.sin(c), c*r)",
    "np.cos(c)*0.5, (c, np.where(r > 0.0, r, c*r))",
)
"""Results of a step of a scan: what is carried, and two rows."""


def statement(source: random.Random, i: str, number: Callable[[], str], vector: Callable[[], str]) -> list[str]:
    """The lines of a random statement.

    i: expression of the number of the trip.
    number, vector: make a random expression of a number and of three numbers.
    """
    text = source.choice(STATEMENTS).replace("LONG", source.choice(LONG))
    text = _CHOICE.sub(lambda match: source.choice(match.group(1).split("|")), text)
    text = re.sub(r"\bI\b", i, text).replace("NUMBER", f"np.tanh({number()})")
    return text.replace("VECTOR", f"np.tanh({vector()})").split("\n")
