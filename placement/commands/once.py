"""Commands whose options may be given once: one that is given twice, or one way and the other, is an error."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from placement.errors import Problem, UsageError


class Once(TyperCommand):
    """A command that does not let the last of several values win, which is right for none who meant the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the name of the command.

        Raises
        ------
        UsageError
            If an option that takes one value is given several times, in whatever words.
        """
        # the parser eats the list
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        once = [option for option in order if option.param_type_name == "option" and not option.is_eager]
        given = Counter(option.name for option in once if not option.multiple)
        problems = []
        for option in self.get_params(ctx):
            if (times := given[option.name]) > 1:
                name = "/".join([option.opts[0], *option.secondary_opts])
                what = "is given twice" if times == 2 else f"is given {times} times"
                remedy = "give one of the two" if option.secondary_opts else "give it once"
                problems.append(Problem(name, what, remedy))
        if problems:
            raise UsageError(problems)
        return super().parse_args(ctx, args)
