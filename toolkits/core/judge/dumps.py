"""Child process that writes the arguments of several rounds as raw files, to run a solution without the judge.

python -P -m toolkits.core.judge.dumps REQUEST.json
"""

import sys
from pathlib import Path

import torch

from toolkits.core.judge.dump import dump
from toolkits.core.rounds import RoundsRequest

if __name__ == "__main__":
    torch.set_num_threads(1)
    for request in RoundsRequest.model_validate_json(Path(sys.argv[1]).read_bytes()).rounds:
        dump(request)
