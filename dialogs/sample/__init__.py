"""A sample to try: a day of work as a dialog file, and a tour that shows on it what happens to a context.

`reads.py` says what each stop of the tour says, `writes.py` what its button does. Where the tour stands is a column of
the dialog; that something was compacted, undone or brought back is read from the dialog itself. `docs/sample_day.py`
writes the files.
"""

from __future__ import annotations
