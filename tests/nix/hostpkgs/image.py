"""Write an image for podman: image.py NAME:TAG CONFIG LAYERS, with store paths on standard input.

What is in the current directory becomes the layer above the store's, of which there are so many
that the image has LAYERS: the largest paths have one each, and the last has all others.
"""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

CREATED = "1970-01-01T00:00:01Z"


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out what differs between builders: who made a file, and when."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 1
    return member


def layer(paths: Iterable[Path], name: str) -> tuple[str, str]:
    """Write a layer to a file, and return its name and its digest."""
    with tarfile.open(name, "w") as archive:
        for path in paths:
            archive.add(path, filter=plain)
    with Path(name).open("rb") as file:
        return name, hashlib.file_digest(file, "sha256").hexdigest()


def size(path: Path) -> int:
    """Return the bytes that are in the files of a path."""
    files = [path, *path.rglob("*")]
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def main() -> None:
    """Write the archive to standard output."""
    tag, config = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    most = int(sys.argv[3])
    paths = sorted({Path(line.strip()) for line in sys.stdin}, key=lambda path: (-size(path), path))
    alone = most - 2
    groups = [[path] for path in paths[:alone]] + [sorted(paths[alone:])]
    layers = [
        *(layer(group, f"../{number}.tar") for number, group in enumerate(groups) if group),
        layer(sorted(Path().iterdir()), "../own.tar"),
    ]
    image = {
        "architecture": "amd64",
        "os": "linux",
        "created": CREATED,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for _, digest in layers]},
        "history": [{"created": CREATED} for _ in layers],
    }
    manifest = [
        {
            "Config": "image.json",
            "RepoTags": [tag],
            "Layers": [f"{digest}.tar" for _, digest in layers],
        }
    ]
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for name, text in (
            ("image.json", json.dumps(image)),
            ("manifest.json", json.dumps(manifest)),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, digest in layers:
            archive.add(name, f"{digest}.tar", filter=plain)


if __name__ == "__main__":
    main()
