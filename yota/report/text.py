"""Source lines as pieces of one colour each, by Pygments."""

from __future__ import annotations

from yota.report.plan import Piece

_KINDS = (("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "n"), ("Name.Function", "f"))


def plain(text: str) -> tuple[Piece, ...]:
    """``text`` without colours."""
    return (Piece("", text),)


def pieces(text: str, language: str = "python") -> list[tuple[Piece, ...]]:
    r"""The lines of ``text``, each a tuple of pieces; ``language`` is that of a `Part`.

    Without Pygments, which ``yota-ad[cli]`` installs, there are no colours.

    >>> pieces("x = 1  # one\n")
    [(Piece(kind='', text='x = '), Piece(kind='n', text='1'), Piece(kind='', text='  '), Piece(kind='c', text='# one'))]
    """
    try:
        from pygments.lexers import CLexer, CudaLexer, PythonLexer
    except ModuleNotFoundError:
        return [plain(line) if line else () for line in text.removesuffix("\n").split("\n")]
    lexer = {"python": PythonLexer, "c": CLexer, "cuda": CudaLexer}[language]
    lines: list[list[Piece]] = [[]]
    for token, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        name = str(token).removeprefix("Token.")
        kind = next((kind for prefix, kind in _KINDS if name.startswith(prefix)), "")
        for position, part in enumerate(value.split("\n")):
            if position:
                lines.append([])
            if part and lines[-1] and lines[-1][-1].kind == kind:
                lines[-1][-1] = Piece(kind, lines[-1][-1].text + part)
            elif part:
                lines[-1].append(Piece(kind, part))
    if not lines[-1]:
        lines.pop()
    return [tuple(line) for line in lines]
