"""A job's own virtual environment on top of the image's, for installations of its setup."""

from __future__ import annotations

from pathlib import Path


def make_overlay(image: Path, folder: Path) -> Path | None:
    """Make an environment whose own packages take precedence over those of the image's environment.

    Returns its folder, or None if the image's environment has another layout.

    Programs of the image's environment, such as torchrun, run with the new environment's Python. pip treats packages of
    the image as installed, and installs other versions beside them. Raises OSError.
    """
    python = image / "bin/python"
    packages = next(iter(image.glob("lib/python3*/site-packages")), None)
    if not packages or not python.is_file():
        return None
    own = folder / packages.relative_to(image)
    own.mkdir(parents=True)
    # With addsitedir, which also reads the image's own .pth files.
    (own / "image.pth").write_text(f"import site; site.addsitedir({str(packages)!r})\n")
    (folder / "lib64").symlink_to("lib")
    settings = image / "pyvenv.cfg"
    # Without the file, the image's environment is an installed Python, as in a container.
    text = settings.read_text() if settings.is_file() else f"home = {python.resolve().parent}\n"
    (folder / "pyvenv.cfg").write_text(text)
    programs = folder / "bin"
    programs.mkdir()
    for name in ("python", "python3", packages.parent.name):
        (programs / name).symlink_to(python.resolve())
    for program in (image / "bin").iterdir():
        target = programs / program.name
        if not target.is_symlink() and program.is_file():
            _put(program, target, f"#!{image}/bin/python".encode(), f"#!{programs}/python".encode())
    return folder


def _put(program: Path, target: Path, shebang: bytes, own: bytes) -> None:
    with program.open("rb") as file:
        is_script = file.read(len(shebang)) == shebang
    if is_script:
        target.write_bytes(own + program.read_bytes()[len(shebang) :])
        target.chmod(0o755)
    else:
        target.symlink_to(program)
