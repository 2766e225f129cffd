"""The critic: analyses context events and proposes changes with numbers; a person decides. Pure: values in, values out.

`replay` finds frequent events, says what would have happened with another limit, and proposes limits; `chains`
estimates whether another order of the chain would have earned more, and proposes it.
"""

from __future__ import annotations
