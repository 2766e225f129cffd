"""The critic: it looks at what went wrong and proposes, with numbers; a person decides. Pure: values in, values out.

`patterns` says where something goes wrong, `replay` what would have happened with another limit, `off_policy` whether
another order of the chain would have earned more, `limits` and `chains` make proposals of these.
"""

from __future__ import annotations
