"""Rules of the house that neither the linter nor the import contracts can tell."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gateway", "drivers", "simulation")
STARTS_ON_THE_LOOP = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"}
MAY = {
    "simulation/demo/launcher.py": "it serves nobody, and ties its child before the child's program runs",
}


def starts(source: str) -> Iterator[int]:
    """The lines that start a child on the event loop, which stands still until the child runs."""
    for node in ast.walk(ast.parse(source)):
        names = [node.attr] if isinstance(node, ast.Attribute) else []
        names += [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
        if STARTS_ON_THE_LOOP.intersection(names):
            yield node.lineno


def test_children_are_started_by_the_shared_way_that_holds_up_no_loop():
    sources = {str(file.relative_to(ROOT)): file for name in PACKAGES for file in (ROOT / name).rglob("*.py")}
    found = {
        name for name, file in sources.items() if "subprocess_" in (text := file.read_text()) and any(starts(text))
    }
    assert found == set(MAY)


def test_a_start_on_the_loop_is_found_however_it_is_written():
    assert list(starts("import asyncio\nasync def a():\n    await asyncio.create_subprocess_exec('true')\n")) == [3]
    assert list(starts("from asyncio import create_subprocess_shell as run\n")) == [1]
    assert list(starts("loop.subprocess_exec(object, 'true')\n")) == [1]
    assert not list(starts("from drivers.child_process import start_child\n"))


NO_LUCK_IN = {
    "tests/simulation/virtual_site/": "its time is virtual",
    "tests/drivers/bus/test_late_answers.py": "its time is virtual",
    "tests/drivers/modbus/test_poll_rate.py": "its time is virtual",
    "tests/benchmarks/": "they measure real time",
}
PLANT_FAULTS = {"tests/simulation/virtual_site/test_outage.py", "tests/simulation/virtual_site/test_planted_bugs.py"}


def waits_without_a_reason(source: str) -> Iterator[int]:
    """The lines that let real time pass with no comment beside or above, and the loops that only look again."""
    comments = {
        token.start[0]: not token.line[: token.start[1]].strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.While) and len(node.body) == 1 and any(map(passes_time, ast.walk(node.body[0]))):
            yield node.lineno
        elif passes_time(node):
            beside = any(line in comments for line in range(node.lineno, node.end_lineno + 1))
            if not beside and not comments.get(node.lineno - 1):
                yield node.lineno


def passes_time(node: ast.AST) -> bool:
    """Tell a call of `sleep` that takes time from one that only gives others their turn."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != "sleep":
        return False
    return not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)


