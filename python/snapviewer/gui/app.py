"""The window: puts the parts together, and does what needs the window itself."""

from __future__ import annotations

import logging
import tkinter as tk
from collections.abc import Sequence
from pathlib import Path
from tkinter import filedialog, ttk

from snapviewer.report.snapshot import allocation_details as facts_report

from . import windows
from .background import Background
from .commands import commands_of
from .cover import Cover
from .icon import icon_of
from .jobs import Job
from .keys import HeldKeys
from .menus import bind_keys, make_menus
from .panes.side import Side
from .picture import picture_of
from .plot.area import Area
from .settings import load_settings, save_settings, settings_file
from .state import State
from .status_bar import StatusBar
from .theme import apply_theme, px
from .toolbar import Toolbar

log = logging.getLogger(__name__)

_USUAL_SIZE = (1500, 900)
_LEAST_SIZE = (900, 600)
_SIDE_NEEDS = 1100  # a narrower window folds the side pane away
_SIDE_WIDTH = 490


class NoDisplayError(Exception):
    """There is no screen to open a window on."""


class Window:
    """The program's window; `state` has all that it shows."""

    def __init__(self, *, plot_size: tuple[int, int] | None = None, theme: str = "") -> None:
        self.root = tk.Tk(className="Snapviewer")
        self.root.withdraw()
        self._settings_file = settings_file()
        settings = load_settings(self._settings_file)
        if theme:
            settings.theme = theme
        self.jobs = Background(self.root)
        self.state = State(self.jobs, settings)
        apply_theme(self.root, self.state.look.theme)
        self.root.report_callback_exception = self._tell_of_bug
        self._build()
        self._make_keys()
        self.state.on("look", self._restyle)
        self.state.on("document", self._retitle)
        self.state.on("panes", self._show_side)
        self._theme = self.state.look.theme
        self._is_side_shown = False
        self._is_size_given = plot_size is not None
        self._plot_size = plot_size
        self._place(plot_size)
        self._retitle()

    def _build(self) -> None:
        root, state = self.root, self.state
        self.toolbar = Toolbar(root, state)
        self.panes = ttk.PanedWindow(root, orient="horizontal")
        self.area = Area(self.panes, state)
        self.side = Side(self.panes, state)
        self.status = StatusBar(root, state)
        self.toolbar.pack(side="top", fill="x")
        self.status.pack(side="bottom", fill="x")
        self.panes.pack(side="top", fill="both", expand=True)
        self.panes.add(self.area, weight=1)
        self.cover = Cover(self.area, state, self.open_file)
        self.root.iconphoto(True, icon_of(root))

    def _make_keys(self) -> None:
        self.commands = commands_of(self.state, self)
        self.root.configure(menu=make_menus(self.root, self.state, self.commands))
        self._held = HeldKeys(self.root, self.state)
        bind_keys(self.root, self.commands, self._held)
        # As everywhere but in Tk, where it goes to the beginning of the line.
        self.root.event_delete("<<LineStart>>", "<Control-a>")
        self.root.event_add("<<SelectAll>>", "<Control-a>")
        self.root.protocol("WM_DELETE_WINDOW", self.close)
        self.root.bind("<Configure>", self._resized, add=True)

    def _place(self, plot_size: tuple[int, int] | None) -> None:
        root, settings = self.root, self.state.settings
        least = [px(root, size) for size in _LEAST_SIZE]
        screen = root.winfo_screenwidth(), root.winfo_screenheight()
        root.minsize(min(least[0], screen[0]), min(least[1], screen[1]))
        # As large as last time, but not larger than this screen.
        width, height = (
            min(max(last, low) if last > 0 else px(root, usual), round(0.92 * most))
            for last, low, usual, most in zip(
                (settings.width, settings.height), least, _USUAL_SIZE, screen, strict=True
            )
        )
        root.geometry(f"{width}x{height}")
        root.deiconify()
        root.update()
        self._show_side()
        if plot_size is not None:
            self._fit_plot(plot_size)
            self.state.on("device", self._refit_plot)
        self.area.plot.widget.focus_set()

    def _fit_plot(self, size: tuple[int, int]) -> None:
        """Make the window as large as it must be for a plot of this size."""
        for _ in range(3):  # the side pane may come or go, and lines of the toolbar with it
            self.root.update()
            self._resize_plot(size)
        self.root.update()

    def _refit_plot(self) -> None:
        """Give the plot back what the annotations of the first file took from it."""
        trace = self.state.trace
        if self._plot_size is not None and trace is not None and trace.times is not None:
            self.root.update_idletasks()
            self._resize_plot(self._plot_size)
            self._plot_size = None

    def _resize_plot(self, size: tuple[int, int]) -> None:
        root, plot = self.root, self.area.plot.widget
        width = root.winfo_width() + size[0] - plot.winfo_width()
        height = root.winfo_height() + size[1] - plot.winfo_height()
        root.geometry(f"{width}x{height}")

    # What commands do

    def open_file(self) -> None:
        name = filedialog.askopenfilename(
            parent=self.root,
            title="Open a memory snapshot",
            initialdir=self._directory(),
            filetypes=[("All files", "*")],  # what a file is, its content tells
        )
        if name:
            self.state.open(Path(name))

    def _directory(self) -> str:
        """Return where a person looks for files: beside the one that is open."""
        document = self.state.document
        return str(document.path.absolute().parent) if document else ""

    def open_directory(self) -> None:
        name = filedialog.askdirectory(
            parent=self.root, title="Open a converted snapshot", initialdir=self._directory()
        )
        if name:
            self.state.open(Path(name))

    def save_picture(self) -> None:
        if self.state.document is None or self.state.device is None:
            self.state.tell("There is nothing to save: open a snapshot first.")
            return
        name = filedialog.asksaveasfilename(
            parent=self.root,
            title="Save the picture",
            initialdir=self._directory(),
            defaultextension=".png",
            initialfile=f"{Path(self.state.document.name).stem}.png",
            filetypes=[("PNG", "*.png")],
        )
        if name:
            self.save_picture_to(Path(name))

    def save_picture_to(self, path: Path) -> None:
        """Write what is shown to a file, aside."""
        scale = 2 if px(self.root, 100) >= 175 else 1
        _, save = picture_of(self.state, scale)
        self.state.start(
            Job("save", "saving the picture"),
            lambda _: save(path),
            lambda _: self.state.tell(f"Saved {path.name}"),
            lambda error: self.state.tell(f"The picture was not saved: {error}", is_error=True),
        )

    def copy_details(self) -> None:
        if self.state.facts is None:
            self.state.tell("Select an allocation first: click it.")
            return
        self.root.clipboard_clear()
        self.root.clipboard_append(facts_report.as_text(self.state.facts))
        self.state.tell("Copied the details.")

    def focus_filter(self) -> None:
        self.toolbar.filter.entry.focus_set()
        self.toolbar.filter.entry.selection_range(0, "end")

    def focus_query(self) -> None:
        self.state.show_tab("sql")
        # Only what is on the screen can have the keyboard, and the next key may be there already.
        self.root.update_idletasks()
        self.side.sql.focus_query()

    def run_query(self) -> None:
        self.state.show_tab("sql")
        self.side.sql.run()

    def escape(self) -> None:
        """Leave a text that is being written; elsewhere, take back one thing."""
        focus = self.root.focus_get()
        self.area.plot.widget.focus_set()
        if isinstance(focus, (tk.Entry, tk.Text)) and str(focus["state"]) == "normal":
            return
        self.area.plot.forget()
        self.state.clear()

    def zoom(self, step: int, *, x: bool = True, y: bool = True) -> None:
        self.area.plot.zoom(step, x=x, y=y)

    def toggle_side(self) -> None:
        self.state.set_pane("side", is_shown=not self._is_side_shown)

    def show_keys(self) -> None:
        windows.show_keys(self.root, self.commands)

    def show_filter_help(self) -> None:
        windows.show_filter_help(self.root)

    def show_about(self) -> None:
        windows.show_about(self.root)

    def close(self) -> None:
        """Remember what is to be remembered, stop what goes on, and end."""
        settings = self.state.settings
        if not self._is_size_given:
            settings.width, settings.height = self.root.winfo_width(), self.root.winfo_height()
        self._note_side()
        save_settings(settings, self._settings_file)
        self.jobs.stop_all()
        self.root.destroy()
        self.state.close()

    # How it looks

    def _restyle(self) -> None:
        if self.state.look.theme != self._theme:
            self._theme = self.state.look.theme
            apply_theme(self.root, self._theme)

    def _retitle(self) -> None:
        document = self.state.document
        self.root.title(f"{document.name} – snapviewer" if document else "snapviewer")

    def _resized(self, event: tk.Event[tk.Misc]) -> None:
        if event.widget is self.root:
            self._show_side()

    def _show_side(self) -> None:
        """Show the side pane if it is wanted and has room, or was asked for just now."""
        settings = self.state.settings
        has_room = self.root.winfo_width() >= px(self.root, _SIDE_NEEDS)
        is_wanted = settings.show_side and (has_room or self.state.is_side_asked_for)
        if has_room:
            self.state.is_side_asked_for = False  # so that it folds once there is none
        if is_wanted and not self._is_side_shown:
            width = settings.side_width or px(self.root, _SIDE_WIDTH)
            width = min(max(width, px(self.root, 240)), self.root.winfo_width() // 2)
            self.side.configure(width=width)
            self.panes.add(self.side, weight=0)
            self._is_side_shown = True
        elif self._is_side_shown and not is_wanted:
            self._note_side()
            self.panes.forget(self.side)
            self._is_side_shown = False

    def _note_side(self) -> None:
        if self.side.winfo_ismapped():
            self.state.settings.side_width = self.side.winfo_width()

    def _tell_of_bug(self, kind: type[BaseException], error: BaseException, trace: object) -> None:
        """Keep the window, whatever went wrong in it."""
        log.error("in the window", exc_info=(kind, error, trace))  # type: ignore[arg-type]
        self.state.tell(f"Something went wrong in the window: {error!r}", is_error=True)


def run(
    files: Sequence[Path], *, plot_size: tuple[int, int] | None = None, theme: str = ""
) -> None:
    """Open the window, show the first of the files, and return when it is closed.

    Args:
        files: Snapshots or bundles; further ones are put among the recent ones.
        plot_size: How large the timeline is at first, in pixels.
        theme: "light" or "dark"; if not given, the one used last.

    Raises:
        NoDisplayError: There is no display.
    """
    try:
        window = Window(plot_size=plot_size, theme=theme)
    except tk.TclError as error:
        if "display" not in str(error):
            raise
        raise NoDisplayError(str(error)) from None
    for path in reversed(files):
        window.state.settings.opened(path.absolute())
    if files:
        # The window comes first, so that one sees that something happens.
        window.root.update()
        window.state.open(files[0])
    window.root.mainloop()
