"""Opens a line of source code in the user's editor.

File names come from snapshots and are untrusted. A name must be that of a regular file that looks
like source code; it is made absolute, so that it cannot be taken for an option, and never passed to
a shell. The desktop's own opener, which might run a file, never gets an executable one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

EDITOR = "SNAPVIEWER_EDITOR"
SOURCE = "SNAPVIEWER_SOURCE"

_PLUS = ("vim", "vi", "nvim", "gvim", "emacs", "emacsclient", "nano", "gedit", "xed", "mousepad")
_COLON = ("subl", "zed", "zeditor", "hx", "helix", "micro")
_GOTO = ("code", "code-insiders", "codium", "cursor", "windsurf")
_LINE = ("pycharm", "charm", "idea", "clion", "kate", "mate")
_KNOWN = {*_PLUS, *_COLON, *_GOTO, *_LINE}
_IN_TERMINAL = {"vim", "vi", "nvim", "nano", "hx", "helix", "micro"}

_SOURCE_CODE = {
    *(".py", ".pyi", ".pyx", ".pxd"),
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".cu", ".cuh"),
}
_MAX_PARTS = 32  # of a path that is searched for in $SNAPVIEWER_SOURCE


class EditorError(Exception):
    """A file could not be opened; the message says why and what would help."""


def open_in_editor(
    filename: str,
    line: int,
    *,
    environ: Mapping[str, str] = os.environ,
    start: Callable[[Sequence[str]], None] | None = None,
) -> Path:
    """Open a file of a call stack at a line.

    Args:
        filename: The name in the snapshot.
        line: The line; 0 if not known.
        environ: The environment, with the editor and the directories of the code.
        start: Starts a program.

    Returns:
        The file that is being opened.

    Raises:
        EditorError: It cannot or must not be opened.
    """
    path = find_source(filename, environ)
    command = command_for(path, max(line, 1), environ)
    try:
        if command:
            (start or _start)(command)
        else:
            # Opening a script as such would run it; "edit" never does.
            os.startfile(path, "edit")  # type: ignore[attr-defined,unused-ignore]
    except OSError as error:
        program = command[0] if command else "the editor"
        raise EditorError(
            f"Could not start {program} ({error.strerror}). Set {EDITOR} to your editor."
        ) from error
    return path


def find_source(filename: str, environ: Mapping[str, str]) -> Path:
    """Find a file of a snapshot on this machine.

    It is looked for where it was recorded, then in the directories of `$SNAPVIEWER_SOURCE`, with as
    much of its path as is there.

    Raises:
        EditorError: There is none, or it is not source code.
    """
    # A name that begins with two slashes may be on another machine; never connect to one.
    is_remote = filename[:2].replace("\\", "/") == "//"
    if not filename or filename.startswith(("<", "??")) or is_remote or not filename.isprintable():
        raise EditorError("This frame has no source file.")
    names = _names(filename)
    if not names or Path(names[-1]).suffix.lower() not in _SOURCE_CODE:
        raise EditorError(f"{_short(filename)} is not a source file: it was not opened.")
    places = [filename]
    for directory in filter(None, environ.get(SOURCE, "").split(os.pathsep)):
        places += [os.path.join(directory, *names[start:]) for start in range(len(names))]
    for place in places:
        if os.path.isfile(place):
            return Path(place).absolute()
    if where := environ.get(SOURCE):
        raise EditorError(f"{_short(filename)} was not found, nor in {_short(where)} ({SOURCE}).")
    raise EditorError(
        f"{_short(filename)} is not on this machine. Set {SOURCE} to the directory of its code."
    )


def _names(filename: str) -> list[str]:
    """Return the last parts of a path of any system, without the root and `..`."""
    path = PureWindowsPath(filename) if "\\" in filename else PurePosixPath(filename)
    return [part for part in path.parts if part != path.anchor and part != ".."][-_MAX_PARTS:]


def _short(filename: str) -> str:
    return filename if len(filename) <= 80 else f"…{filename[-79:]}"


def command_for(path: Path, line: int, environ: Mapping[str, str]) -> list[str]:
    """Return the command that opens a file; empty on Windows, which opens files itself.

    Raises:
        EditorError: There is no such command.
    """
    if text := environ.get(EDITOR, "").strip():
        return _own_command(text, path, line)
    for variable in ("VISUAL", "EDITOR"):
        arguments = _split(environ.get(variable, ""), variable)
        # Often editors that need a terminal, which a window does not have.
        if arguments and _name(arguments[0]) in _KNOWN - _IN_TERMINAL and "-nw" not in arguments:
            return [*arguments, *_place(_name(arguments[0]), path, line)]
    return _system_command(path)


def _own_command(text: str, path: Path, line: int) -> list[str]:
    arguments = _split(text, EDITOR)
    if any("{file}" in argument for argument in arguments):
        command = [
            # The file last: its name may contain {line}.
            argument.replace("{line}", str(line)).replace("{file}", str(path))
            for argument in arguments
        ]
    else:
        # The last one, for editors that run in another program: `xterm -e vim`.
        names = [name for name in map(_name, arguments) if name in _KNOWN]
        command = [*arguments, *_place(names[-1] if names else "", path, line)]
    if _name(arguments[0]) not in _IN_TERMINAL:
        return command
    terminal = shutil.which("x-terminal-emulator")
    if terminal is None:
        raise EditorError(
            f"{arguments[0]} needs a terminal. Set {EDITOR} to something like"
            f' "xterm -e {arguments[0]}".'
        )
    return [terminal, "-e", *command]


def _split(text: str, variable: str) -> list[str]:
    try:
        return shlex.split(text, posix=os.name != "nt")
    except ValueError as error:
        raise EditorError(f"${variable} is not valid: {error}.") from error


def _name(program: str) -> str:
    return PureWindowsPath(program.strip('"')).stem.lower()


def _place(editor: str, path: Path, line: int) -> list[str]:
    """Return the arguments with which an editor opens a file at a line."""
    if editor in _GOTO:
        return ["-g", f"{path}:{line}"]
    if editor in _PLUS:
        return [f"+{line}", str(path)]
    if editor in _COLON:
        return [f"{path}:{line}"]
    return ["--line", str(line), str(path)] if editor in _LINE else [str(path)]


def _system_command(path: Path) -> list[str]:
    if sys.platform == "darwin":
        return ["open", "-t", str(path)]
    if sys.platform == "win32":
        return []
    if os.access(path, os.X_OK):
        raise EditorError(
            f"{path.name} is executable, so it was not opened. Set {EDITOR} to your editor."
        )
    opener = shutil.which("xdg-open")
    if opener is None:
        raise EditorError(f"Found no program to open {path.name}. Set {EDITOR} to your editor.")
    return [opener, str(path)]


def _start(command: Sequence[str]) -> None:
    """Start a program that keeps running when the window closes."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    threading.Thread(target=process.wait, daemon=True).start()