def private_names(source: str) -> Iterator[int]:
    """The lines that import a private name of the product, or replace one by its name. Ruff finds what is left."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("setattr", "delattr"):
            words = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            names = [word.rpartition(".")[2] for word in words if isinstance(word, str)]
        if any(name.startswith("_") and not name.startswith("__") for name in names):
            yield node.lineno


def found_in_tests(
    rule: Callable[[str], Iterator[int]], *, where: str, but: Callable[[str], bool] = lambda _: False
) -> list[str]:
    """Apply a rule to the tests. To parse them all takes seconds: a file without a match of `where` is left out."""
    files = {str(file.relative_to(ROOT)): file for file in (ROOT / "tests").rglob("*.py")}
    sources = {name: file.read_text() for name, file in files.items() if not but(name)}
    suspects = {name: source for name, source in sources.items() if re.search(where, source)}
    return [f"{name}:{line}" for name, source in suspects.items() for line in rule(source)]


def test_tests_wait_for_conditions_and_say_why_time_passes():
    found = found_in_tests(
        waits_without_a_reason, where=r"sleep\((?!0\))", but=lambda name: name.startswith(tuple(NO_LUCK_IN))
    )
    assert found == [], "wait with `until` of tests/simulators/waiting.py, or say beside it why time must pass"


def test_a_wait_without_a_reason_is_found():
    assert list(waits_without_a_reason("async def a():\n    await asyncio.sleep(0.1)\n")) == [2]
    assert list(waits_without_a_reason("x = 1  # why\ntime.sleep(seconds)\n")) == [2]
    looping = "async def a():\n    while not done():  # why\n        await asyncio.sleep(0.1)  # why\n"
    assert list(waits_without_a_reason(looping)) == [2]
    assert not list(waits_without_a_reason("time.sleep(1)  # why\n# why\ntime.sleep(1)\n"))
    assert not list(waits_without_a_reason("async def a():\n    await asyncio.sleep(0)\n"))


def test_tests_reach_into_nothing_private():
    """A test that plants a fault in the code must name the code."""
    of_the_product = r"from (?:gateway|drivers)[\w.]* import (?:\([^)]*|[^\n(]*)\b_[a-zA-Z]"
    by_name = r"(?:set|del)attr\((?s:.{0,200}?)[\"'.]_[a-zA-Z]"
    assert found_in_tests(private_names, where=f"{of_the_product}|{by_name}", but=PLANT_FAULTS.__contains__) == []


def test_a_private_name_is_found():
    assert list(private_names("from gateway.web import _one\n")) == [1]
    assert list(private_names("monkeypatch.setattr(module, '_ONE', 1)\n")) == [1]
    assert list(private_names("patch.setattr('gateway.web.module._ONE', 1)\n")) == [1]
    assert not list(private_names("from aiohttp import _one\nmonkeypatch.setattr(module, 'ONE', '_one')\n"))


def long_without_a_reason(source: str) -> Iterator[int]:
    """The lines that put tests into the long suite without the reason why the fast one cannot have them."""
    tree = ast.parse(source)
    given = {
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.long" and node not in given:
            yield node.lineno


def test_a_long_test_says_why_it_is_one():
    assert found_in_tests(long_without_a_reason, where=r"mark\.long(?!\(\"[^\"\n]+\"\))") == []


def test_a_long_test_without_a_reason_is_found():
    assert list(long_without_a_reason("pytestmark = pytest.mark.long\n")) == [1]
    assert list(long_without_a_reason("@pytest.mark.long()\ndef test_it():\n    ...\n")) == [1]
    assert not list(long_without_a_reason("pytestmark = [pytest.mark.long('a real browser')]\n"))


MEASURES = {"Stopwatch", "watch_callbacks", "thread_time", "process_time", "perf_counter"}


def real_times(source: str) -> Iterator[int]:
    """The lines of fast tests that measure the time of something: on a busy machine it is another."""
    tree = ast.parse(source)
    marks = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    if any("pytest.mark.long(" in mark for mark in marks):
        return
    for test in ast.walk(tree):
        if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) or not test.name.startswith("test_"):
            continue
        if any("pytest.mark.long(" in ast.unparse(mark) for mark in test.decorator_list):
            continue
        for node in ast.walk(test):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] in MEASURES:
                yield node.lineno


def test_a_fast_test_puts_no_bound_on_real_time():
    elsewhere = found_in_tests(
        real_times, where="|".join(MEASURES), but=lambda name: name.startswith("tests/benchmarks/")
    )
    assert elsewhere == []


def test_a_bound_on_real_time_is_found():
    assert list(real_times("def test_it():\n    watch = Stopwatch()\n")) == [2]
    assert list(real_times("async def test_it():\n    began = time.thread_time()\n")) == [2]
    assert not list(real_times("@pytest.mark.long('an hour')\ndef test_it():\n    Stopwatch()\n"))
    assert not list(real_times("pytestmark = [pytest.mark.long('an hour')]\ndef test_it():\n    Stopwatch()\n"))


LONGEST_MODULE, LONGEST_FUNCTION = 600, 60


HEAD = re.compile(r"^( *)(async def|def|class|@)", re.MULTILINE)


def may_be_too_long(source: str) -> bool:
    """Return whether the heads of functions are so far apart that one may be too long. To parse takes far longer."""
    heads = [(source.count("\n", 0, head.start()), len(head[1]), head[2]) for head in HEAD.finditer(source)]
    heads.append((source.count("\n"), 0, ""))
    for place, (line, depth, kind) in enumerate(heads):
        end = next((below for below, outer, _ in heads[place + 1 :] if outer <= depth), line)
        if kind.endswith("def") and end - line > LONGEST_FUNCTION:
            return True
    return False


def too_long(source: str) -> Iterator[int]:
    """The line of each function that is too long, and 1 for a module that is."""
    if len(source.splitlines()) > LONGEST_MODULE:
        yield 1
    if not may_be_too_long(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            if node.end_lineno - first.lineno >= LONGEST_FUNCTION:
                yield node.lineno


def test_modules_and_functions_are_seen_at_a_glance():
    """A function's lines are counted from behind its docstring: what it promises may take its space."""
    files = [file for name in PACKAGES for file in (ROOT / name).rglob("*.py")]
    assert [f"{file.relative_to(ROOT)}:{line}" for file in files for line in too_long(file.read_text())] == []


def test_what_is_too_long_is_found():
    assert list(too_long("x = 1\n" * (LONGEST_MODULE + 1))) == [1]
    assert list(too_long('def f():\n    """Say."""\n' + "    x = 1\n" * 61)) == [1]
    assert not list(too_long('def f():\n    """Say.\n\n    More.\n    """\n' + "    x = 1\n" * 60))


