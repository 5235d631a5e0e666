"""Run the steps of a Containerfile without a builder: this machine's root is the base image.

Each step runs in a mount namespace of its own, with its root in an overlay of ``/``, and what it
changes is kept in a folder. A container runs on these changes alone, read-only, above ``/``.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from support.house.ci import skip_but_in_ci

_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_OF_INDEXES = ("PIP_", "SSL_")
"""Variables by which pip finds a package index from here."""
_AN_OVERLAY = """
mount -t tmpfs tmpfs /mnt && mkdir /mnt/above /mnt/work &&
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/above,workdir=/mnt/work /mnt
"""


def require_local_images() -> None:
    """Skip a test where the steps of an image cannot run."""
    if os.getuid() or subprocess.call(["unshare", "--mount", "sh", "-c", _AN_OVERLAY]):
        skip_but_in_ci("root who may mount an overlay (util-linux)")


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile, each with its rest in one line."""
    lines = (line for line in text.splitlines() if line and not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


@dataclass(frozen=True)
class LocalImage:
    """What the steps of a stage left.

    Attributes:
        layer: the folder with what differs from ``/``.
        variables: what containers have in their environment.
        user: whom they run as, ``uid:gid``.
        entrypoint: what they start.
        workdir: where they start it.
    """

    layer: Path
    variables: Mapping[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    user: str = "0:0"
    entrypoint: Sequence[str] = ()
    workdir: str = "/"

    def run(
        self,
        words: Sequence[str],
        volumes: Mapping[str, Path],
        *,
        user: str | None = None,
        command: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a container with no home, on a root that is read-only but for ``volumes``.

        Args:
            words: what the entrypoint is given.
            volumes: folders or files of this machine by where they lie in the container.
            user: ``uid:gid``; default: the image's.
            command: what is started in the entrypoint's place.
            variables: besides the image's.
        """
        binds = []
        for place, volume in volumes.items():
            inside = _place(self.layer, place)
            if volume.is_dir():
                inside.mkdir(parents=True, exist_ok=True)
            else:
                inside.touch()
            binds.append((volume, f"/{inside.relative_to(self.layer)}"))
        start = [*(self.entrypoint if command is None else command), *words]
        return replace(
            self,
            user=user or self.user,
            variables={**self.variables, **(variables or {})},
        )._inside("ro", start, binds)

    def _step(self, command: str) -> None:
        indexes = {key: text for key, text in os.environ.items() if key.startswith(_OF_INDEXES)}
        variables = {**self.variables, "HOME": "/root", **indexes}
        done = replace(self, variables=variables)._inside("rw", ["sh", "-c", command])
        assert done.returncode == 0, done.stdout + done.stderr

    def _copy(self, context: Path, *words: str) -> None:
        *sources, target = words
        into = _place(self.layer, target)
        into.mkdir(parents=True, exist_ok=True)
        for source in sources:
            found = list(context.glob(source))
            assert found, source
            for path in found:
                if path.is_dir():
                    shutil.copytree(path, into, dirs_exist_ok=True)
                else:
                    shutil.copy(path, into)

    def _committed(self, folder: Path) -> "LocalImage":
        """Pass the layer through a tar file as builders write it: times in whole seconds."""
        folder.mkdir()
        packing = ["tar", "--format=gnu", "-cf", "-", "."]
        with subprocess.Popen(packing, cwd=self.layer, stdout=subprocess.PIPE) as packed:
            subprocess.run(["tar", "-xf", "-"], cwd=folder, stdin=packed.stdout, check=True)
        assert packed.returncode == 0
        return replace(self, layer=folder)

    def _inside(
        self, how: str, command: Sequence[str], binds: Sequence[tuple[Path, str]] = ()
    ) -> subprocess.CompletedProcess[str]:
        root, work = (
            self.layer.with_name(f"{self.layer.name}.{kind}") for kind in ("root", "work")
        )
        for one in (root, work):
            one.mkdir(exist_ok=True)
        options = f"{how},lowerdir=/,upperdir={self.layer},workdir={work}"
        given = shlex.join(f"{name}={text}" for name, text in self.variables.items())
        start = shlex.join(["sh", "-c", f'cd {self.workdir} && exec "$@"', "sh", *command])
        script = [
            "set -e",
            f"mount -t overlay overlay -o {options} {root}",
            f"mount --rbind /dev {root}/dev",
            f"mount -t proc proc {root}/proc",
            *(f"mount --bind {volume} {root}{place}" for volume, place in binds),
            f"exec chroot --userspec={self.user} --groups= {root} env -i {given} {start}",
        ]
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(script)],
            capture_output=True,
            text=True,
            check=False,
        )


def build_images(containerfile: Path, context: Path, folder: Path) -> dict[str, LocalImage]:
    """Run all steps; return the image of each stage by its name. ``context``: COPY's sources."""
    images: dict[str, LocalImage] = {}
    layer = folder / "layer"
    layer.mkdir()
    image, stage = LocalImage(layer), ""
    for word, rest in [*instructions(containerfile.read_text("utf-8")), ("FROM", "")]:
        match word:
            case "FROM":
                if stage:
                    images[stage] = image._committed(folder / stage)
                stage = rest.rpartition(" ")[2]
            case "ARG" | "CMD":
                pass
            case "ENV":
                name, _, text = rest.partition("=")
                text = Template(text).substitute(image.variables)
                image = replace(image, variables={**image.variables, name: text})
            case "COPY":
                image._copy(context, *rest.split())
            case "RUN":
                image._step(rest)
            case "USER":
                image = replace(image, user=rest)
            case "WORKDIR":
                image = replace(image, workdir=rest)
            case "ENTRYPOINT":
                image = replace(image, entrypoint=json.loads(rest))
            case _:
                raise NotImplementedError(word)
    return images


def _place(layer: Path, path: str) -> Path:
    """Return where a path of a container lies in a layer, through links in it."""
    place = layer
    for part in Path(path).parts[1:]:
        place /= part
        if place.is_symlink():
            place = layer / str(place.readlink()).lstrip("/")
    return place
