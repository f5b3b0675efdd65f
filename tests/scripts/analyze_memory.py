"""`python tests/scripts/analyze_memory.py --log F --output R` reports on a log of memory events.

It is `snapviewer.events`; nothing has to be installed or built.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036 - older ones should say more than a traceback
    sys.exit("需要 Python 3.10 或更新的版本 (Python 3.10 or newer is needed)")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from snapviewer.cli import analyze_memory_main
from snapviewer.compat import events

add_custom_analysis = events.add_custom_analysis
analyze_log_file = events.analyze_log_file
format_b_to_mb = events.format_b_to_mb
generate_html_report = events.generate_html_report
generate_pdf_report = events.generate_pdf_report
generate_report = events.generate_report

if __name__ == "__main__":
    sys.exit(analyze_memory_main())
