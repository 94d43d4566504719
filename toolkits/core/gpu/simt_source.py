"""CUDA and HIP sources as C++ for the emulation: launches and shared variables are rewritten, line by line the same.

A transformation of tokens, not of the language: it leaves alone what it does not know. Runs nothing.
"""

from dataclasses import dataclass

from toolkits.core.gpu.simt_tokens import Token, angle_opening, closing, opening, tokens

PAD_BYTES = 4096
"""Between two shared variables of a checking build: what runs past one is seen."""
_THREAD_LOCAL = "__thread __attribute__((used))"
"""Used: else the compiler would take what nobody writes for zero, and leave out what nobody reads."""
_JOINS = ("::", ".", "->")
_ALIGNMENTS = ("__align__", "alignas", "__attribute__", "__builtin_align__")


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def rewritten(text: str, *, checking: bool = False) -> str:
    """The source as g++ takes it after simt.h; every line keeps its number."""
    found = tokens(text)
    edits: list[_Edit] = []
    for index, token in enumerate(found):
        if token.text == "<<<":
            edits += _launch(text, found, index)
        elif token.text == "__shared__":
            edits += _shared(text, found, index, checking=checking)
        elif token.text == "__noinline__" and found[index - 1].text not in ("(", ","):
            edits.append(_Edit(token.start, token.end, "__attribute__((noinline))"))
    return _edited(text, edits)


def _edited(text: str, edits: list[_Edit]) -> str:
    parts, done = list[str](), 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[done : edit.start], edit.text]
        done = max(done, edit.end)
    return "".join([*parts, text[done:]])


# --- launches ------------------------------------------------------------------------------------------------------


def _launch(text: str, found: list[Token], index: int) -> list[_Edit]:
    """`kernel<2><<<grid, block>>>` becomes a callable; the call's own parentheses stay where they are."""
    first, end = launched(found, index), _end_of_configuration(found, index)
    if first == index or end is None:
        return []
    callee = text[found[first].start : found[index - 1].end]
    name = callee.partition("<")[0].rpartition("::")[2].strip().replace('"', "").replace("\n", " ")
    after = f'), "{name}", [&](auto... simt_a) {{ {callee}(simt_a...); }})'
    return [
        _Edit(found[first].start, found[index].end, "simt::launcher(simt::Configuration("),
        _Edit(found[end].start, found[end].end, after),
    ]


def launched(found: list[Token], index: int) -> int:
    """The first token of the kernel's name before `<<<`: `space::kernel<float, 4>`, `table[i]`, `(pointer)`."""
    at = index
    while at > 0:
        before = found[at - 1]
        if before.text in (">", ">>", ">>>"):
            at = angle_opening(found, at - 1)
            continue
        if before.text in (")", "]"):
            at = opening(found, at - 1)
            if before.text == "]":
                continue
        elif before.kind == "word":
            at -= 1
        else:
            return at
        if at > 0 and found[at - 1].text == "template":
            at -= 1
        if at == 0 or found[at - 1].text not in _JOINS:
            return at
        at -= 1
    return at


def _end_of_configuration(found: list[Token], index: int) -> int | None:
    at = index + 1
    while at < len(found):
        if found[at].text in ("(", "[", "{"):
            at = closing(found, at)
        elif found[at].text == ">>>":
            return at
        elif found[at].text in (";", ")", "}"):
            return None
        at += 1
    return None


# --- shared variables ----------------------------------------------------------------------------------------------


def _shared(text: str, found: list[Token], index: int, *, checking: bool) -> list[_Edit]:
    """A thread-local variable of the library stands for it: one thread runs all, block by block."""
    first = _first_of_declaration(found, index)
    last = _last_of_declaration(found, index)
    words = [token.text for token in found[first:index]]
    if "extern" in words and last:
        return _dynamic(text, found, first, last)
    static = _THREAD_LOCAL if "static" in words else f"static {_THREAD_LOCAL}"
    place = found[index]
    if not checking or not last:
        return [_Edit(place.start, place.end, static)]
    # Where the linker puts them is its own choice: what runs past the first or the last one meets a pad too.
    before = f"static {_THREAD_LOCAL} {_pad(place)}; " if first == index else ""
    return [_Edit(place.start, place.end, before + static), *_pads(text, found, index, last)]


def _first_of_declaration(found: list[Token], index: int) -> int:
    first = index
    while first > 0 and found[first - 1].kind == "word":
        first -= 1
    return first


def _last_of_declaration(found: list[Token], index: int) -> int | None:
    at = index
    while at < len(found):
        if found[at].text in ("(", "[", "{"):
            at = closing(found, at)
        elif found[at].text == ";":
            return at
        at += 1
    return None


def _dynamic(text: str, found: list[Token], first: int, last: int) -> list[_Edit]:
    """`extern __shared__ T name[]` becomes a pointer to where the launch has its dynamic part."""
    kept = _without_storage(found[first:last])
    sizes = next((at for at, token in enumerate(kept) if token.text == "["), 0)
    if not sizes:
        return []
    type_ = " ".join(token.text for token in kept[: sizes - 1])
    name, inner = kept[sizes - 1].text, "".join(token.text for token in kept[closing(kept, sizes) + 1 :])
    pointer = f"(*const {name}){inner}" if inner else f"* const {name}"
    cast = f"({type_} (*){inner})" if inner else f"({type_}*)"
    lines = "\n" * text.count("\n", found[first].start, found[last].start)
    declared = f"[[maybe_unused]] {type_} {pointer} = {cast}simt::dynamic_shared(){lines}"
    return [_Edit(found[first].start, found[last].start, declared)]


def _without_storage(declaration: list[Token]) -> list[Token]:
    """The declaration without extern, `__shared__` and alignment."""
    kept: list[Token] = []
    at = 0
    while at < len(declaration):
        if declaration[at].text in _ALIGNMENTS and at + 1 < len(declaration):
            at = closing(declaration, at + 1)
        elif declaration[at].text not in ("extern", "__shared__", "static"):
            kept.append(declaration[at])
        at += 1
    return kept


def _pads(text: str, found: list[Token], index: int, last: int) -> list[_Edit]:
    """One variable a declaration, and after each some memory that belongs to nobody."""
    names = _declarators(found, index, last)
    head = text[found[index].end : found[names[0]].start] if names else ""
    edits: list[_Edit] = []
    for at in (*(name - 1 for name in names[1:]), last):
        pad = f"; static {_THREAD_LOCAL} {_pad(found[at])}"
        again = f"; static {_THREAD_LOCAL} {head} " if at != last else ";"
        edits.append(_Edit(found[at].start, found[at].end, pad + again))
    return edits


def _pad(place: Token) -> str:
    return f"char simt_pad_{place.start}[{PAD_BYTES}]"


def _declarators(found: list[Token], index: int, last: int) -> list[int]:
    """Where each declared variable begins: the name, with the stars before it."""
    starts: list[int] = []
    at, depth = index + 1, 0
    while at <= last:
        token = found[at]
        if token.text in ("(", "[", "{"):
            at = closing(found, at) + 1
            continue
        depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
        if depth <= 0 and not starts and found[at + 1 if at < last else at].text in ("[", ",", ";", "="):
            first = at
            while found[first - 1].text == "*":
                first -= 1
            starts.append(first)
        elif depth <= 0 and token.text == "," and starts:
            starts.append(at + 1)
        at += 1
    return starts
