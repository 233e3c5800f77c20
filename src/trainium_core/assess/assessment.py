"""Reads a code base and matches the rules, on all CPUs if the code base is large enough."""

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from trainium_core.assess.file_reader import FileReader
from trainium_core.assess.findings import Assessment, CodeFinding, FileFindings, ReadingProblem
from trainium_core.assess.project import ProjectFiles, imported_files
from trainium_core.assess.rules import LIBRARY_PREFIX, OPTIONAL_SUFFIX, rules
from trainium_core.assess.sources import file_kind, is_excluded, source_files

SMALL_BYTES = 2_000_000
"""Up to this total size of Python files and notebooks, one process reads all files: starting more takes longer."""

Progress = Callable[[int, int], None]
"""Called with the number of files read so far, and the number of all files."""


def _no_progress(read: int, total: int) -> None: ...


def assess(paths: Sequence[Path], progress: Progress = _no_progress, exclude: Sequence[str] = ()) -> Assessment:
    """The findings in files and folders, and in the files of the code base that the given scripts import.

    Args:
        paths: The files and folders.
        progress: Called after each file.
        exclude: Globs of paths below the given ones, or of names of files and folders, that are not read.

    Raises:
        OSError: A path does not exist, or a folder cannot be listed.
    """
    scripts = [path for path in paths if path.is_file() and file_kind(path) in ("python", "notebook")]
    given = dict.fromkeys(file for path in paths for file in source_files(path, exclude))
    outside = dict.fromkeys(file for file in given if _leads_outside(file, paths))
    imported = (file for file in imported_files(scripts) if not is_excluded(file, exclude))
    files = list(dict.fromkeys((*(file for file in given if file not in outside), *imported)))
    project = read_project(files)
    size = sum(file.stat().st_size for file in files if file_kind(file) in ("python", "notebook"))
    results, late = list[FileFindings](), dict[str, list[CodeFinding]]()
    for result in _each(files, project, in_processes=size > SMALL_BYTES):
        results.append(result)
        for finding in result.late:
            late.setdefault(finding.path, []).append(finding)
        progress(len(results), len(files))
    findings, comments = list[CodeFinding](), list[ReadingProblem]()
    for result in results:
        kept, problems = _settled(result, late.get(result.path, ()))
        findings += kept
        comments += problems
    unknown = {name: place for result in reversed(results) for name, place in result.unknown.items()}
    return Assessment(
        files=sum(not result.unreadable or result.lines > 0 for result in results),
        lines=sum(result.lines for result in results),
        findings=sorted(findings),
        unreadable=[
            *(
                ReadingProblem(path=str(file), message="is a link to a file outside of the given paths")
                for file in outside
            ),
            *(problem for result in results for problem in result.unreadable),
        ],
        comments=comments,
        unknown=dict(sorted(unknown.items())),
    )


def _leads_outside(file: Path, paths: Sequence[Path]) -> bool:
    """Whether a file is a link to a file below none of the paths. Weights may be: no finding shows their content."""
    if not file.is_symlink() or file in paths or file_kind(file) == "weights":
        return False
    target = file.resolve()
    return not any(target.is_relative_to(path.resolve()) for path in paths)


def read_project(files: Sequence[Path]) -> ProjectFiles:
    """The Python modules among the files, which may import each other."""
    return ProjectFiles([file for file in files if file_kind(file) == "python"], _read_whole)


def _read_whole(path: Path, project: ProjectFiles) -> FileFindings:
    return FileReader(path, project).read(whole=True)


def _each(files: Sequence[Path], project: ProjectFiles, *, in_processes: bool) -> Iterator[FileFindings]:
    processes = os.cpu_count() or 1
    if not in_processes or processes == 1:
        yield from (assess_file(file, project) for file in files)
        return
    size = -(-len(files) // (processes * 4))
    groups = [files[at : at + size] for at in range(0, len(files), size)]
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (project,)) as pool:
        try:
            for results in pool.map(_assess_in_process, groups):
                yield from results
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_project: ProjectFiles | None = None


def _begin(project: ProjectFiles) -> None:
    global _project
    gc.set_threshold(100_000)  # Syntax trees have many objects and no cycles: this saves a tenth of the time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C. This process ends with the parent.
    Thread(target=_end_with_parent, daemon=True).start()
    _project = project


def _end_with_parent() -> None:
    """End this worker with its parent: a worker that waits for work would otherwise keep running."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _assess_in_process(files: Sequence[Path]) -> Sequence[FileFindings]:
    assert _project is not None
    _project.own = frozenset(files)
    return [assess_file(file, _project) for file in files]


def assess_file(path: Path, project: ProjectFiles) -> FileFindings:
    result = project.read_early.pop(path, None) or FileReader(path, project).read(whole=False)
    result.late, project.late = project.late, []
    return result


FORM = "ignores nothing: write the rule and a reason, such as `# trn: ignore[C03] runs on GPUs too`"


def _settled(
    result: FileFindings, late: Iterable[CodeFinding]
) -> tuple[Sequence[CodeFinding], Sequence[ReadingProblem]]:
    """One finding for each rule and line of a file, without covered ones, and the comments that ignore nothing."""
    by_line = dict[tuple[int, int], dict[str, CodeFinding]]()
    for finding in sorted((*result.findings, *late)):
        by_line.setdefault((finding.cell, finding.line), {}).setdefault(finding.rule, finding)
    used, findings = set[int](), list[CodeFinding]()
    for by_rule in by_line.values():
        covered = {name for rule in by_rule for name in rules()[rule].covers}
        for rule, finding in by_rule.items():
            if rule not in covered:
                line = _ignored_by(finding, result.comments)
                used.add(line)
                findings.append(replace(finding, reason=result.comments[line][1]) if line else finding)
    problems = list[ReadingProblem]()
    for line, (names, reason) in result.comments.items():
        if not names or not reason:
            problems.append(ReadingProblem(path=result.path, line=line, message=FORM))
        elif line not in used:
            message = f"ignores nothing: no finding of {', '.join(names)} here"
            problems.append(ReadingProblem(path=result.path, line=line, message=message))
    return findings, problems


def _ignored_by(finding: CodeFinding, comments: Mapping[int, tuple[Sequence[str], str]]) -> int:
    """The line of the comment that ignores a finding; 0 if there is none. Comments in notebooks have no effect."""
    name = finding.rule.removesuffix(OPTIONAL_SUFFIX).removeprefix(LIBRARY_PREFIX)
    for line in () if finding.cell else (finding.line, finding.end_line):
        names, reason = comments.get(line, ((), ""))
        if reason and name in names:
            return line
    return 0
