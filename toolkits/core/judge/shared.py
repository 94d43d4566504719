"""What the judge and its workers share of one set of axes: inputs that all see, outputs and workspaces of each.

Where the task has a plan step, new content is drafted in the judge's own memory: what no plan may read is poison in the
shared one until the plans have returned.
"""

import secrets

import torch

from toolkits.core.judge.arena import Inputs, Outputs, Workspace
from toolkits.core.judge.inputs import Values
from toolkits.core.schema import Task


class Shared:
    """The tensors of one set of axes."""

    def __init__(self, task: Task, axes: dict[str, int]) -> None:
        self._task, self._axes = task, axes
        self.inputs = Inputs(task, axes)
        shared = self.inputs.tensors
        self._late = [name for name in shared if task.plan and name not in task.plan.inputs]
        self._concealed = False
        self.drafts = {name: torch.zeros_like(tensor) for name, tensor in shared.items()} if task.plan else shared
        """Where content is written before it is published: the shared inputs themselves, if nobody plans."""
        self._outputs: dict[str, Outputs] = {}
        self._workspaces: dict[str, Workspace] = {}
        # A worker learns nothing from it: neither what is timed nor what comes next.
        self.slot = secrets.randbits(62)

    def write(self, values: Values) -> None:
        """New content at the same address."""
        for name, tensor in self.drafts.items():
            tensor.copy_(values[name])
        self.publish()

    def publish(self) -> None:
        """Show what was drafted, to plans only what they may read."""
        for name, tensor in self.inputs.tensors.items():
            if name not in self._late:
                tensor.copy_(self.drafts[name])
        self._concealed = False
        self.conceal()

    def conceal(self) -> None:
        """Poison what no plan may read, if it was revealed."""
        if not self._concealed:
            for place in map(self.inputs.places.__getitem__, self._late):
                self.inputs.span(place).fill_(place.poison)
        self._concealed = True

    def reveal(self) -> None:
        """Write the rest of the content: plans have returned."""
        for name in self._late:
            self.inputs.tensors[name].copy_(self.drafts[name])
        self._concealed = False

    def outputs(self, who: str) -> Outputs:
        """A worker's outputs, as new: an earlier candidate's answers may still be there."""
        if who not in self._outputs:
            self._outputs[who] = Outputs(self._task, self._axes)
        outputs = self._outputs[who]
        outputs.restore_guards()
        outputs.accepted = {}
        outputs.poison()
        return outputs

    def workspace(self, who: str) -> Workspace:
        """What a worker's plan may write for its run."""
        if who not in self._workspaces:
            self._workspaces[who] = Workspace(self._task, self._axes)
        self._workspaces[who].restore_guards()
        return self._workspaces[who]

    def close(self) -> None:
        for part in (self.inputs, *self._outputs.values(), *self._workspaces.values()):
            part.close()
