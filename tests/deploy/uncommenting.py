"""What a shipped YAML file says once its examples are uncommented."""

import re


def uncommented(text: str) -> str:
    """``text`` with each commented ``key:`` or ``- key:`` live; sentences stay comments."""
    return re.sub(r"^( *)# ( *(?:- )?[a-z_]+:(?: .*)?)$", r"\1\2", text, flags=re.MULTILINE)
