"""A sample to try: a day of work as a dialog file, with a tour that shows on it what happens to a context.

`reads.py` has the texts of the tour's stops, `writes.py` what each stop's button does. `Dialog.tour` is the current
stop. `docs/sample_day.py` writes the dialog files.
"""

from __future__ import annotations