QUESTION = re.compile(r"(?:How|What|Whatever|When|Where|Whether|Which|Who|Whoever|Whose|Why)\b")


def questions(source: str) -> Iterator[int]:
    """The lines of docstrings that open with a question word, where a noun or an imperative says more."""
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and QUESTION.match(ast.get_docstring(node) or ""):
            yield node.body[0].lineno


def test_docstrings_open_with_a_noun_or_an_imperative():
    files = [file for name in (*PACKAGES, "scripts", "tests") for file in (ROOT / name).rglob("*.py")]
    sources = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    asking = {name: source for name, source in sources.items() if re.search(f'"""{QUESTION.pattern}', source)}
    found = [f"{name}:{line}" for name, source in asking.items() for line in questions(source)]
    assert found == [], "open with a noun phrase for a class or a module, with an imperative for a function"


def test_a_docstring_that_opens_with_a_question_word_is_found():
    assert list(questions('"""What it is made of."""\n')) == [1]
    assert list(questions('def f():\n    """Whether it is there."""\n')) == [2]
    assert list(questions('class A:\n    """Whoever asks and acts."""\n')) == [2]
    assert not list(questions('"""Parts."""\ndef f():\n    """Return it."""\n    # What is said in a comment\n'))


MOST_PARAMETERS = 8


def crowded_constructors(source: str) -> Iterator[int]:
    """The line of each class that is built of too many parts.

    A context, whose name says so, may hold as many as a layer offers. A dataclass is a record, and may have many
    fields, unless it works: then it has asynchronous methods.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef) or node.name.endswith("Context"):
            continue
        given = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        counts = [len([*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]) - 1 for one in given]
        if any(isinstance(item, ast.AsyncFunctionDef) for item in node.body) and any(
            "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            fields = [ast.unparse(item) for item in node.body if isinstance(item, ast.AnnAssign)]
            counts.append(sum("init=False" not in field and "ClassVar" not in field for field in fields))
        if any(count > MOST_PARAMETERS for count in counts):
            yield node.lineno


def test_no_constructor_takes_more_than_eight_parts():
    files = {str(file.relative_to(ROOT)): file for name in PACKAGES for file in (ROOT / name).rglob("*.py")}
    found = {name: list(crowded_constructors(file.read_text())) for name, file in files.items()}
    assert [name for name, lines in found.items() if lines] == [], "hand down a context, or what belongs together"


def test_a_constructor_of_too_many_parts_is_found():
    nine = ", ".join("abcdefghi")
    assert list(crowded_constructors(f"class A:\n    def __init__(self, {nine}):\n        ...\n")) == [1]
    assert list(crowded_constructors(f"class A:\n    def __init__(self, *, {nine}):\n        ...\n")) == [1]
    assert not list(crowded_constructors(f"class A:\n    def __init__(self, {nine[3:]}):\n        ...\n"))
    fields = "".join(f"    {name}: int\n" for name in "abcdefghi")
    working = f"@dataclass\nclass A:\n{fields}    async def run(self): ...\n"
    assert list(crowded_constructors(working)) == [2]
    assert not list(crowded_constructors(working.replace("class A", "class AContext")))
    assert not list(crowded_constructors(f"@dataclass\nclass A:\n{fields}"))


NAME = re.compile(r"`([a-z_]+(?:\.[a-z_]+)*)`")


def missing_names(package: Path) -> Iterator[str]:
    """The names in a package's docstring that are neither its modules nor defined in them.

    A module of another package is named in full.
    """
    words = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = list(package.glob("*.py"))
    for name in NAME.findall(words):
        path = name.replace(".", "/")
        if any(place.exists() for place in (ROOT / path, ROOT / f"{path}.py", package / path, package / name)):
            continue
        if "." in name:
            yield name
        elif name not in {module.stem for module in modules}:
            defined = re.compile(rf"^ *(?:async def|def|class) {name}\b|^{name}\b.* = ", re.MULTILINE)
            if not any(defined.search(module.read_text()) for module in modules):
                yield name


def test_package_docstrings_name_only_what_exists():
    packages = [file.parent for name in PACKAGES for file in (ROOT / name).rglob("__init__.py")]
    assert [f"{package.relative_to(ROOT)}: {name}" for package in packages for name in missing_names(package)] == []


def test_a_name_that_does_not_exist_is_found(tmp_path):
    (tmp_path / "__init__.py").write_text('"""`line` reads, `ask` asks, `gone` and `gateway.gone` went."""\n')
    (tmp_path / "line.py").write_text("async def ask(): ...\n")
    assert list(missing_names(tmp_path)) == ["gone", "gateway.gone"]
