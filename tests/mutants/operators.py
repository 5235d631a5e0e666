"""The places where a source file can be changed, and what each becomes."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_OPPOSITES = ("min max", "least greatest", "any all", "lead lag", "first last", "floor ceil")
_SWAPPED = {a: b for pair in map(str.split, _OPPOSITES) for a, b in (pair, pair[::-1])}

Change = tuple[str, str, str, str]

# What is pure, wherever its room: formats, rules over one segment or log, rules over tables.
# A file belongs to the first group that has a pattern for it.
GROUPS = {
    "wire": tuple(f"kafka/{room}/*.py" for room in ("codecs", "text", "tier", "wire")),
    "index": (
        "kafka/index/*/*.py",
        "kafka/broker_rules/*.py",
        "kafka/broker_rules/*/*.py",
        "verbs/judge/audit/decide/*.py",
        "verbs/change/compact/decide/*.py",
        "verbs/find/search/first_record.py",
        "engine/rows/freshness.py",
    ),
    "decide": (
        "verbs/*/*/decide.py",
        "verbs/scan/decide/*.py",
        "verbs/change/migrate/decide/*.py",
        "verbs/judge/retention/decide/*.py",
        "verbs/judge/roll/decide/*.py",
        "verbs/find/search/decide/*.py",
        "verbs/find/lag/decide/*.py",
        "engine/tables/as_of.py",
        "engine/tables/long_arithmetic.py",
        "engine/derived/timestamps.py",
    ),
    # Those of copies, backups, crashes, internal topics, checks:
    "verdicts": (
        "verbs/*/*/decide/*.py",
        "verbs/*/*/*/decide/*.py",
        "engine/derived/expired_but_kept.py",
        "engine/derived/written_times.py",
    ),
    "messages": ("kafka/messages/*.py",),
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: ``source[start:end]``, in bytes, becomes ``text``.

    ``number`` tells equal changes of one function apart.
    """

    path: str  # below the package
    function: str  # its qualified name, empty: the module itself
    line: int
    before: str
    after: str
    number: int
    start: int
    end: int
    text: str

    @property
    def group(self) -> str:
        """Return the one of ``GROUPS`` that its file belongs to."""
        return next(
            name
            for name, patterns in GROUPS.items()
            if any(PurePosixPath(self.path).match(pattern) for pattern in patterns)
        )

    @property
    def change(self) -> Change:
        """Name the change, whatever lines come and go above it."""
        return self.path, self.function, self.before, self.after

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """Name the mutant alone."""
        return *self.change, self.number

    def rank(self, seed: int) -> bytes:
        """Give its place in the order of a seed; it stays when other places change."""
        return hashlib.sha256(repr((seed, self.key)).encode()).digest()

    def applied(self, source: bytes) -> bytes:
        """Give the changed file."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def mutants_of(package: Path, groups: Iterable[str] = GROUPS) -> list[Mutant]:
    """Find every mutant of the groups' modules."""
    patterns = [pattern for group in groups for pattern in GROUPS[group]]
    files = sorted({path for pattern in patterns for path in package.glob(pattern)})
    return [
        mutant
        for path in files
        for mutant in _Places(path.relative_to(package).as_posix(), path.read_bytes()).mutants()
    ]


class _Places:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.decode().splitlines()
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def mutants(self) -> Iterator[Mutant]:
        yield from self._walk(ast.parse(self._source), "", frozenset())

    def _walk(self, node: ast.AST, function: str, kept: frozenset[str]) -> Iterator[Mutant]:
        """``kept``: names with more than one assignment, of which one can be dropped."""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
            if isinstance(node, ast.FunctionDef):
                kept = _assigned_twice(node)
        for place, text in _changes(node, kept):
            yield from self._mutant(place, text, function)
        for child in _parts(node):
            yield from self._walk(child, function, kept)

    def _mutant(self, place: ast.AST, text: str, function: str) -> Iterator[Mutant]:
        assert isinstance(place, ast.expr | ast.stmt)
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        start = self._starts[place.lineno - 1] + place.col_offset
        end = self._starts[place.end_lineno - 1] + place.end_col_offset
        whole = (self._starts[place.lineno - 1], self._starts[place.end_lineno])
        before = _one_line(self._source[whole[0] : whole[1]])
        changed = self._source[whole[0] : start] + text.encode() + self._source[end : whole[1]]
        after = _one_line(changed)
        if before == after:
            return
        self._seen[function, before, after] += 1
        number = self._seen[function, before, after]
        yield Mutant(self._path, function, place.lineno, before, after, number, start, end, text)


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Give what of a node has an effect: no annotations, decorators, messages or docstrings."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return
    if isinstance(node, ast.FunctionDef):
        yield from (*node.args.defaults, *(default for default in node.args.kw_defaults if default))
        yield from node.body
    elif isinstance(node, ast.ClassDef):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.value
    else:
        yield from ast.iter_child_nodes(node)


def _assigned_twice(function: ast.FunctionDef) -> frozenset[str]:
    stored = [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    arguments = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    counts = Counter(stored)
    return frozenset(name for name in counts if counts[name] > 1 or name in arguments)


def _changes(node: ast.AST, kept: frozenset[str]) -> Iterator[tuple[ast.AST, str]]:
    """Give (what is replaced, by which text)."""
    if isinstance(node, ast.expr):
        yield from _changed_expression(node)
    elif isinstance(node, ast.If):
        yield node.test, f"not ({ast.unparse(node.test)})"
    elif isinstance(node, ast.Return) and node.value is not None:
        if not isinstance(node.value, ast.Constant):
            yield node, "return None"
    elif isinstance(node, ast.AugAssign):
        yield node, "pass"
    elif isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Call):
            yield node, "pass"
    elif isinstance(node, ast.Assign) and all(_can_be_left_out(t, kept) for t in node.targets):
        yield node, "pass"


def _can_be_left_out(target: ast.expr, kept: frozenset[str]) -> bool:
    if isinstance(target, ast.Name):
        return target.id in kept
    return isinstance(target, ast.Attribute | ast.Subscript)


def _changed_expression(node: ast.expr) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            ops = [*node.ops]
            ops[number] = _COMPARED[type(operator)]()
            yield node, _text(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, _text(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED and not _is_text(node):
        yield node, _text(ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))
    elif isinstance(node, ast.UnaryOp):
        yield node, _text(node.operand)
    elif isinstance(node, ast.IfExp):
        yield node, _text(ast.IfExp(node.test, node.orelse, node.body))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node.value, int):
            yield node, str(node.value - 1 if node.value % 2 else node.value + 1)
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        if name in _SWAPPED:
            yield node.func, called.removesuffix(name) + _SWAPPED[name]


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.JoinedStr)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
