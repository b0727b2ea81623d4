"""Worlds: folders with files and databases in which agents act by tools, each attempt in an overlay of its own.

`Worlds` opens them; `World` is one attempt's, with its tools and what it has changed in the end.
"""

from eval_pipeline.sandbox.world.changes import ChangedFile as ChangedFile
from eval_pipeline.sandbox.world.changes import changed as changed
from eval_pipeline.sandbox.world.errors import WorldError as WorldError
from eval_pipeline.sandbox.world.hosted import NO_POSTGRES as NO_POSTGRES
from eval_pipeline.sandbox.world.hosted import Hosted as Hosted
from eval_pipeline.sandbox.world.hosted import hosted_place as hosted_place
from eval_pipeline.sandbox.world.hosted import installed_postgres as installed_postgres
from eval_pipeline.sandbox.world.tools import TOOLS as TOOLS
from eval_pipeline.sandbox.world.tools import tool as tool
from eval_pipeline.sandbox.world.tools import why_wrong as why_wrong
from eval_pipeline.sandbox.world.worlds import OpenWorld as OpenWorld
from eval_pipeline.sandbox.world.worlds import Servers as Servers
from eval_pipeline.sandbox.world.worlds import WorldLimits as WorldLimits
from eval_pipeline.sandbox.world.worlds import Worlds as Worlds
