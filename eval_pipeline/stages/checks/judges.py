"""Checks whether a judge is independent of the model that it judged."""

from eval_pipeline.core.model import Json
from eval_pipeline.providers.families import families_of
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS
from eval_pipeline.workspace.inputs import Inputs


def check_judge_family(inputs: Inputs) -> CheckVerdict:
    """Checks that judge and judged model belong to different model families, as far as their names tell."""
    header = inputs.header(JUDGEMENTS)
    rows = inputs.read(JUDGEMENTS, ["model", "asked"]).to_pylist() if header else []
    judges = sorted({row["model"] for row in rows if row["asked"] and row["model"]})
    if not judges:
        return CheckVerdict(True, "no judge was asked")
    version = inputs.version
    served = filter(None, inputs.read(GENERATIONS, ["served_model"])["served_model"].unique().to_pylist())
    judged = sorted({name for name in (version.model, version.priced_as or "", *served) if name})
    same = sorted(families_of(*judges) & families_of(*judged))
    facts: dict[str, Json] = {"judges": judges, "judged": judged, "families": same}
    if same:
        return CheckVerdict(
            False,
            f"the judge {', '.join(judges)} and the model it judged ({', '.join(judged)}) are both of the family "
            f"{', '.join(same)}: judges favour their own kind; let another family judge, or trust the evidence",
            facts,
            warning=True,
        )
    return CheckVerdict(True, "as far as names tell, judge and judged are of different families", facts)
