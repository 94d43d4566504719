"""A person with one client: a home of their own, their own configuration, and a scripted model behind the client."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from tests import agent_programs
from tests.agent_programs import bare_environment

TOKEN = "the-token-of-this-test"
PATIENCE_S = 280
SOLUTION = Path(__file__).parents[2] / "kernels" / "kmeans_assign" / "solutions" / "simd"
"""In C++."""


@dataclass(frozen=True)
class Way:
    """How a client is set up and started without a terminal."""

    program: Callable[[], Path]
    configs: dict[str, str]
    """Files under the person's home, as they were before the lab came; MODEL stands for the model's address."""
    environment: dict[str, str]
    command: str
    """After the program; PROMPT stands for what is asked."""
    config: str = ""
    """The file under the home that `attach` edits; empty: the client changes its own."""


CLAUDE = Way(
    agent_programs.claude,
    {},
    {"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": "MODEL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    "-p PROMPT --output-format stream-json --verbose --model claude-sonnet-4-5 --allowedTools mcp__kernel-lab "
    "--permission-mode dontAsk",
)
CODEX = Way(
    agent_programs.codex,
    {
        ".codex/config.toml": '# mine\nmodel = "m"\nmodel_provider = "f"\n\n[model_providers.f] # too\nname = "f"\n'
        'base_url = "MODEL/v1"\nenv_key = "THE_KEY"\nwire_api = "responses"\n\n[analytics]\nenabled = false\n\n'
        "[features] # asks no one but the model\napps = false\nplugins = false\nremote_plugin = false\n"
        "tool_suggest = false\nskill_search = false"  # no line end: it must come back so
    },
    {"THE_KEY": "dummy"},
    "exec --json --skip-git-repo-check -s read-only PROMPT",
    ".codex/config.toml",
)
OPENCODE = Way(
    agent_programs.opencode,
    {
        ".config/opencode/opencode.jsonc": """{
  "$schema": "https://opencode.ai/config.json", // mine
  "provider": {"f": {"npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "MODEL/v1", "apiKey": "{env:THE_KEY}"},
    "models": {"m": {"tool_call": true, "limit": {"context": 128000, "output": 8192}}}}},
  "model": "f/m", "small_model": "f/m", "autoupdate": false, "share": "disabled",
  /* none yet */ "mcp": {},
}
"""
    },
    {
        "THE_KEY": "dummy",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "npm_config_offline": "true",
    },
    "run --format json PROMPT",
    ".config/opencode/opencode.jsonc",
)
QWEN = Way(
    agent_programs.qwen,
    {".qwen/settings.json": '{\n  // mine\n  "ui": {"hideTips": true},\n  "$version": 4\n}\n'},
    {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": "MODEL/v1", "OPENAI_MODEL": "m"},
    "PROMPT --auth-type openai --output-format stream-json --approval-mode default",
    ".qwen/settings.json",
)
WAYS = {"claude": CLAUDE, "codex": CODEX, "opencode": OPENCODE, "qwen": QWEN}


@dataclass
class Person:
    """One client's user, in a folder of theirs, with a lab of their own."""

    name: str
    home: Path
    more: dict[str, str] = field(default_factory=dict[str, str])
    """Environment beyond the client's needs."""

    def __post_init__(self) -> None:
        self.way = WAYS[self.name]
        self.folder = self.home / "work"
        self.folder.mkdir(parents=True)
        programs = self.home / "bin"
        programs.mkdir()
        (programs / self.name).symlink_to(self.way.program())
        self.environment = (
            bare_environment(
                self.home,
                KERNEL_LAB_ROOT=str(self.root),
            )
            | self.more
        )
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def behind(self, url: str) -> None:
        """Set the client up with a model at that address."""
        self.environment |= {name: value.replace("MODEL", url) for name, value in self.way.environment.items()}
        for file, text in self.way.configs.items():
            (self.home / file).parent.mkdir(parents=True, exist_ok=True)
            (self.home / file).write_text(text.replace("MODEL", url), encoding="utf-8")

    @property
    def root(self) -> Path:
        return self.home / "lab"

    @property
    def config(self) -> bytes:
        """The file of the client that `attach` edits; empty where the client edits its own."""
        return (self.home / self.way.config).read_bytes() if self.way.config else b""

    @property
    def ledger(self) -> Ledger:
        return Ledger(Workspace(self.root).database)

    def lab(self, *words: str) -> str:
        """What `kernel-lab` prints for this person; it must end well."""
        done = self.run([sys.executable, "-P", "-m", "mcp_server", *words])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def lab_refuses(self, *words: str) -> str:
        done = self.run([sys.executable, "-P", "-m", "mcp_server", *words])
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr

    def ask(self, prompt: str) -> str:
        """The client's output, from a whole conversation."""
        done = self.run(self.asking(prompt))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return done.stdout

    def asking(self, prompt: str) -> list[str]:
        return [str(self.way.program()), *(prompt if word == "PROMPT" else word for word in self.way.command.split())]

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, prompt: str) -> subprocess.Popen[bytes]:
        """The client in a process group of its own, its output in a file of the home."""
        with (self.home / "output.txt").open("wb") as output:
            return subprocess.Popen(
                self.asking(prompt),
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def own_solution(self) -> Path:
        """A folder of theirs with a C++ solution of kmeans_assign."""
        return shutil.copytree(SOLUTION, self.folder / "mine")


@dataclass(frozen=True)
class Served:
    """A lab over HTTP in a process of its own."""

    url: str
    root: Path
    token: str = TOKEN


@contextmanager
def served(home: Path, **more: str) -> Generator[Served]:
    """Solutions may lie anywhere under the folder that holds `home`; `more` is its environment."""
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--root", str(home / "lab")]
    environment = bare_environment(home, KERNEL_LAB_ADMIN_TOKEN=TOKEN) | more
    with subprocess.Popen(command, cwd=home.parent, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield Served(json.loads(process.stdout.readline())["url"], home / "lab")
        process.terminate()
