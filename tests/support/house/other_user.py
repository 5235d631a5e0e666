"""Run commands as a user who owns nothing, and who may read all but write only what is given."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from support.house.ci import skip_but_in_ci

USER = 65_534
_AS_OTHER = (
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
    "--bounding-set=-all,+dac_read_search",
)


def require_other_user() -> None:
    """Skip a test where a command cannot run as another user."""
    if not shutil.which("setpriv") or subprocess.call([*_AS_OTHER, "true"]):
        skip_but_in_ci("setpriv (apt-get install util-linux) that may run as another user")


def run_as_other(
    command: Sequence[str | Path], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with no variables but these: no HOME among them."""
    return subprocess.run(
        [*_AS_OTHER, *map(str, command)],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def open_folder(parent: Path) -> Iterator[Path]:
    """Make a folder that every user may look into, and remove it at the end."""
    folder = Path(mkdtemp(dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give(path: Path) -> None:
    """Give a folder and all in it to the other user."""
    for one in (path, *path.rglob("*")):
        os.chown(one, USER, USER)
