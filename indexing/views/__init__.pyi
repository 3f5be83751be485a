# Public names, loaded on first use (`__init__.py`).
from .module_summary import summary as summary
from .report_page.page import ReportPage as ReportPage
from .report_page.page import report as report
from .report_page.page import report_passes as report_passes
