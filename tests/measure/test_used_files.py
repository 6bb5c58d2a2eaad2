"""The files of a repository that a program opens or imports are noted, and no others."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import Server

from finding_tickets.measure.processes.isolation import Task, TaskOutcome
from finding_tickets.measure.tasks import RUN, RunJob
from finding_tickets.verify.evidence import collect_files


@dataclass(frozen=True)
class Program:
    """A script, the files beside it, and which of them it uses, by hand."""

    code: str
    uses: str = ""  # beside the script itself
    files: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], object] | None = None


def text(*names: str) -> dict[str, str]:
    """Files that hold a digit each."""
    return dict.fromkeys(names, "1")


def extension(folder: Path) -> None:
    """Copy an extension module of the standard library into a package."""
    (source,) = Path(sysconfig.get_path("stdlib")).glob("lib-dynload/_bisect.*.so")
    shutil.copy(source, folder / "native/_bisect.so")


def arrays(folder: Path) -> None:
    """Save two arrays."""
    for name in ("a.npy", "b.npy"):
        np.save(folder / name, np.zeros(3))


def tensors(folder: Path) -> None:
    """Save two tensors."""
    for name in ("a.pt", "b.pt"):
        torch.save(torch.zeros(3), folder / name)


def archive(folder: Path) -> None:
    """Put a module into an archive."""
    (folder / "inside").mkdir()
    (folder / "inside/zipped.py").write_text("X = 1\n")
    shutil.make_archive(str(folder / "lib"), "zip", folder / "inside")
    shutil.rmtree(folder / "inside")


LOADS = """
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, at):
        return int(open(f"rows/{at}.txt").read())
list(torch.utils.data.DataLoader(Rows(), num_workers=2))
"""
FORKS = """
import multiprocessing
def read():
    open("a.txt").read()
