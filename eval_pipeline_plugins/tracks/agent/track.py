"""The track: how the stages deal with tasks that are worked on with tools."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, Evidence, Json, Ran, Tool, ToolCall
from eval_pipeline.tracks.base import Executor, Task
from eval_pipeline.tracks.capabilities import (
    ActLimits,
    Acts,
    Audits,
    Damageable,
    Executes,
    Explains,
    Keeps,
    Shares,
    Tabulates,
    World,
)
from eval_pipeline.tracks.options import read_options
from eval_pipeline_plugins.tracks.agent import STEPS, WORLDS, AgentManifest
from eval_pipeline_plugins.tracks.agent.trajectory import (
    ANSWER,
    ASK,
    WAY,
    Trajectory,
    parse_trajectory,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from eval_pipeline.core.system.programs import OwnProgram
    from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentContext, AgentGold, AgentTurn
    from eval_pipeline_plugins.tracks.agent.cases.servers import ServedTools
    from eval_pipeline_plugins.tracks.agent.cases.settings import AgentOptions
    from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite

Shared = tuple["Mapping[str, WorldOfSuite]", "AgentOptions", "ServedTools"]


class AgentTrack(
    AgentManifest,
    Task["AgentContext", "AgentGold", Trajectory],
    Acts["AgentContext", "AgentGold"],
    Executes,
    Keeps["AgentContext", "AgentGold", Trajectory],
    Shares,
    Damageable["AgentContext", "AgentGold"],
    Audits["AgentContext", "AgentGold"],
    Tabulates["AgentContext", "AgentGold", Trajectory],
    Explains["AgentContext", "AgentGold", Trajectory],
):
    """See `tracks.base.Task` and `tracks.capabilities`; an artefact is what an agent did."""

    gold_fields: tuple[str, ...] = ("gold", "accept", "unanswerable", "checks")
    evidence_cpu_s: float = 0.1
    reserved: tuple[str, ...] = (ANSWER, ASK)
    reads_in_sandbox: bool = True

    task_text = Later("eval_pipeline_plugins.tracks.agent.prompt:task_text")
    executor = Later("eval_pipeline_plugins.tracks.agent.running.solving:open_executor")
    prompt_parts = Later("eval_pipeline_plugins.tracks.agent.prompt:prompt_parts")
    artefact_from_json = Later("eval_pipeline_plugins.tracks.agent.trajectory:trajectory_from_json")
    depends_on = Later("eval_pipeline_plugins.tracks.agent.checking.steady:depends_on")
    rewrites = Later("eval_pipeline_plugins.tracks.agent.running.proving:rewritten")
    contradictions = Later("eval_pipeline_plugins.tracks.agent.running.proving:contradictions")
    cheats = Later("eval_pipeline_plugins.tracks.agent.running.proving:cheats")
    damage = Later("eval_pipeline_plugins.tracks.agent.damage:damaged")
    answer_keys = Later("eval_pipeline_plugins.tracks.agent.checking.evidence:answer_keys")
    cards = Later("eval_pipeline_plugins.tracks.agent.cards:turn_cards")
    results = Later("eval_pipeline_plugins.tracks.agent.cards:work_done")

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> Shared:
        """Returns the suite's worlds, options and tools of servers after checking them."""
        from eval_pipeline_plugins.tracks.agent.cases.servers import read_served
        from eval_pipeline_plugins.tracks.agent.cases.settings import AgentOptions
        from eval_pipeline_plugins.tracks.agent.cases.worlds import read_worlds

        told = read_options(AgentOptions, options, f"{folder.name}/suite.yaml")
        worlds = read_worlds(folder, told.packages)
        return worlds, told, read_served(folder, told, next(iter(worlds.values())))

    def shared_rows(self, shared: Shared) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Returns a row for each world; if a world or the options change, what depends on them is made again."""
        served = {"served": shared[2].hash} if shared[2].tools else {}
        worlds, options = list(shared[0].values()), canonical_json(shared[1].model_dump(mode="json") | served)
        told = [one.told() for one in worlds]
        return {
            WORLDS.name: {
                "world": [one.name for one in worlds],
                "description": [one.description for one in worlds],
                "databases": [canonical_json(one["databases"]) for one in told],
                "world_hash": [one.hash for one in worlds],
                "options": [options for _ in worlds],
            }
        }

    def load_shared(self, tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> Shared:
        """Reads worlds and options again; they are as the record has them as long as the suite is the same."""
        return self.read_shared(folder, options)

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None) -> "AgentCase":
        """See `case_file.read_case`."""
        from eval_pipeline_plugins.tracks.agent.cases import case_file

        return case_file.read_case(raw, suite, file, line, *shared)

    def tools(self, case: "AgentCase") -> tuple[Tool, ...]:
        """Returns the tools of a case."""
        return tuple(case.context.all_tools().values())

    def limits(self, case: "AgentCase") -> ActLimits:
        """Returns what an attempt may use."""
        return case.context.limits

    def surroundings(self, case: "AgentCase") -> str:
        """Returns a hash of world, tools, user and what is told of a result."""
        context = case.context
        facts = [[list(fact.about), fact.say] for fact in context.facts or ()]
        told = [context.world.hash, list(context.tools), facts, context.otherwise, list(context.then)]
        return json_hash([*told, context.served.hash, context.limits.output_bytes])

    def world(
        self, executor: Executor, case: "AgentCase", turn: "AgentTurn", program: "OwnProgram | None" = None
    ) -> AbstractAsyncContextManager[World]:
        """Returns a world as the case begins with."""
        from eval_pipeline_plugins.tracks.agent.running.solving import AgentExecutor

        assert isinstance(executor, AgentExecutor)
        return executor.world(case, program)

    def check_gold(self, case: "AgentCase") -> "list[tuple[AgentTurn, str]]":
        """Returns the turn if its gold does not run or does not pass its own checks."""
        from eval_pipeline_plugins.tracks.agent.running.proving import gold_problem

        problem = gold_problem(case)
        return [] if problem is None else [(case.turns[0], problem)]

    def gold_place(self, index: int) -> tuple[str | int, ...]:
        """Returns the place of the gold: the case itself, as it is one task."""
        return ()

    def gold_complexity(self, turn: "AgentTurn") -> int:
        """Returns the number of calls of tools in the gold."""
        return len(turn.gold.script)

    def prefix_key(self, case: "AgentCase") -> str:
        """Returns a key of what prompts begin with."""
        return canonical_json([case.context.world.name, case.context.guidelines, case.context.facts is not None])

    def context_json(self, case: "AgentCase") -> Json:
        """Returns the world with its folder, and what may be done in it."""
        context = case.context
        return {
            "world": context.world.told(),
            "tools": list(context.all_tools()),
            "guidelines": context.guidelines,
            "folder": str(context.world.folder()),
        }

    def data_json(self, case: "AgentCase") -> Json:
        """Returns a hash of the world and what may be done in it."""
        return [self.surroundings(case), case.context.guidelines]

    def parse(self, text: str, *, recorded: bool) -> Trajectory:
        """See `trajectory.parse_trajectory`."""
        return parse_trajectory(text)

    def artefact_json(self, artefact: Trajectory) -> Json:
        """Returns the attempt as JSON."""
        return artefact.as_json()

    def compare_all(
        self, turns: "Sequence[tuple[AgentCase, AgentTurn, Attempt[Trajectory]]]"
    ) -> Iterator[tuple[Evidence, ...]]:
        """See `evidence.evidence_of`."""
        from eval_pipeline_plugins.tracks.agent.checking.evidence import evidence_of

        return (evidence_of(*turn) for turn in turns)

    def measure(
        self, case: "AgentCase", turn: "AgentTurn", final: Attempt[Trajectory], compared: Sequence[Evidence]
    ) -> tuple[Evidence, ...]:
        """Returns nothing: no check measures times."""
        return ()

    def values(
        self,
        case: "AgentCase",
        turn: "AgentTurn",
        attempts: Sequence[Attempt[Trajectory]],
        evidence: Sequence[Evidence],
    ) -> dict[str, Any]:
        """Returns the inputs of the metrics: the checks by kind, its way, why it ended, and its steps."""
        from eval_pipeline_plugins.tracks.agent.checking.unseen import unjudged

        final = attempts[-1]
        checks: dict[str, list[Mapping[str, Any]]] = {}
        for one in evidence:
            if "check" in one.details:
                checks.setdefault(one.kind, []).append({**one.details, "passed": one.verdict == "passed"})
        result = final.outcome.value if isinstance(final.outcome, Ran) else {}
        steps = final.artefact.steps if final.artefact is not None else ()
        return {
            "checks": checks,
            "way": next((one.details for one in evidence if one.kind == WAY), {}),
            "unjudged": unjudged(turn.gold.checks, result),
            "ended": result.get("ended"),
            "answered": bool(result.get("answers")),
            "steps": steps,
            "tools": [step for step in steps if step.kind == "tool"],
        }

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns `checks_passed`."""
        graded: float | None = metrics["checks_passed"]
        return graded

    def turn_row(
        self, case: "AgentCase", turn: "AgentTurn", attempts: Sequence[Attempt[Trajectory]]
    ) -> Mapping[str, Json]:
        """Returns features, world and difficulty, and how the attempt ended."""
        from eval_pipeline_plugins.tracks.agent.timeline import answer_shown

        outcome = attempts[-1].outcome if attempts else None
        result = outcome.value if isinstance(outcome, Ran) else None
        answers = result["answers"] if result else []
        return {
            **case.features,
            "world": case.context.world.name,
            "difficulty": turn.gold.difficulty,
            "gold_calls": len(turn.gold.script),
            "ended": result and result["ended"],
            "agent_answer": answer_shown(answers[-1]) if answers else None,
        }

    def table_rows(
        self,
        case: "AgentCase",
        turn: "AgentTurn",
        attempts: Sequence[Attempt[Trajectory]],
        evidence: Sequence[Evidence],
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """Returns the steps of the last attempt."""
        from eval_pipeline_plugins.tracks.agent.tables import step_rows

        return {STEPS.name: list(step_rows(attempts))}

    def expected_text(self, turn: "AgentTurn") -> str:
        """Returns the right answer."""
        from eval_pipeline_plugins.tracks.agent.timeline import answer_shown

        return answer_shown(turn.gold.accepted[-1][0])

    def answer_text(self, value: Json) -> str:
        """Returns the answer, or why there is none."""
        from eval_pipeline_plugins.tracks.agent.timeline import answer_shown

        return answer_shown(value["answers"][-1]) if value["answers"] else str(value["why"])

    def oracle(self, turn: "AgentTurn") -> str:
        """Returns the gold as a script."""
        from eval_pipeline_plugins.tracks.agent.damage import script_text

        return script_text(turn.gold.script)

    def answering(self, turn: "AgentTurn", text: str) -> str:
        """Returns the gold with another answer; where no answer counts, nothing but that."""
        from eval_pipeline_plugins.tracks.agent.damage import script_text, with_answer

        return script_text(with_answer(turn, text))

    def gold_is_empty(self, turn: "AgentTurn") -> bool:
        """Whether it is right to say that the task cannot be answered."""
        return turn.gold.unanswerable

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """Returns the trajectory of a row: its `response`, or a bare `answer`."""
        found = row.get("response")
        if found is None and row.get(ANSWER) is not None:
            call = ToolCall("", ANSWER, {ANSWER: row[ANSWER]})
            found = {"steps": [{"kind": "tool", "name": call.name, "arguments": dict(call.arguments)}]}
            found |= {"answer": row[ANSWER], "ended": "answered"}
        return "" if found is None else found if isinstance(found, str) else canonical_json(found)

    def unreadable(self, turn: "AgentTurn", artefact: Trajectory) -> str | None:
        """Returns why a recorded attempt cannot be scored: it is a script, which nobody has followed."""
        return "these are calls that were not made" if artefact.is_script else None

    def unscored(self, turn: "AgentTurn", artefact: Trajectory) -> Mapping[str, tuple[str, ...]]:
        """Returns the metrics that need an end state, if it is unknown."""
        from eval_pipeline_plugins.tracks.agent.checking.unseen import unjudged

        why = unjudged(turn.gold.checks, {"end_state": artefact.end_state})
        return {why: ("task_correct", "checks_passed")} if why else {}


TRACK = AgentTrack()
