"""The window: its parts, its size, and the commands that need the window itself."""

from __future__ import annotations

import logging
import re
import tkinter as tk
from collections.abc import Sequence
from pathlib import Path
from tkinter import filedialog, ttk

from PIL import Image, ImageDraw, ImageTk

from snapviewer.report.picture.drawing import draw, write
from snapviewer.report.picture.options import LARGEST, SMALLEST, PictureOptions
from snapviewer.report.snapshot import allocation_details as details_report

from . import dialogs
from .commands import commands_of
from .dock.dock import Dock
from .dock.map_tab import MapTab
from .jobs import Job, ThreadJobs
from .keys import HeldKeys
from .menus import bind_keys, make_menus
from .overlay import Overlay
from .panes.side import Side
from .plot.area import Area
from .plot.first_line import FirstLine
from .settings import load_settings, save_settings, settings_file
from .state import SELECT_FIRST, State
from .status_bar import StatusBar
from .theme import apply_theme, px
from .toolbar import Toolbar

log = logging.getLogger(__name__)

_USUAL_SIZE = (1500, 900)
_MIN_SIZE = (900, 600)
_SIDE_NEEDS_PX = 1100  # a narrower window folds the side pane away
_SIDE_WIDTH = 490
_DOCK_HEIGHT, _DOCK_LEAST = 260, 120
_ICON_BARS = (
    (0.0, 0.30, "#4c78c8"),
    (0.2, 0.52, "#e0823d"),
    (0.42, 0.80, "#4fa56b"),
    (0.6, 0.62, "#9467bd"),
)


class NoDisplayError(Exception):
    """There is no display to open a window on."""


