"""Loading: shipped rules one by one as they are needed, users' rules proved once for each content."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

import yota
from yota._resources import folder
from yota.errors import RuleError
from yota.rules.language.syntax import parse
from yota.rules.laws import all_laws as laws
from yota.rules.loading import Excerpts, excerpts, shipped
from yota.rules.registry import Registry, registry
from yota.run.machine.store import Proofs

FILE = """# yota rules 1
\"\"\"Two functions.\"\"\"


@elementwise
def loaded_once(x: Real) -> y:
    y = x * x


# A comment between rules.
@tensor("yota_loading.total")
def total(x: Array[n]) -> y:
    d[x] = broadcast_to(d[y], shape=shape(x))

    # A comment within.
"""


@pytest.fixture
def proved(monkeypatch):
    """How often rules were proved."""
    calls = []
    before = laws.prove
    monkeypatch.setattr(laws, "prove", lambda *args: calls.append(before(*args)))
    return calls


@pytest.fixture
def proofs(tmp_path, monkeypatch):
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    return Proofs("1")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(FILE.replace("\n    # A comment within.\n", ""))
    return path


@pytest.mark.parametrize("path", sorted(folder("rules").rglob("*.rules")), ids=lambda path: path.name)
def test_first_lines_tell_the_rules_of_a_file(path):
    text = path.read_text()
    parts, rules = excerpts(text, path.name), parse(text, path.name, header=True)[1]
    assert [(part.name, part.target, part.text) for part in parts] == [
        (rule.name, rule.target, rule.source) for rule in rules
    ]
    assert [part.rule.line for part in parts] == [rule.line for rule in rules]
    assert [part.rule.partials for part in parts] == [rule.partials for rule in rules]
    assert [part.rule.adjoints for part in parts] == [rule.adjoints for rule in rules]


def test_shipped_rules_are_parsed_when_they_are_needed(monkeypatch):
    parsed = []
    import yota.rules.language.syntax as module

    monkeypatch.setattr(module, "parse", lambda *args, **keywords: parsed.append(args) or parse(*args, **keywords))
    line = registry().rules("exp")[0].line
    parsed.clear()
    known = Registry.shipped()
    assert known.knows("exp") and known.find(len) is None and not parsed
    assert known.rules("exp")[0].line == line
    assert len(parsed) == 1
    assert known.rules("exp") is known.rules("exp")
    assert known.digest() == Registry.shipped().digest()


def test_the_digest_does_not_tell_what_was_parsed():
    known = Registry.shipped()
    before = known.digest()
    content = known.content()
    for name in known.names():
        known.rules(name)
    assert known.digest() == before and known.content() == content
    parts = [part for text in shipped(folder("rules")) for part in excerpts(*text)]
    assert len(parts) == sum(len(known.rules(name)) for name in known.names())
    known.hold(excerpts('@nodiff("math.erf")\ndef f_of_mine(x: Real) -> y: ...\n', "my.rules"), user=True)
    assert known.content() not in (content, before) and known.digest() != before


def test_a_file_is_proved_once(file, proofs, proved):
    first, second = Registry.shipped(), Registry.shipped()
    assert [rule.name for rule in first.load(file, proofs)] == ["loaded_once", "total"]
    assert len(proved) == 1
    found = second.load(file, Proofs("1"))
    assert len(proved) == 1
    assert isinstance(found, Excerpts) and len(found) == 2
    assert [rule.name for rule in found] == ["loaded_once", "total"] == [rule.name for rule in found[:]]
    assert repr(found) == "<rules of loaded_once, total>"
    assert second.is_user("total") and second.rules("loaded_once")[0].line == 6
    assert second.digest() == first.digest()
    assert second.primitive("loaded_once").function(3.0) == 9.0


@pytest.mark.parametrize("change", ["content", "rules", "version"])
def test_what_changes_is_proved_again(file, proofs, proved, change):
    Registry.shipped().load(file, proofs)
    known = Registry.shipped()
    if change == "content":
        file.write_text(file.read_text() + "# one more line\n")
    elif change == "rules":
        known.define("@elementwise\ndef before_it(x: Real) -> y:\n    y = x")
        proved.clear()
        proved.append(None)
    known.load(file, Proofs("2" if change == "version" else "1"))
    assert len(proved) == 2


def test_a_rule_that_overrides_a_shipped_one_comes_from_the_cache(tmp_path, proofs):
    path = tmp_path / "my.rules"
    path.write_text('# yota rules 1\n@elementwise("numpy.exp")\ndef exp(x: Complex) -> y:\n    d[y, x] = exp(x)\n')
    for _ in range(2):
        known = Registry.shipped()
        known.load(path, proofs)
        assert known.is_user("exp") and known.rules("exp")[0].file == str(path)


def test_a_wrong_file_is_not_remembered(file, proofs, proved):
    file.write_text(FILE.replace("d[x] = broadcast_to", "d[x] = 1 + broadcast_to"))
    for _ in range(2):
        with pytest.raises(RuleError, match="is not linear"):
            Registry.shipped().load(file, proofs)
    assert not os.listdir(proofs._store.path)


@pytest.mark.parametrize(
    "text",
    [
        FILE,
        '# yota rules 1\n@elementwise(\n    "m.f"\n)\ndef f(x: Real) -> y:\n    d[y, x] = 1\n',
        '# yota rules 1\n"""\n@elementwise\ndef exp(x: Real):\n"""\n@elementwise\ndef f(x: Real) -> y:\n    y = x\n',
    ],
    ids=["comment", "decorator", "docstring"],
)
def test_text_that_reads_otherwise_by_its_first_lines_is_proved_each_time(tmp_path, proofs, proved, text):
    path = tmp_path / "my.rules"
    path.write_text(text)
    for _ in range(2):
        rules = Registry.shipped().load(path, proofs)
    assert len(proved) == 2
    assert "exp" not in [rule.name for rule in rules]


def test_a_forged_or_broken_mark_counts_for_nothing(file, proofs, proved):
    Registry.shipped().load(file, proofs)
    (mark,) = proofs._store.path.iterdir()
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    assert stat.S_IMODE(proofs._store.path.stat().st_mode) == 0o700
    mark.write_text("proved")
    Registry.shipped().load(file, proofs)
    assert len(proved) == 2


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="POSIX permissions")
def test_a_folder_that_others_may_write_to_is_not_used(file, tmp_path, monkeypatch, proved):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "proofs").mkdir()
    os.chmod(tmp_path / "open" / "proofs", 0o777)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "open"))
    for _ in range(2):
        Registry.shipped().load(file, Proofs("1"))
    assert len(proved) == 2 and not list((tmp_path / "open" / "proofs").iterdir())


def test_another_process_need_not_prove_anything(file, tmp_path):
    code = (
        "import sys, yota\n"
        f"rules = yota.load_rules({str(file)!r})\n"
        "assert yota.grad(lambda x: __import__('numpy').sin(x), 0.0)[0] == 0\n"
        "print('yota.rules.laws.agreement' in sys.modules)"
    )
    environment = {**os.environ, "YOTA_CACHE_DIR": str(tmp_path / "shared")}
    found = [
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert found == ["True\n", "False\n"]


def test_errors_of_an_excerpt_name_the_line_of_the_file():
    (part,) = excerpts("# yota rules 1\n\n\n@elementwise\ndef f(x: Real) -> y:\n    y = [x]\n", "my.rules")
    with pytest.raises(RuleError, match=r"^my.rules:6:9: a list is not part"):
        part.rule  # noqa: B018


def test_the_public_function(file, monkeypatch):
    monkeypatch.setattr("yota.rules.registry._default", Registry.shipped())
    assert len(yota.load_rules(file)) == 2
