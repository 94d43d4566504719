"""What in a Python source a kernel has hardly any business with. Reads the syntax tree; runs and imports nothing.

Names are followed through aliases, `getattr` with a constant, `__import__`, `importlib` and `sys.modules`; what cannot
be followed is itself worth a look.
"""

import ast
import warnings
from collections.abc import Iterator

from toolkits.core.scan_names import FAMILIES, MODULES, USES

Seen = tuple[int, str]
"""Line, and what is there with the reason to look."""

TENSOR_ID = ("data_ptr", "untyped_storage")
LOOKUPS = ("get", "setdefault", "pop")


def scan(text: str) -> list[Seen]:
    """Everything that is worth a look, in the order of the lines; nothing of a text that is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, say
            tree = ast.parse(text)
        return sorted(set(_Scan(tree).seen()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


class _Scan:
    """One source with the names that stand for modules and their parts."""

    def __init__(self, tree: ast.Module) -> None:
        self._nodes = list(ast.walk(tree))
        self._named: dict[str, str] = {}
        self._imported: set[str] = set()
        self._identities: set[str] = set()
        for node in self._nodes:
            self._learn_import(node)
        for node in self._nodes:  # after the imports, whose names the right sides use
            self._learn_assignment(node)

    def _learn_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                self._named[alias.asname or top] = alias.name if alias.asname else top
                self._imported.add(top)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._named[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            self._imported.add(node.module.split(".")[0])

    def _learn_assignment(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign) or node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                if (path := self._path(node.value)) and self._known(path):
                    self._named.setdefault(target.id, path)
                if self._holds_identity(node.value):
                    self._identities.add(target.id)

    def _known(self, path: str) -> bool:
        return path.split(".")[0] in self._imported or path in USES or path in ("getattr", "setattr", "__import__")

    def seen(self) -> Iterator[Seen]:
        for node in self._nodes:
            line = getattr(node, "lineno", 0)
            yield from ((line, what) for what in self._at(node))

    def _at(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _module(alias.name)
            case ast.ImportFrom(module=str(module), names=names):
                yield from _module(module)
                for alias in names:
                    yield from _use(f"{module}.{alias.name}")
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from self._changed(target)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                yield from self._changed(target)
            case ast.Call():
                yield from self._called(node)
            case ast.Name() | ast.Attribute():
                yield from _use(self._path(node))
            case ast.Subscript(slice=key):
                if self._holds_identity(key):
                    yield "looks up by a tensor's address: new content may stand at the same place"
            case ast.Compare(left=left, comparators=others):
                if any(self._is_identity(side) for side in (left, *others)):
                    yield "compares a tensor's address: new content may stand at the same place"
            case ast.ClassDef(bases=bases):
                if any(self._path(base) in ("torch.Tensor", "torch.nn.Parameter") for base in bases):
                    yield "a class of tensors of its own: it may compute when it is looked at"
            case ast.FunctionDef(body=body):
                yield from self._falls_back(body)
            case _:
                return

    def _called(self, node: ast.Call) -> Iterator[str]:
        path = self._path(node.func)
        if path in ("__import__", "importlib.import_module", "builtins.__import__"):
            name = _text(node.args[0]) if node.args else None
            yield from _module(name) if name is not None else ["imports a module whose name is not in the text"]
        elif path == "getattr" and len(node.args) > 1:
            if _text(node.args[1]) is None and self._is_module(node.args[0]):
                yield "getattr of a module with a name that is not in the text"
            yield from _use(self._path(node))
        elif path in ("setattr", "delattr") and node.args and self._is_module(node.args[0]):
            yield f"{path} changes {self._path(node.args[0])} for everybody in the process"
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("__setattr__", "__delattr__") and any(map(self._is_module, (node.func, *node.args[:1]))):
            yield "changes a module for everybody in the process"
        if name in LOOKUPS and node.args and self._holds_identity(node.args[0]):
            yield "looks up by a tensor's address: new content may stand at the same place"
        elif name == "update" and isinstance(node.func, ast.Attribute) and self._is_namespace(node.func.value):
            yield "changes the names of a module for everybody in the process"

    def _changed(self, target: ast.AST) -> Iterator[str]:
        """What an assignment changes beyond the kernel's own names."""
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                yield from self._changed(part)
        elif isinstance(target, ast.Attribute):
            if target.attr in ("__code__", "__class__", "__globals__", "__builtins__"):
                yield f"replaces {target.attr}: another function or type under the same name"
            elif self._is_module(target.value):
                yield f"changes {self._path(target)} for everybody in the process"
        elif isinstance(target, ast.Subscript) and self._is_namespace(target.value):
            yield "changes the names of a module for everybody in the process"

    def _falls_back(self, body: list[ast.stmt]) -> Iterator[str]:
        """A body that is one try, whose handler does the work in another way."""
        body = [statement for statement in body if not _is_text(statement)]
        if len(body) == 1 and isinstance(body[0], ast.Try):
            work = [part for handler in body[0].handlers for part in handler.body if not isinstance(part, ast.Raise)]
            if any(isinstance(node, ast.Call) for part in work for node in ast.walk(part)):
                yield "falls back to other code after a failure: what is timed may not be the kernel"

    def _is_module(self, node: ast.AST) -> bool:
        """Whether it is an imported module or a part of one, such as torch.Tensor."""
        path = self._path(node)
        return bool(path) and path.split(".")[0] in self._imported

    def _is_namespace(self, node: ast.AST) -> bool:
        """`vars(module)`, `module.__dict__`, `globals()` or `sys.modules`."""
        if isinstance(node, ast.Call):
            path = self._path(node.func)
            return path == "globals" or (path == "vars" and bool(node.args) and self._is_module(node.args[0]))
        path = self._path(node)
        return path == "sys.modules" or (path.endswith(".__dict__") and self._is_module(node))

    def _holds_identity(self, node: ast.AST) -> bool:
        return any(self._is_identity(part) for part in ast.walk(node))

    def _is_identity(self, node: ast.AST) -> bool:
        """`x.data_ptr()`, `id(x)`, or a name that was given one."""
        if isinstance(node, ast.Call):
            named = node.func.attr if isinstance(node.func, ast.Attribute) else self._path(node.func)
            return named in (*TENSOR_ID, "id")
        return isinstance(node, ast.Name) and node.id in self._identities

    def _path(self, node: ast.AST) -> str:
        """The dotted name that an expression stands for, aliases resolved; empty if it is none."""
        match node:
            case ast.Name(id=name):
                return self._named.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{base}.{attr}" if (base := self._path(value)) else ""
            case ast.Call(func=func, args=[first, second, *_]) if self._path(func) == "getattr":
                attr, base = _text(second), self._path(first)
                return f"{base}.{attr}" if attr and base else ""
            case ast.Call(func=func, args=[first, *_]) if self._path(func) in ("__import__", "importlib.import_module"):
                name = _text(first) or ""
                self._imported.add(name.split(".")[0])
                return name
            case ast.Subscript(value=value, slice=key) if self._path(value) == "sys.modules":
                name = _text(key) or ""
                self._imported.add(name.split(".")[0])
                return name
            case _:
                return ""


def _module(name: str) -> Iterator[str]:
    for prefix, why in MODULES.items():
        if f"{name}.".startswith(f"{prefix}."):
            yield f"imports {name}: {why}"


def _use(path: str) -> Iterator[str]:
    family = next((why for prefix, why in FAMILIES.items() if path.startswith(prefix)), "")
    if why := USES.get(path, family):
        yield f"uses {path}: {why}"


def _text(node: ast.AST) -> str | None:
    """The constant text that an expression is, put together from its parts."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _text(left), _text(right)
            return first + second if first is not None and second is not None else None
        case ast.JoinedStr(values=parts):
            texts = [_text(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
            return None if None in texts else "".join(text for text in texts if text)
        case _:
            return None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
