"""A line of a snapshot is opened in the right editor, and nothing a snapshot says does harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from snapviewer.gui import editor
from snapviewer.gui.editor import EditorError, find_source, open_in_editor


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "my project" / "model.py"
    path.parent.mkdir()
    path.write_text("a\nb\n")
    return path


def _command(filename: str | Path, **environ: str) -> list[str]:
    """What would be started for line 77."""
    started: list[Sequence[str]] = []
    open_in_editor(str(filename), 77, environ=environ, start=started.append)
    (command,) = started
    return list(command)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("code", ["code", "-g", "FILE:77"]),
        ("/opt/bin/code --new-window", ["/opt/bin/code", "--new-window", "-g", "FILE:77"]),
        ("cursor", ["cursor", "-g", "FILE:77"]),
        ("subl", ["subl", "FILE:77"]),
        ("zed", ["zed", "FILE:77"]),
        ("gedit", ["gedit", "+77", "FILE"]),
        ("emacs", ["emacs", "+77", "FILE"]),
        ("gvim", ["gvim", "+77", "FILE"]),
        ("pycharm", ["pycharm", "--line", "77", "FILE"]),
        ("xterm -e vim", ["xterm", "-e", "vim", "+77", "FILE"]),
        ("gnome-terminal -- nvim", ["gnome-terminal", "--", "nvim", "+77", "FILE"]),
        ("mine", ["mine", "FILE"]),
        ("mine --at={file}:{line} -x", ["mine", "--at=FILE:77", "-x"]),
        ("'my editor' {line} {file}", ["my editor", "77", "FILE"]),
    ],
)
def test_the_editor_that_is_set_gets_file_and_line_in_its_own_way(
    text: str, arguments: list[str], source: Path
) -> None:
    command = _command(source, SNAPVIEWER_EDITOR=text)

    assert command == [argument.replace("FILE", str(source)) for argument in arguments]


def test_an_editor_that_needs_a_terminal_gets_one(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")

    command = _command(source, SNAPVIEWER_EDITOR="nvim")

    assert command == ["/bin/x-terminal-emulator", "-e", "nvim", "+77", str(source)]


def test_without_any_terminal_it_says_what_to_set(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(EditorError, match='SNAPVIEWER_EDITOR to something like "xterm -e vim"'):
        _command(source, SNAPVIEWER_EDITOR="vim")


def test_a_command_of_such_an_editor_gets_one_too(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")

    command = _command(source, SNAPVIEWER_EDITOR="vim -R +{line} {file}")

    assert command == ["/bin/x-terminal-emulator", "-e", "vim", "-R", "+77", str(source)]


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({"VISUAL": "code -w"}, ["code", "-w", "-g"]),
        ({"EDITOR": "gedit"}, ["gedit", "+77"]),
        ({"VISUAL": "vim", "EDITOR": "subl"}, ["subl"]),
        ({"VISUAL": "emacs -nw", "EDITOR": "nano"}, ["/bin/xdg-open"]),
        ({"EDITOR": "something --else"}, ["/bin/xdg-open"]),
        ({}, ["/bin/xdg-open"]),
    ],
)
def test_without_a_setting_a_graphical_editor_or_the_desktop_is_asked(
    environ: dict[str, str], first: list[str], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")

    command = _command(source, **environ)

    assert command[:-1] == first or command[: len(first)] == first
    assert str(source) in command[-1]


def test_on_a_mac_it_is_opened_as_text(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert _command(source) == ["open", "-t", str(source)]


def test_on_windows_it_is_edited_and_not_run(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Path, str]] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(
        os, "startfile", lambda path, verb: opened.append((path, verb)), raising=False
    )

    open_in_editor(str(source), 1, environ={})

    assert opened == [(source, "edit")]


def test_the_desktop_is_not_given_what_can_be_run(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    source.chmod(0o755)

    with pytest.raises(EditorError, match=r"not opened\. Set SNAPVIEWER_EDITOR"):
        _command(source)
    assert _command(source, SNAPVIEWER_EDITOR="code")[0] == "code"


@pytest.mark.parametrize(
    "name", ["evil.desktop", "evil.sh", "evil", "evil.py.exe", "evil.html", ".py", "evil.command"]
)
@pytest.mark.parametrize("chosen", [{}, {"SNAPVIEWER_EDITOR": "code"}])
def test_what_is_not_source_code_is_never_opened(
    name: str, chosen: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("x")

    with pytest.raises(EditorError, match="is not a source file"):
        _command(path, **chosen)


def test_a_name_that_looks_like_an_option_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("--remote=x.py", "+call evil().py", "-c.py", "$(touch x).py", "{line}.py"):
        Path(name).write_text("x")

        command = _command(name, SNAPVIEWER_EDITOR="gvim")
        with_braces = _command(name, SNAPVIEWER_EDITOR="mine {file}")

        assert command == ["gvim", "+77", str(tmp_path / name)]
        assert with_braces == ["mine", str(tmp_path / name)]


@pytest.mark.parametrize(
    "name",
    ["", "??", "<string>", "<frozen runpy>", "//host/x.py", "\\\\host\\x.py", "a\0b.py", "a\nb.py"],
)
def test_what_is_no_file_is_reported(name: str) -> None:
    with pytest.raises(EditorError, match="has no source file"):
        _command(name, SNAPVIEWER_EDITOR="code")


@pytest.mark.parametrize(
    "name", ["/nowhere/model.py", "C:\\nowhere\\model.py", "x/" * 5000 + "a.py"]
)
def test_a_file_of_another_machine_gets_a_hint_what_to_set(name: str) -> None:
    with pytest.raises(EditorError, match="SNAPVIEWER_SOURCE") as raised:
        _command(name, SNAPVIEWER_EDITOR="code", SNAPVIEWER_SOURCE="/nowhere/else")

    assert len(str(raised.value)) < 250


def test_a_directory_or_a_pipe_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    os.mkfifo(tmp_path / "b.py")

    for name in ("a.py", "b.py"):
        with pytest.raises(EditorError, match="not on this machine"):
            _command(tmp_path / name, SNAPVIEWER_EDITOR="code")


def test_code_of_another_machine_is_found_where_it_is_here(tmp_path: Path) -> None:
    here, deep = tmp_path / "here", tmp_path / "here" / "pkg" / "sub"
    deep.mkdir(parents=True)
    (here / "model.py").write_text("")
    (deep / "model.py").write_text("")
    environ = {"SNAPVIEWER_SOURCE": os.pathsep.join(["/nowhere", str(here)])}

    found = [
        find_source(name, environ)
        for name in (
            "/home/x/pkg/sub/model.py",
            "C:\\work\\pkg\\sub\\model.py",
            "/home/x/other/model.py",
            "../../pkg/sub/model.py",
        )
    ]

    assert found == [deep / "model.py", deep / "model.py", here / "model.py", deep / "model.py"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'unfinished", "SNAPVIEWER_EDITOR is not valid"),
        ("/nowhere/at/all", "Could not start .*. Set SNAPVIEWER_EDITOR"),
    ],
)
def test_a_setting_that_does_not_work_is_reported(text: str, words: str, source: Path) -> None:
    with pytest.raises(EditorError, match=words):
        open_in_editor(str(source), 1, environ={"SNAPVIEWER_EDITOR": text})


def test_a_program_is_started_without_a_shell_and_on_its_own(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out; touch evil"
    script = f"import os, sys; open({str(out)!r}, 'w').write(repr((sys.argv[1:], os.getsid(0))))"
    process: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[call-overload]
            process.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Popen)
        editor._start([sys.executable, "-c", script, "$HOME", str(source)])
    process[0].wait()

    arguments, session = eval(out.read_text())
    assert arguments == ["$HOME", str(source)]
    assert session != os.getsid(0)