class Window:
    """The main window. `state` contains everything that it shows."""

    def __init__(self, *, plot_size: tuple[int, int] | None = None, theme: str = "") -> None:
        self.root = tk.Tk(className="Snapviewer")
        self.root.withdraw()
        self._settings_file = settings_file()
        settings = load_settings(self._settings_file)
        if theme:
            settings.theme = theme
        self.jobs = ThreadJobs(self.root)
        self.state = State(self.jobs, settings)
        apply_theme(self.root, self.state.look.theme)
        self.root.report_callback_exception = self._report_bug
        self._build()
        self._make_keys()
        self.state.on(self._restyle, "look")
        self.state.on(self._retitle, "document")
        self.state.on(self._show_side, "panes")
        self.state.on(self._show_dock, "panes")
        self._theme = self.state.look.theme
        self._is_side_shown = self._is_dock_shown = False
        self._is_size_given = plot_size is not None
        self._plot_size = plot_size
        self._place(plot_size)
        self._retitle()

    def _build(self) -> None:
        root, state = self.root, self.state
        self.toolbar = Toolbar(root, state)
        self.first_line = FirstLine(root, state)
        self.panes = ttk.PanedWindow(root, orient="horizontal")
        self.left = ttk.PanedWindow(self.panes, orient="vertical")
        self.area = Area(self.left, state)
        self.dock = Dock(self.left, state)
        self.side = Side(self.panes, state)
        self.status = StatusBar(root, state, self.show_completeness)
        self.toolbar.pack(side="top", fill="x")
        self.first_line.pack(side="top", fill="x")
        self.status.pack(side="bottom", fill="x")
        self.panes.pack(side="top", fill="both", expand=True)
        self.left.add(self.area, weight=1)
        self.panes.add(self.left, weight=1)
        self.overlay = Overlay(self.area, state, self.open_file)
        self.root.iconphoto(True, _icon(root))

    def _make_keys(self) -> None:
        self.commands = commands_of(self.state, self)
        self.root.configure(menu=make_menus(self.root, self.state, self.commands))
        self._held = HeldKeys(self.root, self.state)
        bind_keys(self.root, self.commands, self._held)
        # As in other programs; in Tk it moves to the beginning of the line.
        self.root.event_delete("<<LineStart>>", "<Control-a>")
        self.root.event_add("<<SelectAll>>", "<Control-a>")
        self.root.protocol("WM_DELETE_WINDOW", self.close)
        self.root.bind("<Configure>", self._resized, add=True)

    def _place(self, plot_size: tuple[int, int] | None) -> None:
        root, settings = self.root, self.state.settings
        least = [px(root, size) for size in _MIN_SIZE]
        screen = root.winfo_screenwidth(), root.winfo_screenheight()
        root.minsize(min(least[0], screen[0]), min(least[1], screen[1]))
        # As large as last time, but not larger than the screen.
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
        self._show_dock()
        if plot_size is not None:
            self._fit_plot(plot_size)
            self.state.on(self._refit_plot, "device", "answers")
        self.area.plot.widget.focus_set()

    def _fit_plot(self, size: tuple[int, int]) -> None:
        """Resize the window for a plot of this size, as far as the screen allows."""
        for _ in range(3):  # the side pane and labels of the toolbar come and go with the width
            self.root.update()
            self._resize_plot(size)
        self.root.update()

    def _refit_plot(self) -> None:
        """Restore the plot's size after the lanes of the first file have taken some of it."""
        trace = self.state.trace
        answers = self.state.answers
        are_known = answers.found is not None or answers.error
        is_whole = trace is not None and trace.times is not None and are_known
        if self._plot_size is not None and is_whole:
            self.root.update_idletasks()
            self._resize_plot(self._plot_size)
            self._plot_size = None

    def _resize_plot(self, size: tuple[int, int]) -> None:
        root, plot = self.root, self.area.plot.widget
        # The frame begins above the title bar and the menu, and has a border on each side.
        x, y = (int(place) for place in re.findall(r"[+](-?\d+)", root.wm_geometry()))
        border, above = root.winfo_rootx() - x, root.winfo_rooty() - y
        room_x = root.winfo_screenwidth() - 2 * border
        room_y = root.winfo_screenheight() - above - border
        width = min(root.winfo_width() + size[0] - plot.winfo_width(), room_x)
        height = min(root.winfo_height() + size[1] - plot.winfo_height(), room_y)
        root.geometry(f"{width}x{height}")
        if x + width > room_x or y + height > room_y:
            root.geometry(f"+{max(min(x, room_x - width), 0)}+{max(min(y, room_y - height), 0)}")

    # Commands

    def open_file(self) -> None:
        name = filedialog.askopenfilename(
            parent=self.root,
            title="Open memory snapshot",
            initialdir=self._directory(),
            filetypes=[("All files", "*")],  # recognized by content, not by name
        )
        if name:
            self.state.open(Path(name))

    def _directory(self) -> str:
        """Return the directory that dialogs start in: that of the open file."""
        document = self.state.document
        return str(document.path.absolute().parent) if document else ""

    def open_directory(self) -> None:
        name = filedialog.askdirectory(
            parent=self.root, title="Open converted snapshot", initialdir=self._directory()
        )
        if name:
            self.state.open(Path(name))

    def save_picture(self) -> None:
        if self.state.document is None or self.state.device is None:
            self.state.notify("Open a snapshot first.")
            return
        name = filedialog.asksaveasfilename(
            parent=self.root,
            title="Save picture",
            initialdir=self._directory(),
            defaultextension=".png",
            initialfile=f"{Path(self.state.document.name).stem}.png",
            filetypes=[("PNG", "*.png")],
        )
        if name:
            self.save_picture_to(Path(name))

    def save_picture_to(self, path: Path) -> None:
        """Save the part in view as a PNG with axes and legend, as a job."""
        document, device = self.state.document, self.state.device
        assert document is not None
        assert device is not None
        options = _picture_options(self.state, scale=2 if px(self.root, 100) >= 175 else 1)
        self.state.start(
            Job("save", "saving the picture"),
            lambda _: write(draw(document.snapshot, device, options, file=document.name), path),
            lambda _: self.state.notify(f"Saved {path.name}."),
            lambda error: self.state.notify(f"Could not save the picture: {error}", is_error=True),
        )

    def copy_details(self) -> None:
        if self.state.allocation_details is None:
            self.state.notify(SELECT_FIRST)
            return
        self.root.clipboard_clear()
        self.root.clipboard_append(details_report.as_text(self.state.allocation_details))
        self.state.notify("Copied the details.")

    def focus_filter(self) -> None:
        self.toolbar.filter.entry.focus_set()
        self.toolbar.filter.entry.selection_range(0, "end")

    def focus_query(self) -> None:
        self.state.show_tab("sql")
        # Only a visible widget can have the keyboard, and the next key may have been typed already.
        self.root.update_idletasks()
        self.side.sql.focus_query()

    def run_query(self) -> None:
        self.state.show_tab("sql")
        self.side.sql.run()

    def escape(self) -> None:
        """Leave a text that is being edited; elsewhere, undo one step at a time."""
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

    def zoom_map(self, step: int) -> None:
        view = self.dock.views.get("map")
        if isinstance(view, MapTab):
            view.map.zoom(step)

    def show_keys(self) -> None:
        dialogs.show_keys(self.root, self.commands)

    def show_filter_syntax(self) -> None:
        dialogs.show_filter_syntax(self.root)

    def show_completeness(self) -> None:
        if self.status.completeness is not None:
            dialogs.show_completeness(self.root, self.status.completeness)

    def show_about(self) -> None:
        dialogs.show_about(self.root)

    def close(self) -> None:
        """Save the settings, stop all jobs, and close the window."""
        settings = self.state.settings
        if not self._is_size_given:
            settings.width, settings.height = self.root.winfo_width(), self.root.winfo_height()
        self._note_side()
        self._note_dock()
        save_settings(settings, self._settings_file)
        self.jobs.stop_all()
        self.root.destroy()
        self.state.close()

    # Appearance

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
        """Show the side pane if it is wanted and has room, or was requested just now."""
        settings = self.state.settings
        has_room = self.root.winfo_width() >= px(self.root, _SIDE_NEEDS_PX)
        is_wanted = settings.show_side and (has_room or self.state.is_side_requested)
        if has_room:
            self.state.is_side_requested = False  # it folds once there is no room
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

    def _show_dock(self) -> None:
        """Show the dock below the timeline if it is wanted."""
        settings = self.state.settings
        if settings.show_dock and not self._is_dock_shown:
            room = self.left.winfo_height()
            height = settings.dock_height or px(self.root, _DOCK_HEIGHT)
            height = min(max(height, px(self.root, _DOCK_LEAST)), max(room * 2 // 3, 1))
            self.dock.configure(height=height)
            self.left.add(self.dock, weight=0)
        elif self._is_dock_shown and not settings.show_dock:
            self._note_dock()
            self.left.forget(self.dock)
        self._is_dock_shown = settings.show_dock

    def _note_dock(self) -> None:
        if self.dock.winfo_ismapped():
            self.state.settings.dock_height = self.dock.winfo_height()

    def _report_bug(self, kind: type[BaseException], error: BaseException, trace: object) -> None:
        """Show an unexpected error, and go on."""
        log.error("error in the window", exc_info=(kind, error, trace))  # type: ignore[arg-type]
        self.state.notify(
            f"Unexpected error: {error!r}. This is a bug; please report it.", is_error=True
        )


def run(
    files: Sequence[Path],
    *,
    plot_size: tuple[int, int] | None = None,
    theme: str = "",
    profile: Path | None = None,
) -> None:
    """Open the window, show the first of the files, and return when it is closed.

    Args:
        files: Snapshots or bundles; the others become recent files.
        plot_size: The size of the plot at the start, in pixels, as far as the screen allows.
        theme: "light" or "dark"; the default is the last used.
        profile: A profiler's trace of the same run.

    Raises:
        NoDisplayError: There is no display.
    """
    try:
        window = Window(plot_size=plot_size, theme=theme)
    except tk.TclError as error:
        if "display" not in str(error):
            raise
        raise NoDisplayError(str(error)) from None
    for path in reversed(files[1:]):
        if path.exists():
            window.state.settings.add_recent(path.absolute())
    if files:
        # The window appears before the file is read.
        window.root.update()
        window.state.open(files[0])
        if profile is not None:
            window.state.open_profile(profile)
    window.root.mainloop()


def _picture_options(state: State, scale: int) -> PictureOptions:
    """Describe the part in view as a picture.

    Args:
        state: What is shown; there must be a device.
        scale: 2 on a screen of twice the density.
    """
    device, view, clock, look = state.device, state.view, state.clock, state.look
    assert device is not None
    span = view.x_span if clock is None else (clock.real(view.left), clock.real(view.right))
    width, height = (
        min(max(size // scale, least), most // scale)
        for size, least, most in zip(state.plot_px, SMALLEST, LARGEST, strict=True)
    )
    has_matches = state.filter.matches is not None
    return PictureOptions(
        size=(max(width, 900), max(height, 500)),
        scale=scale,
        axis="event" if look.axis == "event" else "time",
        shorten_idle=look.axis == "busy time",
        span=span if int(device.events) else None,
        byte_span=view.byte_span,
        color=look.color,
        order=look.order,
        filters=(state.filter.text,) if has_matches else (),
        dim=state.filter.mode == "highlight" and has_matches,
        recorded_only=state.filter.recorded_only,
        theme=look.theme,
        lines=state.settings.show_lines,
    )


def _icon(root: tk.Misc) -> tk.PhotoImage:
    """Draw the window's icon, a small timeline."""
    size = 64
    image = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    drawing = ImageDraw.Draw(image)
    width = size * 0.32
    for left, height, color in _ICON_BARS:
        x = left * size + 2
        drawing.rounded_rectangle((x, size * (1 - height), x + width, size - 2), 4, fill=color)
    return ImageTk.PhotoImage(image, master=root)  # type: ignore[return-value]
