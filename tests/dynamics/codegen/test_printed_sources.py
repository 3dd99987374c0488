"""Texts printed from derivations are printed once for one code, and never believed when damaged."""

import sys

import pytest

from dynamics.codegen import printed_sources
from dynamics.codegen.printed_sources import printed_source
from dynamics.systems.positional_attention.reduced import printed as reduced
from theory.papers.positional_attention import recursion

DEGREE = 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTDYN_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_derivation(monkeypatch):
    def refused(degree):
        raise AssertionError(f"derived again, p = {degree}")

    monkeypatch.setattr(recursion, "derive", refused)


def test_what_is_on_disk_is_what_the_derivation_prints(folder, request):
    naive = reduced._printed(DEGREE)
    assert printed_source(reduced._printed, DEGREE) == naive
    request.getfixturevalue("no_derivation")
    assert printed_source(reduced._printed, DEGREE) == naive
    with pytest.raises(AssertionError, match="derived again, p = 5"):
        printed_source(reduced._printed, 5)


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", None])
def test_a_damaged_text_is_printed_again(folder, damage):
    text = printed_source(reduced._printed, DEGREE)
    (path,) = folder.glob("attdyn_printed_*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] if damage is None else damage)
    assert printed_source(reduced._printed, DEGREE) == text
    assert path.read_bytes() == whole


PRINTER = """from subject_package import part


def text(number):
    calls.append(number)
    return part.WORD * number


calls = []
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that decides what a module prints, in place of the product's."""
    home = tmp_path / "subject_package"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "part.py").write_text("WORD = 'a'\n")
    (tmp_path / "subject_printer.py").write_text(PRINTER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(printed_sources, "SOURCES", ("subject_package",))
    yield home
    for name in [name for name in sys.modules if name.startswith("subject_")]:
        del sys.modules[name]


@pytest.mark.parametrize("changed", ["subject_package/part.py", "subject_printer.py"])
def test_other_code_or_arguments_print_anew(folder, package, monkeypatch, changed):
    import subject_printer

    monkeypatch.setattr(printed_sources, "_code_of", printed_sources._code_of.__wrapped__)
    assert [printed_source(subject_printer.text, n) for n in (2, 2, 3)] == ["aa", "aa", "aaa"]
    assert subject_printer.calls == [2, 3]
    path = package.parent / changed
    path.write_text(path.read_text() + "\n# another text\n")
    printed_source(subject_printer.text, 2)
    assert subject_printer.calls == [2, 3, 2]


def test_a_function_of_no_module_file_is_called(folder, monkeypatch):
    def text(number):
        return "b" * number

    text.__module__ = "nowhere_to_be_found"
    assert [printed_source(text, 2), printed_source(text, 2)] == ["bb", "bb"]
    assert not list(folder.glob("attdyn_printed_*"))
