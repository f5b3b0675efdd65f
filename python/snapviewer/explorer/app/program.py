"""The explorer in the terminal: the tree, the panel beside it, and what keys and mouse do.

What is to be seen is decided by `Browsing`; this program calls it and draws. Nothing here waits:
the tree is read and panels are made aside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import Footer, Static

from snapviewer import CancelledError, SnapshotError
from snapviewer.explorer.app.dialogs import ExportScreen, HelpScreen, LabelScreen
from snapviewer.explorer.app.exporting import write_export
from snapviewer.explorer.app.keys import FOLDING, LABELS, OTHER, PANELS, SEARCHING
from snapviewer.explorer.app.line import Labels
from snapviewer.explorer.app.panel import SidePanel, TabLine
from snapviewer.explorer.app.search_bar import SearchBar
from snapviewer.explorer.app.settings import (
    NARROWEST_PANEL,
    WIDEST_PANEL,
    Settings,
    load_settings,
    save_settings,
    settings_from,
)
from snapviewer.explorer.app.splitter import Splitter
from snapviewer.explorer.app.tabs import COMPARISON, TABS
from snapviewer.explorer.app.theme import PREFIX, ansi_theme, textual_theme, variables
from snapviewer.explorer.app.tree_view import TreeView
from snapviewer.explorer.app.waiting import waiting
from snapviewer.explorer.compare import TreeComparison, value_changes
from snapviewer.explorer.formats import format_memory, format_param_count
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.view import folding
from snapviewer.explorer.view.browsing import SMALL, Browsing
from snapviewer.explorer.view.marks import Mark, merged
from snapviewer.explorer.view.outline import Item, Outline, bytes_of, outline_of, shown
from snapviewer.explorer.view.pieces import Facts, kinds_of, sorted_first
from snapviewer.explorer.view.search import Query
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint
    from snapviewer.explorer.config import ExplorerConfig

Report = Callable[[int, int], object]
Reading = Callable[[Report, Event], Subject]
Marks = Mapping[int, Mark] | None

NARROW = 100  # columns below which the panel lies under the tree
_LINES_AROUND = 3
_ORDERS = {
    "name": "by name",
    "params": "by parameters",
    "memory": "by memory",
    "time": "by time",
}


class ExplorerApp(App[None]):
    """Shows a subject, or reads it first."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #title { height: 1; color: $quiet; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #main { height: 1fr; layout: horizontal; }
    #main > #tree { width: 1fr; height: 1fr; }
    #main > #panel { height: 1fr; }
    #main.-narrow { layout: vertical; }
    #main.-narrow > #panel { width: 1fr; }
    #main.-narrow > #panel > VerticalScroll { padding: 0 1; }
    #main.-alone > #panel, #main.-alone > Splitter { display: none; }
    #reading { display: none; width: 1fr; height: 1fr; content-align: center middle;
               color: $quiet; }
    #main.-reading > * { display: none; }
    #main.-reading > #reading { display: block; }
    """
    BINDINGS = [  # noqa: RUF012 (Textual's own type)
        key.binding() for group in (FOLDING, SEARCHING, LABELS, PANELS, OTHER) for key in group
    ]

    def __init__(
        self,
        source: Subject | Reading,
        *,
        config: ExplorerConfig | None = None,
        name: str = "",
    ) -> None:
        self.settings: Settings = load_settings() if config is None else settings_from(config)
        super().__init__()
        self._source = source
        self._model_name = name
        self._max_depth = None if config is None else config.max_depth
        self._cancel = Event()
        self._turns: asyncio.AbstractEventLoop | None = None
        self._wanted: Query | None = None
        self._pinned: Item | None = None
        self._kinds: list[str] = []
        self._comparing: Event | None = None
        self._compared_share: float | None = None
        self.subject: Subject | None = None
        self.browsing: Browsing | None = None
        self.marks: Mapping[int, Mark] | None = None
        self.failure: Exception | None = None
        for theme in ("dark", "light"):
            self.register_theme(textual_theme(theme))
        self.ansi_theme_dark = ansi_theme("dark")
        self.ansi_theme_light = ansi_theme("light")
        # Before the first style sheet is read: to change it later takes as long as to start.
        self.theme = f"{PREFIX}{self.settings.theme}"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables("dark")

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Container(id="main", classes="-reading"):
            yield Static(id="reading")
            yield TreeView(id="tree")
            yield Splitter()
            yield SidePanel(id="panel")
        yield SearchBar(is_regex=self.settings.is_regex, id="search")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.title = "snapviewer explore"
        self._turns = asyncio.get_running_loop()
        self._lay_out()
        self.query_one("#title", Static).update(Text(shown(self._model_name)))
        if isinstance(self._source, Subject):
            self._begin(self._source, *_looked_at(self._source))
        else:
            self._tell_progress(0, 0)
            self.analyze_model_async(self._source)

    # Reading.

    @work(exclusive=True, group="reading")
    async def analyze_model_async(self, read: Reading) -> None:
        """Read a model aside, telling how far it is; if this is cancelled, reading ends, too."""
        self._cancel = cancel = Event()

        def report(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self._tell_progress, done, total)

        def read_aside() -> tuple[Subject, Outline, Marks]:
            subject = read(report, cancel)
            return subject, *_looked_at(subject)

        loop = asyncio.get_running_loop()
        try:
            subject, outline, marks = await asyncio.to_thread(read_aside)
        except asyncio.CancelledError:
            cancel.set()
            raise
        except CancelledError:
            self.exit()
        except Exception as error:  # noqa: BLE001 (told on the screen, and after it by `explore`)
            self._fail(error)
        else:
            self._begin(subject, outline, marks)

    def _tell_progress(self, done: int, total: int) -> None:
        if self.browsing is not None or self.failure or not self.is_running:
            return
        words = f"Reading {shown(self._model_name) or 'the model'}"
        text = waiting(words, done, total, is_centred=True)
        self.query_one("#reading", Static).update(text)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        text = Text(f"{shown(self._model_name) or 'This'} cannot be explored\n\n", justify="center")
        text.append(shown(str(error) or type(error).__name__), "red").append("\n\nq quits", "dim")
        self.query_one("#reading", Static).update(text)

    def _begin(self, subject: Subject, outline: Outline, marks: Marks) -> None:
        self.subject, self.marks = subject, marks
        room = max(self.size.height - _LINES_AROUND, 10)
        self.browsing = Browsing(outline, stats=subject.stats, max_depth=self._max_depth, room=room)
        self.query_one("#main").remove_class("-reading")
        self.query_one(TreeView).focus()
        panel = self.query_one(SidePanel)
        # Whoever compares wants to see that first; without another model its panel is empty.
        panel.choose_by_title(
            COMPARISON
            if subject.other is not None
            else TABS[0].name
            if self.settings.panel == COMPARISON
            else self.settings.panel
        )
        self._show()

    # Drawing.

    def _show(self) -> None:
        """Draw the tree, the line above it and the panel as things are now."""
        browsing, subject = self.browsing, self.subject
        if browsing is None or subject is None:
            return
        settings = self.settings
        if "kind" in settings.switched_on and not self._kinds:
            self._kinds = kinds_of(browsing.outline)
        pieces = sorted_first(settings.pieces, browsing.view.order)
        labels = Labels(pieces, settings.is_aligned, settings.has_bars)
        facts = Facts(subject.stats, self._kinds)
        self.query_one(TreeView).show(browsing, labels, facts, self.marks)
        self.query_one("#title", Static).update(self._title(browsing, subject))
        item = browsing.item if self._pinned is None else self._pinned
        self.query_one(SidePanel).show(subject, item, is_kept=self._pinned is not None)

    def _title(self, browsing: Browsing, subject: Subject) -> Text:
        root = subject.tree.root
        text = Text(shown(subject.tree.name) or "model", "bold", no_wrap=True)
        parts = [
            f"{format_param_count(root.sums.parameters)} parameters",
            format_memory(bytes_of(root)),
            count_of(root.sums.modules, "module"),
        ]
        view = browsing.view
        # Where there is little room the end is cut off: what was chosen comes first.
        chosen = []
        if subject.comparison is not None:
            beside = subject.comparison
            tensors, modules = (
                sum(counts.values()) - counts["equal"]
                for counts in (beside.tensors, beside.modules)
            )
            differ = f"{count_of(tensors, 'tensor')}, {count_of(modules, 'module')} differ"
            chosen.append(f"to {shown(beside.after.name)}: {differ}{self._values_text()}")
        if view.order != "order" or view.is_reversed:
            words = _ORDERS.get(view.order, "in order")
            chosen.append(f"{words}{', reversed' if view.is_reversed else ''}")
        if browsing.small:
            chosen.append(f"below {100 * SMALL[browsing.small]:g} % hidden")
        if not view.has_tensors:
            chosen.append("without tensors")
        if view.filter is not None:
            chosen.append(f"{len(view.filter.matches):,} found")
        for part in (*chosen, *parts):
            text.append(f"  ·  {part}", "not bold")
        return text

    def _values_text(self) -> str:
        """Say what is known of the values of two files that are compared."""
        subject = self.subject
        if subject is None or subject.checkpoint is None or subject.other_checkpoint is None:
            return ""
        if self._compared_share is not None:
            return f", values {self._compared_share:.0%} …"
        return ", values too" if subject.value_changes is not None else ", values unknown (V)"

    def _lay_out(self, size: Size | None = None) -> None:
        main, panel = self.query_one("#main"), self.query_one(SidePanel)
        is_narrow = (size or self.size).width < NARROW
        main.set_class(is_narrow, "-narrow")
        main.set_class(not self.settings.has_panel, "-alone")
        self.query_one(Splitter).lie(is_lying=is_narrow)
        percent = f"{self.settings.panel_percent}%"
        panel.styles.width = "1fr" if is_narrow else percent
        panel.styles.height = percent if is_narrow else "1fr"

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size)

    def _remember(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)
        save_settings(self.settings)

    # Keys: moving and folding.

    def _do(self, work: Callable[[Browsing], object]) -> None:
        if self.browsing is not None:
            work(self.browsing)
            self._show()

    def action_move(self, by: int) -> None:
        self._do(lambda browsing: browsing.move_to_row(browsing.row + by))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self.query_one(TreeView).size.height - 1, 1))

    def action_first(self) -> None:
        self._do(lambda browsing: browsing.move_to_row(0))

    def action_last(self) -> None:
        self._do(lambda browsing: browsing.move_to_row(len(browsing.rows.places)))

    def action_go_in(self) -> None:
        self._do(Browsing.go_in)

    def action_go_out(self) -> None:
        self._do(Browsing.go_out)

    def action_fold(self, operation: str, has_descendants: bool = False) -> None:
        chosen = getattr(folding, operation)
        if has_descendants:
            chosen = partial(chosen, has_descendants=True)
        self._do(lambda browsing: browsing.fold(chosen))

    def action_fold_all(self) -> None:
        self._do(lambda browsing: browsing.fold(folding.all_toggled))

    def action_tensors(self) -> None:
        self._do(Browsing.switch_tensors)

    def action_pin(self) -> None:
        if self.browsing is not None:
            self._pinned = None if self._pinned is not None else self.browsing.item
            self._show()

    def on_tree_view_chosen(self, event: TreeView.Chosen) -> None:
        def choose(browsing: Browsing) -> None:
            browsing.move_to_row(event.row)
            if event.is_folding:
                browsing.fold(folding.toggled)

        self.query_one(TreeView).focus()
        self._do(choose)

    # Keys: searching and sorting.

    def action_search(self) -> None:
        if self.browsing is not None:
            self.query_one(SearchBar).open()

    def on_search_bar_typed(self, event: SearchBar.Typed) -> None:
        """Search for the newest that was typed; what was typed before that is passed over."""
        if self._wanted is None:
            self.call_later(self._search)
        self._wanted = event.query

    def _search(self) -> None:
        query, self._wanted = self._wanted, None
        if query is not None:
            self.search_for(query)

    def search_for(self, query: Query) -> None:
        """Show what a query finds, and how much that is."""
        if self.browsing is not None:
            self.browsing.search(query)
            found = self.browsing.found
            self.query_one(SearchBar).tell(len(found.matches), found.error)
            self._show()

    def on_search_bar_kept(self) -> None:
        self._search()
        if self.browsing is not None and self.browsing.view.filter is None:
            self.query_one(SearchBar).close()
        self.query_one(TreeView).focus()

    def action_switch_regex(self) -> None:
        bar = self.query_one(SearchBar)
        bar.switch()
        self._remember(is_regex=bar.is_regex)

    def action_next_match(self, step: int) -> None:
        def go(browsing: Browsing) -> None:
            if not browsing.next_match(step):
                self.notify("Nothing was found; / searches.", timeout=2)

        self._do(go)

    def action_order(self) -> None:
        self._do(Browsing.next_order)

    def action_reverse(self) -> None:
        self._do(Browsing.reverse)

    def action_hide_small(self) -> None:
        self._do(Browsing.hide_small)

    def action_next_difference(self) -> None:
        def go(browsing: Browsing) -> None:
            marks = self.marks or {}
            changed = {place for place, mark in marks.items() if not mark.is_inside}
            if not browsing.go_to_next(changed, 1):
                self.notify("Nothing is compared, or nothing differs.", timeout=2)
            elif browsing.view.filter is None:
                self.query_one(SearchBar).close()  # it was in the way of what was filtered out

        self._do(go)

    def action_compare_values(self) -> None:
        """Compare the elements of both files; Esc cancels."""
        subject = self.subject
        if subject is None or subject.checkpoint is None or subject.other_checkpoint is None:
            self.notify("Values are compared between two files: --compare OTHER.", timeout=3)
        elif self._comparing is None and subject.value_changes is None:
            self._compare_values(subject, subject.checkpoint, subject.other_checkpoint)

    @work(exclusive=True, group="values")
    async def _compare_values(self, subject: Subject, here: Checkpoint, there: Checkpoint) -> None:
        loop, cancel = asyncio.get_running_loop(), Event()
        told = -1

        def report(done: int, total: int) -> None:
            nonlocal told
            percent = 100 * done // total if total else 100
            if percent > told and not cancel.is_set():
                told = percent
                loop.call_soon_threadsafe(show, percent / 100)

        def show(share: float) -> None:
            if self._comparing is cancel:
                self._compared_share = share
                self._show()

        def compare() -> tuple[Subject, Marks]:
            changes = value_changes(here, there, progress=report, cancel=cancel)
            compared = replace(subject, value_changes=changes)
            return compared, _looked_at(compared)[1]

        self._comparing, self._compared_share = cancel, 0.0
        self._show()
        try:
            self.subject, self.marks = await asyncio.to_thread(compare)
        except CancelledError:
            self.notify("Values were not compared.", timeout=2)
        except (OSError, SnapshotError) as error:
            self.notify(str(error), title="Not compared", severity="error", markup=False)
        finally:
            cancel.set()  # if the program ends, the thread is to stop, too
            self._comparing = self._compared_share = None
        self._show()

    # Keys: labels.

    def set_labels(self, labels: tuple[str, ...], switched_on: tuple[str, ...]) -> None:
        """Give rows these labels in this order."""
        self._remember(labels=labels, switched_on=switched_on)
        self._show()

    def action_label(self, name: str) -> None:
        on = self.settings.switched_on
        changed = tuple(one for one in on if one != name) if name in on else (*on, name)
        self.set_labels(self.settings.labels, changed)
        if name == "time" and name in changed and self.subject and self.subject.stats is None:
            self.notify("No times: nothing was recorded of this model.", timeout=3)

    def action_labels(self) -> None:
        self.push_screen(
            LabelScreen(self.settings.labels, self.settings.switched_on, self.set_labels)
        )

    def action_bars(self) -> None:
        self._remember(has_bars=not self.settings.has_bars)
        self._show()

    def action_align(self) -> None:
        self._remember(is_aligned=not self.settings.is_aligned)
        self._show()

    # Keys: the panel.

    def _choose_panel(self, number: int) -> None:
        panel = self.query_one(SidePanel)
        panel.choose(number)
        self._remember(panel=panel.title, has_panel=True)
        self._lay_out()

    def action_panel(self, step: int) -> None:
        panel = self.query_one(SidePanel)
        self._choose_panel(panel.number + step if self.settings.has_panel else panel.number)

    def action_panel_number(self, number: int) -> None:
        self._choose_panel(number - 1)

    def action_show_panel(self, title: str) -> None:
        if self.query_one(SidePanel).choose_by_title(title):
            self._choose_panel(self.query_one(SidePanel).number)

    def on_tab_line_chosen(self, event: TabLine.Chosen) -> None:
        self._choose_panel(event.number)

    def action_statistics(self) -> None:
        """Measure what the panel tells of; Esc, or moving on, cancels."""
        panel = self.query_one(SidePanel)
        if self.browsing is not None:
            self._choose_panel(0)
            panel.measure()

    def action_scroll_panel(self, lines: int) -> None:
        self.query_one(SidePanel).scroll_lines(3 * lines)

    def action_switch_panel(self) -> None:
        self._remember(has_panel=not self.settings.has_panel)
        self._lay_out()
        self._show()

    def action_widen(self, step: int) -> None:
        self._set_percent(self.settings.panel_percent + 4 * step)

    def _set_percent(self, percent: int) -> None:
        percent = max(NARROWEST_PANEL, min(percent, WIDEST_PANEL))
        if percent != self.settings.panel_percent:
            self._remember(panel_percent=percent)
            self._lay_out()

    def on_splitter_moved(self, event: Splitter.Moved) -> None:
        region = self.query_one("#main").region
        is_narrow = self.size.width < NARROW
        before, whole = (
            (event.y - region.y, region.height) if is_narrow else (event.x - region.x, region.width)
        )
        if whole:
            self._set_percent(round(100 * (whole - before) / whole))

    # Keys: the rest.

    def action_copy_path(self) -> None:
        if self.browsing is not None:
            # A lone half of a letter, which a live module's name may have, fits in no clipboard.
            path = self.browsing.item.path.encode(errors="replace").decode()
            self.copy_to_clipboard(path)
            self.notify(
                shown(path) or "(the root has no path)", title="Copied", timeout=2, markup=False
            )

    def action_theme(self) -> None:
        self._remember(theme="light" if self.settings.theme == "dark" else "dark")
        self.theme = f"{PREFIX}{self.settings.theme}"

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_export(self) -> None:
        if self.browsing is not None:
            self.push_screen(ExportScreen(), self._export_as)

    def _export_as(self, form: str | None) -> None:
        if form is None or self.browsing is None or self.subject is None:
            return
        if self.subject.comparison is not None and form != "text":
            self.notify("A comparison is exported as text only.", timeout=3)
        else:
            self._export(self.browsing, form, self.subject.comparison)

    @work(group="export")
    async def _export(
        self, browsing: Browsing, form: str, comparison: TreeComparison | None
    ) -> None:
        try:
            path = await asyncio.to_thread(write_export, browsing, form, Path.cwd(), comparison)
        except Exception as error:  # noqa: BLE001 (whatever goes wrong, the explorer goes on)
            self.notify(shown(str(error)), title="Not written", severity="error", markup=False)
        else:
            self.notify(str(path), title="Written", markup=False)

    def action_escape(self) -> None:
        """Cancel reading; or clear the search; or let go of what is kept."""
        if self.browsing is None:
            self._cancel.set()
            if self.failure:
                self.exit()
            return
        if self._comparing is not None:
            self._comparing.set()
            return
        if self.query_one(SidePanel).cancel():
            return
        bar = self.query_one(SearchBar)
        if bar.has_class("-open") or self.browsing.view.filter is not None:
            self._wanted = None
            bar.close()
            self.browsing.clear()
            self.query_one(TreeView).focus()
        else:
            self._pinned = None
        self._show()

    async def action_quit(self) -> None:
        self._leave()

    def leave_soon(self) -> None:
        """Quit; called by a signal, whatever runs."""
        if self._turns is None:
            raise SystemExit  # nothing is on the screen yet
        self._turns.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._cancel.set()
        self.exit()


def _looked_at(subject: Subject) -> tuple[Outline, Marks]:
    """List a subject's tree; with the other one in it, and marked, if it is compared."""
    if subject.comparison is None:
        return outline_of(subject.tree), None
    return merged(subject.comparison)
