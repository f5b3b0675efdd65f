"""Memory events: records what a run does to memory, and reports on such logs.

Only the standard library is needed; a PDF needs `snapviewer[pdf]`.

>>> from snapviewer.events import EventRecorder, analyze, read_log
>>> analysis = analyze(read_log("memory_events.json"))           # doctest: +SKIP
>>> analysis.peak.size_bytes, analysis.steps.growth.verdict      # doctest: +SKIP
(25893642240, 'leak-signature')
"""

from snapviewer.document.html import as_html
from snapviewer.document.markdown import as_markdown
from snapviewer.document.pdf import PdfUnavailable, as_pdf

from .analysis import Analysis, analyze
from .errors import LogError
from .log import Event, Log, read_log
from .recorder import EventRecorder
from .report.record import as_dict
from .report.single import REPORT_FORMAT, report_on
from .seed import (
    add_custom_analysis,
    analyze_log_file,
    format_b_to_mb,
    generate_html_report,
    generate_pdf_report,
    generate_report,
    register_section,
    unregister_section,
)

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