child = multiprocessing.get_context("fork").Process(target=read)
child.start()
child.join()
"""
PROGRAMS = {
    "open": Program("open('data/a.txt').read()", "data/a.txt", text("data/a.txt", "data/b.txt")),
    "a path": Program(
        "from pathlib import Path\nPath('a.txt').read_text(); Path('b.bin').resolve().read_bytes()",
        "a.txt b.bin",
        text("a.txt", "b.bin"),
    ),
    "a descriptor": Program(
        "import os\nos.read(os.open('a.txt', os.O_RDONLY), 1)\nos.fdopen(os.open(b'b.txt', 0)).read()",
        "a.txt b.txt",
        text("a.txt", "b.txt"),
    ),
    "another current folder": Program(
        "import os\nos.chdir('data')\nopen('a.txt').read()", "data/a.txt", text("data/a.txt", "a.txt")
    ),
    "formats of the standard library": Program(
        "import json, configparser, csv, tomllib\n"
        "json.load(open('a.json')); configparser.ConfigParser().read('b.ini')\n"
        "list(csv.reader(open('c.csv'))); tomllib.load(open('d.toml', 'rb'))",
        "a.json b.ini c.csv d.toml",
        {"a.json": "1", "b.ini": "[b]", "c.csv": "1", "d.toml": "a = 1"},
    ),
    "memory of a file": Program(
        "import mmap\nfile = open('a.txt', 'rb')\nmmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)",
        "a.txt",
        text("a.txt"),
    ),
    "arrays": Program(
        "import numpy\nnumpy.load('a.npy'); numpy.load('b.npy', mmap_mode='r')\n"
        "numpy.fromfile('c.bin', 'u1'); numpy.loadtxt('d.txt'); numpy.memmap('e.bin', 'u1', 'r')",
        "a.npy b.npy c.bin d.txt e.bin",
        text("c.bin", "d.txt", "e.bin"),
        arrays,
    ),
    "tensors": Program(
        "import torch\ntorch.load('a.pt'); torch.load('b.pt', mmap=True)",
        "a.pt b.pt",
        {},
        tensors,
    ),
    "tensors that it saves itself": Program(
        "import torch\ntorch.save(torch.zeros(3), 'a.pt')\ntorch.load('a.pt')"
    ),
    "a tensor that C code reads": Program(
        "import torch\ntorch.from_file('a.bin', size=1, dtype=torch.uint8)", "", text("a.bin")
    ),
    "a package": Program(
        "import pkg.part",
        "pkg/__init__.py pkg/part.py",
        {"pkg/__init__.py": "", "pkg/part.py": "", "pkg/rest.py": ""},
    ),
    "imports within a package": Program(
        "from pkg import work\nwork()",
        "pkg/__init__.py pkg/late.py",
        {"pkg/__init__.py": "def work():\n    from . import late\n", "pkg/late.py": "", "pkg/rest.py": ""},
    ),
    "a package without a file of its own": Program(
        "import space.part", "space/part.py", {"space/part.py": ""}
    ),
    "the folder for sources": Program(
        "import lib", "src/lib/__init__.py", {"src/lib/__init__.py": "", "src/x.py": ""}
    ),
    "a module by its name": Program(
        "import importlib\nimportlib.import_module('plug.' + 'first')",
        "plug/first.py",
        {"plug/first.py": "", "plug/second.py": ""},
    ),
    "a module by its file": Program(
        "from importlib import util\nspec = util.spec_from_file_location('x', 'odd-name.py')\n"
        "spec.loader.exec_module(util.module_from_spec(spec))",
        "odd-name.py",
        {"odd-name.py": ""},
    ),
    "a module that is loaded again": Program(
        "import importlib, part\nimportlib.reload(part)", "part.py", {"part.py": ""}
    ),
    "an extension module": Program(
        "import native._bisect", "native/__init__.py native/_bisect.so", {"native/__init__.py": ""}, extension
    ),
    "a library": Program(
        "import ctypes\nctypes.CDLL('native/_bisect.so'); ctypes.CDLL('libc.so.6')",
        "native/_bisect.so",
        {"native/__init__.py": ""},
        extension,
    ),
    "an archive of modules": Program(
        "import sys\nsys.path.insert(0, 'lib.zip')\nimport zipped", "lib.zip", {}, archive
    ),
    "data of a package": Program(
        "import pkgutil\nfrom importlib.resources import files\n"
        "files('pkg').joinpath('a.txt').read_text(); pkgutil.get_data('pkg', 'b.txt')",
        "pkg/__init__.py pkg/a.txt pkg/b.txt",
        {"pkg/__init__.py": "", **text("pkg/a.txt", "pkg/b.txt", "pkg/c.txt")},
    ),
    "another script": Program("import runpy\nrunpy.run_path('other.py')", "other.py", {"other.py": "x = 1"}),
    "the text of code": Program("exec(open('code.txt').read())", "code.txt", {"code.txt": "x = 1"}),
    "the lines of a file": Program(
        "import linecache, fileinput\nlinecache.getline('a.txt', 1); list(fileinput.input('b.txt'))",
        "a.txt b.txt",
        text("a.txt", "b.txt"),
    ),
    "the names in a folder": Program(
        "import os, glob\nos.listdir('data'); list(os.scandir('data')); glob.glob('data/*')\n"
        "list(os.walk('.'))",
        "",
        text("data/a.txt", "a.txt"),
    ),
    "whether a file is there": Program(
        "import os, pathlib\nos.path.exists('a.txt'); os.stat('a.txt'); pathlib.Path('no.txt').is_file()",
        "",
        text("a.txt"),
    ),
    "a file that is not there": Program("try:\n    open('no.txt')\nexcept FileNotFoundError:\n    pass"),
    "a module that is not there": Program("try:\n    import override\nexcept ImportError:\n    pass"),
    "threads": Program(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    list(pool.map(lambda name: open(name).read(), ['a.txt', 'b.txt']))",
        "a.txt b.txt",
        text("a.txt", "b.txt"),
    ),
    "workers of a loader": Program(
        LOADS, "rows/0.txt rows/1.txt", text("rows/0.txt", "rows/1.txt", "rows/2.txt")
    ),
    "a process that is forked": Program(FORKS, "a.txt", text("a.txt")),
    "a program that is started": Program(
        "import subprocess, sys\nsubprocess.run(['cat', 'a.txt'])\n"
        "subprocess.run([sys.executable, '-c', 'open(\"b.txt\").read()'])",
        "",
        text("a.txt", "b.txt"),
    ),
    "a database, which C code reads": Program(
        "import sqlite3\nsqlite3.connect('a.db').execute('select * from sqlite_master').fetchall()",
        "",
        {"a.db": ""},
    ),
    "what it only writes": Program(
        "import os\nos.makedirs('out')\nopen('out/a.txt', 'w').write('1')\n"
        "open('out/b.txt', 'x').write('1'); open('log.txt', 'a').write('1')",
        "",
        text("log.txt"),
    ),
    "what it writes and reads": Program("open('a.txt', 'w').write('1')\nopen('a.txt').read()"),
    "what it reads and writes": Program(
        "open('a.txt').read()\nopen('a.txt', 'w').write('2')\nopen('b.txt', 'r+').write('2')",
        "",
        text("a.txt", "b.txt"),
    ),
    "what it replaces": Program(
        "import os\nopen('a.txt').read()\nopen('part', 'w').write('2')\n"
        "os.replace('part', 'a.txt')\nopen('a.txt').read()",
        "",
        text("a.txt"),
    ),
    "a copy of a file": Program(
        "import shutil, tempfile\nopen(shutil.copy('a.txt', tempfile.mkdtemp())).read()",
        "a.txt",
        text("a.txt"),
    ),
    "a folder by a link": Program(
        "open('latest/a.txt').read()",
        "latest/a.txt",
        text("data/a.txt"),
        lambda folder: (folder / "latest").symlink_to("data"),
    ),
    "what lies elsewhere": Program("open('/etc/passwd').read()\nimport colorsys"),
    "a cache of bytecode": Program(
        "import part",
        "part.py",
        {"part.py": "", "__pycache__/part.cpython-311.pyc": "nothing that could run"},
    ),
    "every file is closed": Program(
        "import os\nos.closerange(3, 100)\nopen('a.txt').read()", "a.txt", text("a.txt")
    ),
    "a process that is killed": Program(
        "import os\nopen('a.txt').read()\nos.kill(os.getpid(), 9)", "a.txt", text("a.txt")
    ),
}


@pytest.fixture(scope="module")
def outcomes(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, TaskOutcome]]:
    """Each program's folder, and what came of running it as a ticket's ``run`` is."""
    roots, tasks = dict[str, Path](), dict[str, Task]()
    for name, program in PROGRAMS.items():
        root = roots[name] = tmp_path_factory.mktemp("program")
        for path, content in {"main.py": program.code, **program.files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        if program.prepare:
            program.prepare(root)
        job = RunJob(code=str(root), work_tree=str(root), kind="script", target="main.py", meter="simulated")
        tasks[name] = Task(target=RUN, payload=job, root=root, timeout=60.0, memory=2 << 30)
    return {name: (roots[name], outcome) for name, outcome in server().run(tasks)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_files_of_a_program(outcomes: dict[str, tuple[Path, TaskOutcome]], name: str) -> None:
    """Its inputs are the script and what this file says that it uses."""
    root, outcome = outcomes[name]
    if name == "a process that is killed":
        assert "killed by SIGKILL" == outcome.reason
    else:
        assert (None, None) == (outcome.reason, outcome.value["error"])
    assert sorted(["main.py", *PROGRAMS[name].uses.split()]) == sorted(collect_files([outcome], root))
