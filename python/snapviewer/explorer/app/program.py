"""The explorer in the terminal: the tree, the panel beside it, and the actions of keys and mouse.

`TreeBrowser` decides what is visible; this program calls it and draws. Nothing here blocks: the
tree is read and panels are made in worker threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
from snapviewer.explorer.app.dialogs import HelpScreen, LabelScreen
from snapviewer.explorer.app.export import ExportScreen, write_export
from snapviewer.explorer.app.keys import GLOBAL
from snapviewer.explorer.app.line import RowOptions
from snapviewer.explorer.app.panel import (
    COMPARISON,
    TABS,
    SidePanel,
    Splitter,
    TabLine,
    progress_text,
)
from snapviewer.explorer.app.search_bar import SearchBar
from snapviewer.explorer.app.settings import (
    MAX_PANEL_PERCENT,
    MIN_PANEL_PERCENT,
    ExplorerConfig,
    ExplorerSettings,
    load_settings,
    save_settings,
    settings_from,
)
from snapviewer.explorer.app.theme import PREFIX, ansi_theme, textual_theme, variables
from snapviewer.explorer.app.tree_view import TreeView
from snapviewer.explorer.compare import TreeComparison, value_changes
from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.formats import format_param_count
from snapviewer.explorer.view import folding
from snapviewer.explorer.view.browser import HIDDEN_SHARES, TreeBrowser
from snapviewer.explorer.view.outline import Outline, bytes_of, display_name, outline_of_model
from snapviewer.explorer.view.row_labels import RowData, kinds_of
from snapviewer.explorer.view.search import Query
from snapviewer.text.units import count_of, format_bytes

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint

Report = Callable[[int, int], object]
Reading = Callable[[Report, Event], ExploredModel]

NARROW = 100  # columns below which the panel is under the tree
_LINES_AROUND = 3
_ORDERS = {
    "name": "by name",
    "params": "by parameters",
    "memory": "by memory",
    "time": "by time",
}


class ExplorerApp(App[None]):
    """Shows a model, or reads it first."""

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
        key.binding() for key in GLOBAL
    ]

    def __init__(
        self,
        source: ExploredModel | Reading,
        *,
        config: ExplorerConfig | None = None,
        name: str = "",
    ) -> None:
        self.settings: ExplorerSettings = (
            load_settings() if config is None else settings_from(config)
        )
        super().__init__()
        self._source = source
        self._model_name = name
        self._max_depth = None if config is None else config.max_depth
        self._cancel = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next_query: Query | None = None
        self._pinned: Item | None = None
        self._kinds: list[str] = []
        self._comparing: Event | None = None
        self._compared_share: float | None = None
        self.explored: ExploredModel | None = None
        self.browser: TreeBrowser | None = None
        self.failure: Exception | None = None
        for theme in ("dark", "light"):
            self.register_theme(textual_theme(theme))
        self.ansi_theme_dark = ansi_theme("dark")
        self.ansi_theme_light = ansi_theme("light")
        # Before the first style sheet is parsed: changing it later takes as long as starting.
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
        self._loop = asyncio.get_running_loop()
        self._lay_out()
        self.query_one("#title", Static).update(Text(display_name(self._model_name)))
        if isinstance(self._source, ExploredModel):
            self._begin(self._source, outline_of_model(self._source))
        else:
            self._show_progress(0, 0)
            self.analyze_model_async(self._source)

    # Reading

    @work(exclusive=True, group="reading")
    async def analyze_model_async(self, read: Reading) -> None:
        """Read a model in a thread, showing the progress; cancelling this stops the reading."""
        self._cancel = cancel = Event()

        def report(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self._show_progress, done, total)

        def read_in_thread() -> tuple[ExploredModel, Outline]:
            explored = read(report, cancel)
            return explored, outline_of_model(explored)

        loop = asyncio.get_running_loop()
        try:
            explored, outline = await asyncio.to_thread(read_in_thread)
        except asyncio.CancelledError:
            cancel.set()
            raise
        except CancelledError:
            self.exit()
        except Exception as error:  # noqa: BLE001 (shown here, and raised by `explore`)
            self._fail(error)
        else:
            self._begin(explored, outline)

    def _show_progress(self, done: int, total: int) -> None:
        if self.browser is not None or self.failure or not self.is_running:
            return
        words = f"Reading {display_name(self._model_name) or 'the model'}"
        text = progress_text(words, done, total, is_centred=True)
        self.query_one("#reading", Static).update(text)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        text = Text(
            f"{display_name(self._model_name) or 'This'} cannot be explored\n\n", justify="center"
        )
        text.append(display_name(str(error) or type(error).__name__), "red").append(
            "\n\nq quits", "dim"
        )
        self.query_one("#reading", Static).update(text)

    def _begin(self, explored: ExploredModel, outline: Outline) -> None:
        self.explored = explored
        room = max(self.size.height - _LINES_AROUND, 10)
        self.browser = TreeBrowser(
            outline, stats=explored.stats, max_depth=self._max_depth, room=room
        )
        self.query_one("#main").remove_class("-reading")
        self.query_one(TreeView).focus()
        panel = self.query_one(SidePanel)
        # A comparison opens on its own panel; without another model that panel is empty.
        panel.choose_by_title(
            COMPARISON
            if explored.other is not None
            else TABS[0].name
            if self.settings.panel == COMPARISON
            else self.settings.panel
        )
        self._show()

    # Drawing

    def _show(self) -> None:
        """Draw the tree, the title and the panel."""
        browser, explored = self.browser, self.explored
        if browser is None or explored is None:
            return
        settings = self.settings
        if "kind" in settings.switched_on and not self._kinds:
            self._kinds = kinds_of(browser.outline)
        options = RowOptions(settings.shown_labels, settings.is_aligned, settings.has_bars)
        self.query_one(TreeView).show(browser, options, RowData(explored.stats, self._kinds))
        self.query_one("#title", Static).update(self._title(browser, explored))
        item = browser.item if self._pinned is None else self._pinned
        self.query_one(SidePanel).show(explored, item, is_pinned=self._pinned is not None)

    def _title(self, browser: TreeBrowser, explored: ExploredModel) -> Text:
        root = explored.tree.root
        text = Text(display_name(explored.tree.name) or "model", "bold", no_wrap=True)
        parts = [
            f"{format_param_count(root.sums.parameters)} parameters",
            format_bytes(bytes_of(root)),
            count_of(root.sums.modules, "module"),
        ]
        view = browser.view
        # A narrow screen cuts off the end: what the user chose comes first.
        chosen = []
        if explored.comparison is not None:
            compared = explored.comparison
            tensors, modules = (
                sum(counts.values()) - counts["equal"]
                for counts in (compared.tensors, compared.modules)
            )
            differ = f"{count_of(tensors, 'tensor')}, {count_of(modules, 'module')} differ"
            chosen.append(f"to {display_name(compared.after.name)}: {differ}{self._values_text()}")
        if view.order != "order" or view.is_reversed:
            words = _ORDERS.get(view.order, "model order")
            chosen.append(f"{words}{', reversed' if view.is_reversed else ''}")
        if browser.hidden_level:
            chosen.append(f"below {100 * HIDDEN_SHARES[browser.hidden_level]:g} % hidden")
        if not view.has_tensors:
            chosen.append("tensors hidden")
        if view.filter is not None:
            chosen.append(f"{len(view.filter.matches):,} found")
        for part in (*chosen, *parts):
            text.append(f"  ·  {part}", "not bold")
        return text

    def _values_text(self) -> str:
        """Return whether the values of two compared files were compared."""
        explored = self.explored
        if explored is None or explored.checkpoint is None or explored.other_checkpoint is None:
            return ""
        if self._compared_share is not None:
            return f", values {self._compared_share:.0%} …"
        return (
            ", values compared"
            if explored.value_changes is not None
            else ", values not compared (V)"
        )

    def _lay_out(self, size: Size | None = None) -> None:
        main, panel = self.query_one("#main"), self.query_one(SidePanel)
        is_narrow = (size or self.size).width < NARROW
        main.set_class(is_narrow, "-narrow")
        main.set_class(not self.settings.has_panel, "-alone")
        self.query_one(Splitter).set_horizontal(is_horizontal=is_narrow)
        percent = f"{self.settings.panel_percent}%"
        panel.styles.width = "1fr" if is_narrow else percent
        panel.styles.height = percent if is_narrow else "1fr"

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size)

    def _remember(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)
        save_settings(self.settings)

    # Keys: moving and folding

    def _browse(self, work: Callable[[TreeBrowser], object]) -> None:
        if self.browser is not None:
            work(self.browser)
            self._show()

    def action_move(self, by: int) -> None:
        self._browse(lambda browser: browser.move_to_row(browser.row + by))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self.query_one(TreeView).size.height - 1, 1))

    def action_first(self) -> None:
        self._browse(lambda browser: browser.move_to_row(0))

    def action_last(self) -> None:
        self._browse(lambda browser: browser.move_to_row(len(browser.rows.places)))

    def action_go_in(self) -> None:
        self._browse(TreeBrowser.go_in)

    def action_go_out(self) -> None:
        self._browse(TreeBrowser.go_out)

    def action_fold(self, operation: str, has_descendants: bool = False) -> None:
        chosen = getattr(folding, operation)
        if has_descendants:
            chosen = partial(chosen, has_descendants=True)
        self._browse(lambda browser: browser.fold(chosen))

    def action_fold_all(self) -> None:
        self._browse(lambda browser: browser.fold(folding.all_toggled))

    def action_tensors(self) -> None:
        self._browse(TreeBrowser.toggle_tensors)

    def action_pin(self) -> None:
        if self.browser is not None:
            self._pinned = None if self._pinned is not None else self.browser.item
            self._show()

    def on_tree_view_chosen(self, event: TreeView.Chosen) -> None:
        def choose(browser: TreeBrowser) -> None:
            browser.move_to_row(event.row)
            if event.is_folding:
                browser.fold(folding.toggled)

        self.query_one(TreeView).focus()
        self._browse(choose)

    # Keys: searching and sorting

    def action_search(self) -> None:
        if self.browser is not None:
            self.query_one(SearchBar).open()

    def on_search_bar_typed(self, event: SearchBar.Typed) -> None:
        """Search for what was typed last; queries typed before that are skipped."""
        if self._next_query is None:
            self.call_later(self._search)
        self._next_query = event.query

    def _search(self) -> None:
        query, self._next_query = self._next_query, None
        if query is not None:
            self.search_for(query)

    def search_for(self, query: Query) -> None:
        """Show the matches of a query and their number."""
        if self.browser is not None:
            self.browser.search(query)
            found = self.browser.found
            self.query_one(SearchBar).show_result(len(found.matches), found.error)
            self._show()

    def on_search_bar_kept(self) -> None:
        self._search()
        if self.browser is not None and self.browser.view.filter is None:
            self.query_one(SearchBar).close()
        self.query_one(TreeView).focus()

    def action_toggle_regex(self) -> None:
        bar = self.query_one(SearchBar)
        bar.toggle_regex()
        self._remember(is_regex=bar.is_regex)

    def action_next_match(self, step: int) -> None:
        def go(browser: TreeBrowser) -> None:
            if not browser.next_match(step):
                self.notify("No matches; / starts a search.", timeout=2)

        self._browse(go)

    def action_order(self) -> None:
        self._browse(TreeBrowser.next_order)

    def action_reverse(self) -> None:
        self._browse(TreeBrowser.reverse)

    def action_hide_small(self) -> None:
        self._browse(TreeBrowser.hide_small)

    def action_next_difference(self) -> None:
        def go(browser: TreeBrowser) -> None:
            marks = browser.outline.diff_marks or {}
            changed = {place for place, mark in marks.items() if not mark.is_inside}
            if not browser.go_to_next(changed, 1):
                self.notify("No differences, or nothing is compared.", timeout=2)
            elif browser.view.filter is None:
                self.query_one(SearchBar).close()  # the filter hid the difference and was cleared

        self._browse(go)

    def action_compare_values(self) -> None:
        """Compare the elements of both files; Esc cancels."""
        explored = self.explored
        if explored is None or explored.checkpoint is None or explored.other_checkpoint is None:
            self.notify("Only the values of two files can be compared: --compare OTHER.", timeout=3)
        elif self._comparing is None and explored.value_changes is None:
            self._compare_values(explored, explored.checkpoint, explored.other_checkpoint)

    @work(exclusive=True, group="values")
    async def _compare_values(
        self, explored: ExploredModel, here: Checkpoint, there: Checkpoint
    ) -> None:
        loop, cancel = asyncio.get_running_loop(), Event()
        reported = -1

        def report(done: int, total: int) -> None:
            nonlocal reported
            percent = 100 * done // total if total else 100
            if percent > reported and not cancel.is_set():
                reported = percent
                loop.call_soon_threadsafe(show, percent / 100)

        def show(share: float) -> None:
            if self._comparing is cancel:
                self._compared_share = share
                self._show()

        def compare() -> tuple[ExploredModel, Outline]:
            changes = value_changes(here, there, progress=report, cancel=cancel)
            compared = replace(explored, value_changes=changes)
            return compared, outline_of_model(compared)

        self._comparing, self._compared_share = cancel, 0.0
        self._show()
        try:
            self.explored, outline = await asyncio.to_thread(compare)
            if self.browser is not None:
                self.browser.outline = outline  # the same places, more marks
        except CancelledError:
            self.notify("Comparison of values cancelled.", timeout=2)
        except (OSError, SnapshotError) as error:
            self.notify(str(error), title="Not compared", severity="error", markup=False)
        finally:
            cancel.set()  # if the program ends, the thread must stop, too
            self._comparing = self._compared_share = None
        self._show()

    # Keys: labels

    def set_labels(self, labels: tuple[str, ...], switched_on: tuple[str, ...]) -> None:
        """Set the labels of rows and their order."""
        self._remember(labels=labels, switched_on=switched_on)
        self._show()

    def action_label(self, name: str) -> None:
        on = self.settings.switched_on
        changed = tuple(one for one in on if one != name) if name in on else (*on, name)
        self.set_labels(self.settings.labels, changed)
        if name == "time" and name in changed and self.explored and self.explored.stats is None:
            self.notify("No times: no run of this model was recorded.", timeout=3)

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

    # Keys: the panel

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
        """Measure the item in the panel; Esc, or moving on, cancels."""
        panel = self.query_one(SidePanel)
        if self.browser is not None:
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
        percent = max(MIN_PANEL_PERCENT, min(percent, MAX_PANEL_PERCENT))
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

    # Keys: the rest

    def action_copy_path(self) -> None:
        if self.browser is not None:
            # A clipboard takes no lone surrogates, which a live module's name may contain.
            path = self.browser.item.path.encode(errors="replace").decode()
            self.copy_to_clipboard(path)
            self.notify(
                display_name(path) or "(the root's path is empty)",
                title="Copied",
                timeout=2,
                markup=False,
            )

    def action_theme(self) -> None:
        self._remember(theme="light" if self.settings.theme == "dark" else "dark")
        self.theme = f"{PREFIX}{self.settings.theme}"

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_export(self) -> None:
        if self.browser is not None:
            self.push_screen(ExportScreen(), self._export_as)

    def _export_as(self, form: str | None) -> None:
        if form is None or self.browser is None or self.explored is None:
            return
        if self.explored.comparison is not None and form != "text":
            self.notify("A comparison can be exported as text only.", timeout=3)
        else:
            self._export(self.browser, form, self.explored.comparison)

    @work(group="export")
    async def _export(
        self, browser: TreeBrowser, form: str, comparison: TreeComparison | None
    ) -> None:
        try:
            path = await asyncio.to_thread(write_export, browser, form, Path.cwd(), comparison)
        except Exception as error:  # noqa: BLE001 (the explorer goes on after any failure)
            self.notify(
                display_name(str(error)), title="Not written", severity="error", markup=False
            )
        else:
            self.notify(str(path), title="Written", markup=False)

    def action_escape(self) -> None:
        """Cancel what is running, or clear the search, or unpin."""
        if self.browser is None:
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
        if bar.has_class("-open") or self.browser.view.filter is not None:
            self._next_query = None
            bar.close()
            self.browser.clear()
            self.query_one(TreeView).focus()
        else:
            self._pinned = None
        self._show()

    async def action_quit(self) -> None:
        self._leave()

    def quit_soon(self) -> None:
        """Quit from a signal handler."""
        if self._loop is None:
            raise SystemExit  # the screen is not in use yet
        self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._cancel.set()
        self.exit()
