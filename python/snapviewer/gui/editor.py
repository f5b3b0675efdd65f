"""Opens a line of source code in the user's editor.

Names of files come from snapshots, and so from strangers. A name is only ever looked up and handed
over: it must be that of a regular file that looks like source code, it is made absolute so that it
cannot be taken for an option, and it never goes through a shell. Programs of the desktop, which
decide by themselves what to do with a file, are not given one that could be run.
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
_MOST_PARTS = 32  # of a path, that are looked for elsewhere


class EditorError(Exception):
    """A file could not be opened; the message says why, and what would help."""


def open_in_editor(
    filename: str,
    line: int,
    *,
    environ: Mapping[str, str] = os.environ,
    start: Callable[[Sequence[str]], None] | None = None,
) -> Path:
    """Open a file of a call stack, at a line.

    Args:
        filename: As the snapshot has it.
        line: The line; 0 if not known.
        environ: Where the user says which editor, and where the code is.
        start: What starts a program.

    Returns:
        The file that is being opened.

    Raises:
        EditorError: It is not to be opened.
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
            f"{program} could not be started ({error.strerror}): set {EDITOR} to your editor."
        ) from error
    return path


def find_source(filename: str, environ: Mapping[str, str]) -> Path:
    """Find a file of a snapshot on this machine.

    It is where it was when recorded or, with as much of its path as fits, in a directory of
    `$SNAPVIEWER_SOURCE`.

    Raises:
        EditorError: There is none, or it is not source code.
    """
    # A name with two slashes may be of another machine on the network, which nobody asked to call.
    is_remote = filename[:2].replace("\\", "/") == "//"
    if not filename or filename.startswith(("<", "??")) or is_remote or not filename.isprintable():
        raise EditorError("This frame has no file that could be opened.")
    names = _names(filename)
    if not names or Path(names[-1]).suffix.lower() not in _SOURCE_CODE:
        raise EditorError(f"{_short(filename)} is not opened: only files of source code are.")
    places = [filename]
    for directory in filter(None, environ.get(SOURCE, "").split(os.pathsep)):
        places += [os.path.join(directory, *names[start:]) for start in range(len(names))]
    for place in places:
        if os.path.isfile(place):
            return Path(place).absolute()
    if where := environ.get(SOURCE):
        raise EditorError(f"{_short(filename)} is neither there nor in {_short(where)} ({SOURCE}).")
    raise EditorError(
        f"{_short(filename)} is not on this machine: set {SOURCE} to the directory that its code is"
        " in."
    )


def _names(filename: str) -> list[str]:
    """Return the last parts of a path of any system, without what leads upwards or to the root."""
    path = PureWindowsPath(filename) if "\\" in filename else PurePosixPath(filename)
    return [part for part in path.parts if part != path.anchor and part != ".."][-_MOST_PARTS:]


def _short(filename: str) -> str:
    return filename if len(filename) <= 80 else f"…{filename[-79:]}"


def command_for(path: Path, line: int, environ: Mapping[str, str]) -> list[str]:
    """Return the program to start and its arguments; none on a system that opens files itself.

    Raises:
        EditorError: There is no way to open it.
    """
    if text := environ.get(EDITOR, "").strip():
        return _own_command(text, path, line)
    for variable in ("VISUAL", "EDITOR"):
        arguments = _split(environ.get(variable, ""), variable)
        # These are often editors that need a terminal, which a window does not have.
        if arguments and _name(arguments[0]) in _KNOWN - _IN_TERMINAL and "-nw" not in arguments:
            return [*arguments, *_place(_name(arguments[0]), path, line)]
    return _system_command(path)


def _own_command(text: str, path: Path, line: int) -> list[str]:
    arguments = _split(text, EDITOR)
    if any("{file}" in argument for argument in arguments):
        command = [
            # The file last: what is in its name is not a place to put things.
            argument.replace("{line}", str(line)).replace("{file}", str(path))
            for argument in arguments
        ]
    else:
        # The last of them, for those that run in something else: `xterm -e vim`.
        names = [name for name in map(_name, arguments) if name in _KNOWN]
        command = [*arguments, *_place(names[-1] if names else "", path, line)]
    if _name(arguments[0]) not in _IN_TERMINAL:
        return command
    terminal = shutil.which("x-terminal-emulator")
    if terminal is None:
        raise EditorError(
            f"{arguments[0]} needs a terminal: set {EDITOR} to something like"
            f' "xterm -e {arguments[0]}".'
        )
    return [terminal, "-e", *command]


def _split(text: str, variable: str) -> list[str]:
    try:
        return shlex.split(text, posix=os.name != "nt")
    except ValueError as error:
        raise EditorError(f"${variable} is not understood: {error}.") from error


def _name(program: str) -> str:
    return PureWindowsPath(program.strip('"')).stem.lower()


def _place(editor: str, path: Path, line: int) -> list[str]:
    """Return the arguments by which an editor opens a file at a line."""
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
            f"{path.name} is not opened, because it can be run: set {EDITOR} to your editor."
        )
    opener = shutil.which("xdg-open")
    if opener is None:
        raise EditorError(
            f"There is nothing to open {path.name} with: set {EDITOR} to your editor."
        )
    return [opener, str(path)]


def _start(command: Sequence[str]) -> None:
    """Start a program that lives on by itself."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    threading.Thread(target=process.wait, daemon=True).start()
