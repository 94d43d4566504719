"""Inputs, float64 reference and exact symmetry of the corpus's task."""

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    rows, columns = axes["rows"], axes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    pick = torch.randint(rows, (rows,), generator=generator, dtype=torch.int32)
    if distribution == "wide":
        x = x * 40
    elif distribution == "masked":
        mask = torch.rand(rows, columns, generator=generator) < 1 / 3
        mask[:, columns // 2] = False
        x = x.masked_fill(mask, float("-inf"))
    elif distribution == "one_row":
        pick = pick[:1].expand(rows).clone()
    return {"x": x, "pick": pick}


def reference(inputs: Tensors) -> Tensors:
    rows = inputs["x"][inputs["pick"].long()].double()
    return {"y": rows.softmax(-1), "best": rows.argmax(-1)}


def refresh(inputs: Tensors, expected: Tensors, generator: Generator) -> tuple[Tensors, Tensors]:
    """Move the rows of x and, independently, the order in which they are picked."""
    count = len(inputs["pick"])
    order, turn = torch.randperm(count, generator=generator), torch.randperm(count, generator=generator)
    place = torch.empty_like(order)
    place[order] = torch.arange(count)
    pick = place[inputs["pick"][turn].long()].int()
    return {"x": inputs["x"][order], "pick": pick}, {name: value[turn] for name, value in expected.items()}
