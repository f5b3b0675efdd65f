"""Memory events: records what a run does to memory, and reports on such logs.

Only the standard library is needed; a PDF needs `snapviewer[pdf]`.

>>> from snapviewer.events import EventRecorder, analyze, read_log
>>> analysis = analyze(read_log("memory_events.json"))           # doctest: +SKIP
>>> analysis.peak.size_bytes, analysis.steps.growth.verdict      # doctest: +SKIP
(25893642240, 'leak-signature')
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true

_HOMES = {
    "compat.events": (
        "add_custom_analysis",
        "analyze_log_file",
        "format_b_to_mb",
        "generate_html_report",
        "generate_pdf_report",
        "generate_report",
        "register_section",
        "unregister_section",
    ),
    "events.analysis": ("Analysis", "analyze"),
    "events.errors": ("LogError",),
    "events.log": ("Event", "Log", "read_log"),
    "events.recorder": ("EventRecorder",),
    "report.events.json": ("as_dict",),
    "report.events.single": ("REPORT_FORMAT", "report_on"),
    "report.writers.html": ("as_html",),
    "report.writers.markdown": ("as_markdown",),
    "report.writers.pdf": ("PdfUnavailable", "as_pdf"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "REPORT_FORMAT",
    "Analysis",
    "Event",
    "EventRecorder",
    "Log",
    "LogError",
    "PdfUnavailable",
    "add_custom_analysis",
    "analyze",
    "analyze_log_file",
    "as_dict",
    "as_html",
    "as_markdown",
    "as_pdf",
    "format_b_to_mb",
    "generate_html_report",
    "generate_pdf_report",
    "generate_report",
    "read_log",
    "register_section",
    "report_on",
    "unregister_section",
]

# A type checker sees the names themselves, so that it finds the wrong ones.
if TYPE_CHECKING:
    from snapviewer.compat.events import (
        add_custom_analysis,
        analyze_log_file,
        format_b_to_mb,
        generate_html_report,
        generate_pdf_report,
        generate_report,
        register_section,
        unregister_section,
    )
    from snapviewer.report.events.json import as_dict
    from snapviewer.report.events.single import REPORT_FORMAT, report_on
    from snapviewer.report.writers.html import as_html
    from snapviewer.report.writers.markdown import as_markdown
    from snapviewer.report.writers.pdf import PdfUnavailable, as_pdf

    from .analysis import Analysis, analyze
    from .errors import LogError
    from .log import Event, Log, read_log
    from .recorder import EventRecorder
else:

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"snapviewer.{_HOME_OF[name]}")
        value = globals()[name] = getattr(home, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
