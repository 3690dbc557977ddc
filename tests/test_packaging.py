"""What is shipped is what is tested: the wheel, installed on its own far from the tree, works and lacks nothing."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
import types
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import placement
from placement.version import VERSION

ROOT = Path(__file__).parent.parent
LINKED = {"models", "instances"}
"""Packages whose files lie beside `placement`, which has links to them for tools that read the checkout."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def sources() -> set[str]:
    """Return every module of the tree by its path in the wheel."""
    own = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "placement").rglob("*.py")
        if path.relative_to(ROOT / "placement").parts[0] not in LINKED
    }
    return own | {f"placement/{name}/{path.name}" for name in LINKED for path in (ROOT / name).glob("*.py")}


def test_package_list_equals_the_tree() -> None:
    found = {path.rpartition("/")[0].replace("/", ".") for path in sources() if path.endswith("/__init__.py")}
    assert sorted(project()["tool"]["setuptools"]["packages"]) == sorted(found)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.rpartition("/")[0] for path in sources()}
    assert all(f"{folder}/__init__.py" in sources() for folder in folders)


def test_the_links_are_there() -> None:
    for name in LINKED:
        link = ROOT / "placement" / name
        assert link.is_symlink()
        assert os.readlink(link) == f"../{name}"


def test_the_version_is_one() -> None:
    stated = project()["project"]
    assert stated.get("version", VERSION) == VERSION
    assert metadata.version("gpu-placement") == VERSION
    assert f"[{VERSION}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_public_names_are_exact() -> None:
    """Public is what `placement/__init__.py` imports ``X as X``, and nothing gets out by accident."""
    tree = ast.parse((ROOT / "placement" / "__init__.py").read_text("utf-8"))
    imported = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    stated = [alias.name for alias in imported if alias.asname == alias.name]
    found = {name for name, value in vars(placement).items() if not isinstance(value, types.ModuleType)}
    public = {name for name in found if not name.startswith("_")} - {"annotations"}
    assert len(set(stated)) == len(stated)
    assert public == {name for name in stated if not isinstance(getattr(placement, name), types.ModuleType)}
    assert placement.__version__ == VERSION


def test_models_refuse_a_second_name() -> None:
    """`import models` at the root of a checkout would make a second copy of every class."""
    run = subprocess.run([sys.executable, "-c", "import models"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "ImportError" in run.stderr


# --- the wheel -----------------------------------------------------------------------------------------------


def clean() -> dict[str, str]:
    """Return an environment in which nothing of this checkout can be found."""
    drop = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, env=clean(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by way of the source distribution from a copy without what earlier builds left."""
    folder = tmp_path_factory.mktemp("wheel")
    left = shutil.ignore_patterns(
        ".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "notebooks", "benchmarks"
    )
    shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=left)
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "tree", cwd=folder)
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_all_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = f"gpu_placement-{VERSION}.dist-info"
        assert archive.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        described = archive.read(f"{about}/METADATA").decode()
    assert {name for name in names if name.endswith(".py")} == sources()
    data = {f"placement/instances/{path.name}" for path in (ROOT / "instances").glob("*.json")}
    data.add("placement/instances/README.md")
    data |= {f"placement/hardware/{path.name}" for path in (ROOT / "placement" / "hardware").glob("*.json")}
    rest = {name for name in names if not name.endswith(".py") and not name.startswith(about)}
    assert rest == data | {"placement/py.typed"}
    assert "License-Expression: Apache-2.0" in described
    assert "Requires-Python: >=3.11" in described


@pytest.mark.slow
def test_the_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    """In an environment that has what the wheel says it needs and nothing more, in an empty directory."""
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    binaries = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(binaries / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    where = run(binaries / "python", "-c", "import placement, placement.models as m; print(m.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path / "env")
    assert run(binaries / "placement", "--version", cwd=tmp_path) == f"placement {VERSION}\n"
    plan = json.loads(run(binaries / "placement", "solve", "fragmentation-two-nodes", "-o", "-", cwd=tmp_path))
    assert plan["checked"] is True
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")
    assert run(binaries / "placement", "check", "fragmentation-two-nodes", "plan.json", cwd=tmp_path).startswith(
        "valid"
    )
