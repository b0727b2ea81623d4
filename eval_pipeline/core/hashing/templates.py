"""Templates whose compiled form is kept for later processes, as compiling takes longer than filling them."""

import marshal
import sys
from collections.abc import MutableMapping
from types import CodeType
from typing import Any

import jinja2

from eval_pipeline.core.hashing.kept import kept


class KeptLoader(jinja2.PackageLoader):
    """Loads templates of a package; what an earlier process has compiled is not compiled again.

    Only source and jinja2 decide what is compiled, so no template may give constants to filters of ours: jinja2 applies
    these when it compiles. Compiled code lies where Python keeps its own of this package, for whoever may write that,
    and is checked by its digest: jinja2's own cache takes a damaged file for code.
    """

    def load(
        self, environment: jinja2.Environment, name: str, globals: MutableMapping[str, Any] | None = None
    ) -> jinja2.Template:
        """Returns a template."""
        source, filename, is_current = self.get_source(environment, name)
        made_from = [source, filename or "", jinja2.__version__, sys.version]

        def compiled() -> bytes:
            return marshal.dumps(environment.compile(source, name, filename))

        code: CodeType = marshal.loads(kept(f"template-{name.replace('/', '-')}", made_from, compiled))  # noqa: S302
        return environment.template_class.from_code(environment, code, globals or {}, is_current)
