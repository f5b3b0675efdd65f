"""Memory events: record the memory of a run, and report on such logs.

Only the standard library is needed; PDF needs the extra `pdf`.

>>> from snapviewer.events import EventRecorder, analyze, read_log
>>> analysis = analyze(read_log("memory_events.json"))           # doctest: +SKIP
>>> analysis.peak.size_bytes, analysis.steps.growth.verdict      # doctest: +SKIP
(25893642240, 'leak-signature')
"""

from snapviewer._lazy import TYPE_CHECKING, lazy_names

__all__: list[str]

if TYPE_CHECKING:
    from snapviewer.compat.events import add_custom_analysis as add_custom_analysis
    from snapviewer.compat.events import analyze_log_file as analyze_log_file
    from snapviewer.compat.events import format_b_to_mb as format_b_to_mb
    from snapviewer.compat.events import generate_html_report as generate_html_report
    from snapviewer.compat.events import generate_pdf_report as generate_pdf_report
    from snapviewer.compat.events import generate_report as generate_report
    from snapviewer.compat.events import register_section as register_section
    from snapviewer.compat.events import unregister_section as unregister_section
    from snapviewer.events.analysis import Analysis as Analysis
    from snapviewer.events.analysis import analyze as analyze
    from snapviewer.events.log import Event as Event
    from snapviewer.events.log import Log as Log
    from snapviewer.events.log import read_log as read_log
    from snapviewer.events.reader import LogError as LogError
    from snapviewer.events.recorder import EventRecorder as EventRecorder
    from snapviewer.report.events.json import to_json as to_json
    from snapviewer.report.events.report import report_on as report_on
    from snapviewer.report.events.words import REPORT_FORMAT as REPORT_FORMAT
    from snapviewer.report.writers.html import as_html as as_html
    from snapviewer.report.writers.markdown import as_markdown as as_markdown
    from snapviewer.report.writers.pdf import PdfUnavailable as PdfUnavailable
    from snapviewer.report.writers.pdf import as_pdf as as_pdf
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "compat.events": "add_custom_analysis analyze_log_file format_b_to_mb "
            "generate_html_report generate_pdf_report generate_report register_section "
            "unregister_section",
            "events.analysis": "Analysis analyze",
            "events.reader": "LogError",
            "events.log": "Event Log read_log",
            "events.recorder": "EventRecorder",
            "report.events.json": "to_json",
            "report.events.report": "report_on",
            "report.events.words": "REPORT_FORMAT",
            "report.writers.html": "as_html",
            "report.writers.markdown": "as_markdown",
            "report.writers.pdf": "PdfUnavailable as_pdf",
        },
    )
