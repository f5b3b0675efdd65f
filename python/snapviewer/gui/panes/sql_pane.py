"""SQL queries: an editor, the schema, and a table with the result."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from tkinter import ttk

from snapviewer.gui.queries import Answer
from snapviewer.gui.state import State
from snapviewer.gui.theme import CODE, palette_of, px
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of

from .cells import cell_text, cell_tip, is_number_column, table_text
from .schema import EXAMPLES, NOTES, TABLES
from .sorted_table import SortedTable, Sorting
from .virtual_table import Column, RowHooks

_PLACEHOLDER = "select idx, size from at_peak order by size desc"
_HELP = "Ctrl+Return runs the query. See Examples, and Tables for the schema."
_NO_FILE = "Open a file to query it."
_MAX_COLUMNS = 200  # Tk creates each of them, whether it is visible or not
_MAX_ERROR_CHARS = 600
_MAX_SAMPLE_CHARS = 60  # that a column is made wide for
_SAMPLED_ROWS = 100


class SqlPane(ttk.Frame):
    """A query, its result, and the schema."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._queries = state.queries
        self._answer: Answer | None = None
        self._place_of: dict[int, int] = {}
        self._is_help_shown = False
        self._columns: dict[str, tuple[str, ...]] = {}
        self._past = -1
        self._draft = ""
        self._panes = ttk.PanedWindow(self, orient="vertical")
        self._panes.pack(fill="both", expand=True)
        self._make_editor()
        self._make_help()
        self._make_results()
        state.on(self._show, "query", "document", "bundle")
        state.on(self._mark, "selection")
        state.on(self._recolor, "look")
        self._recolor()
        self._show()

    # Widgets

    def _make_editor(self) -> None:
        gap = px(self, 8)
        part = ttk.Frame(self._panes)
        self.text = tk.Text(
            part, height=5, width=20, wrap="word", undo=True, font=CODE, highlightthickness=1
        )
        self.text.configure(padx=px(self, 6), pady=px(self, 4))
        self.placeholder = tk.Label(self.text, text=_PLACEHOLDER, font=CODE, cursor="xterm")
        self.placeholder.bind("<Button-1>", lambda _: self.text.focus_set())
        self.text.bind("<<Modified>>", self._show_placeholder)
        self.text.bind("<Control-Return>", self.run)
        self.text.bind("<Control-Up>", lambda _: self._go_back(1))
        self.text.bind("<Control-Down>", lambda _: self._go_back(-1))
        bar = ttk.Frame(part)
        self.run_button = ttk.Button(bar, text="Run", width=6, command=self.run)
        self.cancel_button = ttk.Button(bar, text="Cancel", width=6, command=self._queries.cancel)
        self.run_button.pack(side="left")
        self.cancel_button.pack(side="left", padx=(px(self, 4), 0))
        self.tables_button = ttk.Button(
            bar, text="Tables", style="Flat.TButton", width=0, command=self.toggle_help
        )
        self.tables_button.pack(side="right")
        self.examples = self._menu(bar, "Examples")
        for one in EXAMPLES:
            self.examples.add_command(label=one.question, command=self._writer(one.sql))
        self.history = self._menu(bar, "History")
        self.history.configure(postcommand=self._list_history)
        bar.pack(side="bottom", fill="x", padx=gap, pady=(px(self, 6), gap))
        self.text.pack(fill="both", expand=True, padx=gap, pady=(gap, 0))
        self._panes.add(part, weight=0)
        self._show_placeholder()

    def _menu(self, bar: ttk.Frame, title: str) -> tk.Menu:
        button = ttk.Button(bar, text=f"{title} ▾", style="Flat.TButton", width=0)
        menu = tk.Menu(button, tearoff=False)

        def post() -> None:
            menu.tk_popup(button.winfo_rootx(), button.winfo_rooty() + button.winfo_height())

        button.configure(command=post)
        button.pack(side="right")
        return menu

    def _make_help(self) -> None:
        """Make the list of tables, which is hidden at first."""
        self._help = ttk.Frame(self._panes)
        self.tables = ttk.Treeview(self._help, show="tree", columns=("what",), height=8)
        self.tables.column("#0", width=px(self, 150), stretch=False)
        self.tables.column("what", width=px(self, 200), stretch=True)
        self.tables.tag_configure("column")
        bar = ttk.Scrollbar(self._help, orient="vertical", command=self.tables.yview)
        self.tables.configure(yscrollcommand=bar.set)
        for name, about in TABLES.items():
            self.tables.insert("", "end", iid=name, text=name, values=(about,))
        self.tables.bind("<Double-Button-1>", self._insert_name)
        self.tables.bind("<Return>", self._insert_name)
        bar.pack(side="right", fill="y")
        self.tables.pack(fill="both", expand=True)

    def _make_results(self) -> None:
        gap = px(self, 8)
        part = ttk.Frame(self._panes)
        bar = ttk.Frame(part)
        self.status = ttk.Label(bar)
        self.copy_button = ttk.Button(
            bar, text="Copy as CSV", style="Flat.TButton", width=0, command=self._copy_all
        )
        self.copy_button.pack(side="right", anchor="n")
        self.status.pack(side="left", fill="x", expand=True)
        bar.pack(fill="x", padx=gap, pady=(px(self, 2), px(self, 4)))
        bar.bind("<Configure>", self._wrap)
        hooks = RowHooks(on_select=self._select, tip_of=self._tip)
        self.results = SortedTable(part, (), self._texts, hooks)
        self.results.tree.bind("<Control-c>", self._copy_marked)
        self.results.pack(fill="both", expand=True)
        self._panes.add(part, weight=1)

    def _wrap(self, _: tk.Event[tk.Misc]) -> None:
        room = self.winfo_width() - self.copy_button.winfo_reqwidth() - px(self, 24)
        self.status.configure(wraplength=max(room, px(self, 80)))

    def _recolor(self) -> None:
        colors = palette_of(self._state.look.theme)
        self.text.configure(
            background=colors.background,
            foreground=colors.text,
            insertbackground=colors.text,
            highlightbackground=colors.border,
            highlightcolor=colors.accent,
        )
        self.placeholder.configure(background=colors.background, foreground=colors.secondary)
        self.tables.tag_configure("column", foreground=colors.secondary)

    # The query

    @property
    def sql(self) -> str:
        return self.text.get("1.0", "end-1c")

    def write(self, sql: str) -> None:
        """Put a query into the editor, as one step that can be undone."""
        self.text.edit_separator()
        self.text.replace("1.0", "end-1c", sql)
        self.text.edit_separator()
        self.text.mark_set("insert", "end-1c")
        self.text.focus_set()

    def focus_query(self) -> None:
        """Give the keyboard to the editor."""
        self.text.focus_set()

    def _writer(self, sql: str) -> Callable[[], None]:
        return lambda: self.write(sql)

    def _show_placeholder(self, _: object = None) -> None:
        self.text.edit_modified(False)
        if self.sql:
            self.placeholder.place_forget()
        else:
            self.placeholder.place(x=px(self, 5), y=px(self, 3))

    def run(self, _: object = None) -> str:
        """Run the query."""
        self._past = -1
        self._queries.run(self.sql)
        return "break"

    def _go_back(self, step: int) -> str:
        """Show an earlier or a later query; after the latest comes the one being edited."""
        history = self._queries.history
        if self._past < 0:
            self._draft = self.sql
        past = min(max(self._past + step, -1), len(history) - 1)
        if past != self._past:
            self._past = past
            self.write(history[past] if past >= 0 else self._draft)
        return "break"

    def _list_history(self) -> None:
        self.history.delete(0, "end")
        for sql in self._queries.history[:20]:
            label = " ".join(sql.split())
            label = label if len(label) <= 70 else f"{label[:69]}…"
            self.history.add_command(label=label, command=self._writer(sql))
        if not self._queries.history:
            self.history.add_command(label="No queries yet", state="disabled")

    def toggle_help(self) -> None:
        """Show or hide the list of tables."""
        if self._is_help_shown:
            self._panes.forget(self._help)
        else:
            self._panes.insert(1, self._help, weight=1)
            self._queries.load_schema(tuple(TABLES))
        self._is_help_shown = not self._is_help_shown

    def _show_columns(self) -> None:
        """List the columns of the tables, as far as they have been read."""
        columns = self._queries.columns
        if self._is_help_shown and not columns:
            self._queries.load_schema(tuple(TABLES))
        if columns is self._columns:
            return
        self._columns = columns
        for table in TABLES:
            self.tables.delete(*self.tables.get_children(table))
            for name in columns.get(table, ()):
                note = (NOTES.get(name, ""),)
                self.tables.insert(table, "end", text=name, values=note, tags=("column",))

    def _insert_name(self, _: tk.Event[tk.Misc]) -> str:
        for item in self.tables.selection():
            self.text.insert("insert", self.tables.item(item, "text"))
        self.text.focus_set()
        return "break"

    # The result

    def _show(self) -> None:
        queries = self._queries
        self.cancel_button.state(["!disabled" if queries.is_running else "disabled"])
        text, is_error = self._status()
        style = "Error.TLabel" if is_error else "Secondary.TLabel"
        self.status.configure(text=text, style=style)
        if queries.answer is not self._answer:
            self._show_answer(queries.answer)
        self._show_columns()

    def _status(self) -> tuple[str, bool]:
        """Return the status, and whether it is an error."""
        queries, answer = self._queries, self._queries.answer
        if self._state.document is None:
            return _NO_FILE, False
        if queries.is_preparing:
            return "Preparing queries …", False
        if queries.is_running:
            return "Running …", False
        if queries.error or self._state.bundle_error:
            return sanitize(queries.error or self._state.bundle_error, _MAX_ERROR_CHARS), True
        if queries.is_cancelled:
            return "Cancelled.", False
        if answer is None:
            return _HELP, False
        rows = f"{'first ' if answer.is_truncated else ''}{count_of(len(answer.rows), 'row')}"
        more = len(answer.columns) - _MAX_COLUMNS
        left_out = f" · {more:,} more columns, copied but not shown" if more > 0 else ""
        return f"{rows} in {answer.seconds:.2f} s{left_out}", False

    def _show_answer(self, answer: Answer | None) -> None:
        self._answer = answer
        columns, rows = ((), ()) if answer is None else (answer.columns, answer.rows)
        columns = columns[:_MAX_COLUMNS]
        self.results.set_rows((), sorting=Sorting())
        self.results.set_columns([self._column(place) for place in range(len(columns))])
        self.results.set_rows(rows)
        self.results.see(0)
        self.copy_button.state(["!disabled" if rows else "disabled"])
        names = [name.lower() for name in columns]
        self._place_of = {}
        if "idx" in names:
            idx = names.index("idx")
            self._place_of = {row[idx]: place for place, row in enumerate(rows)}
        self._mark()

    def _column(self, place: int) -> Column:
        assert self._answer is not None
        name, rows = self._answer.columns[place], self._answer.rows[:_SAMPLED_ROWS]
        texts = (cell_text(name, row[place])[:_MAX_SAMPLE_CHARS] for row in rows)
        is_last = place == min(len(self._answer.columns), _MAX_COLUMNS) - 1
        return Column(
            sanitize(name, _MAX_SAMPLE_CHARS),
            max(texts, key=len, default=""),
            is_number=is_number_column(place, rows),
            grows=is_last,
        )

    def _texts(self, place: int) -> tuple[str, ...]:
        assert self._answer is not None
        row = self._answer.rows[place]
        return tuple(
            cell_text(name, value)
            for name, value in zip(
                self._answer.columns[:_MAX_COLUMNS], row[:_MAX_COLUMNS], strict=True
            )
        )

    def _tip(self, place: int, column: int) -> str:
        assert self._answer is not None
        return cell_tip(self._answer.columns[column], self._answer.rows[place][column])

    def _select(self, place: int) -> None:
        assert self._answer is not None
        found = self._queries.allocation_of(self._answer.rows[place])
        if found is not None:
            which, allocation = found
            self._state.choose_device(which)
            self._state.select(allocation, reveal=True)

    def _mark(self) -> None:
        """Mark the row of the selected allocation."""
        device, selection = self._state.device, self._state.selection
        if device is None or selection is None or not self._place_of:
            return
        place = self._place_of.get(device.first_idx + selection)
        if place is not None and place not in self.results.places(self.results.marked):
            self.results.mark_place(place)

    # Copying

    def _copy_marked(self, _: tk.Event[tk.Misc]) -> str:
        places = self.results.places(self.results.marked)
        if self._answer is not None and places:
            rows = [self._answer.rows[place] for place in places]
            self._copy(table_text(self._answer.columns, rows, delimiter="\t"))
            self._state.notify(f"Copied {count_of(len(rows), 'row')}.")
        return "break"

    def _copy_all(self) -> None:
        if self._answer is not None:
            places = self.results.places(range(self.results.count))
            rows = [self._answer.rows[place] for place in places]
            self._copy(table_text(self._answer.columns, rows, delimiter=","))
            self._state.notify(f"Copied {count_of(len(rows), 'row')} as CSV.")

    def _copy(self, text: str) -> None:
        self.clipboard_clear()
        self.clipboard_append(text)
