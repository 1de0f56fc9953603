"""The ledger: every statement of the chapter with what the executed notebooks measured of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

STATEMENTS = {
    "STEP-1": "Equal steps of the parameters are not equal steps of the policy",
    "PDL-1": "The performance-difference lemma holds for any two policies",
    "PDL-2": "The surrogate can be estimated from the old policy's data",
    "PDL-3": "Surrogate and return part at second order",
    "PDL-4": "Greedy improvement is safe with exact advantages, not with estimated ones",
    "PDL-5": "Products of ratios are of no use over long horizons",
    "CPI-1": "The bound of conservative policy iteration is never violated",
    "CPI-2": "Steps that the bound certifies improve the return every time",
    "CPI-3": "The KL bound is never violated, and maximizing it never hurts",
    "CPI-4": "The certified step is orders of magnitude shorter than the safe one",
    "CPI-5": "A sampled surrogate gain need not be 0 where the exact one is",
    "TRPO-1": "To second order the mean KL is the Fisher matrix's quadratic form",
    "TRPO-2": "No direction of the same quadratic KL gains more than the natural one",
    "TRPO-3": "Conjugate gradient reproduces the printed errors and stays within its bound",
    "TRPO-4": "Without damping ten iterations do not solve the equation, and the step overshoots",
    "TRPO-5": "The printed step comes out digit for digit; damping keeps its KL below the radius",
    "CLIP-1": "The clipped objective never exceeds the unclipped one",
    "CLIP-2": "Both agree in value and gradient at ratio 1",
    "CLIP-3": "The derivative vanishes in two regions, and never where a sample got worse",
    "CLIP-4": "A band is wide for a likely action and narrow for a rare one",
    "CLIP-5": "An adaptive penalty follows its target where a fixed one does not",
    "BANDIT-1": "The printed bandit table comes out digit for digit",
    "BANDIT-2": "Unclipped, the policy moves far in ten epochs",
    "BANDIT-3": "Clipped, it moves less, but many ratios leave the band",
    "BANDIT-4": "A KL penalty keeps it nearest",
    "BANDIT-5": "In a bandit the unclipped objective improves the most",
    "BANDIT-6": "The order holds over many seeds; the printed numbers are a mild seed's",
    "PMD-1": "The mirror step lies between no step and policy iteration",
    "PMD-2": "With a constant step the gap falls as 1/k, whatever the number of states",
    "PMD-3": "With growing steps the gap falls by a constant factor",
    "PMD-4": "The printed table of gaps comes out digit for digit",
    "MPO-1": "MPO's dual is solved and its constraint met with equality",
    "REG-1": "With an entropy bonus the rate is linear, whatever the number of states",
    "PPO-1": "With one pass over the whole batch PPO's update is A2C's",
    "PPO-2": "Value clipping harms PPO; three other details cannot be told from nothing",
    "ABL-1": "Without the clip twenty passes kill four or five agents in ten, with it none",
    "ABL-2": "With the clip one ratio in twenty is outside, without it about three times as many",
    "ABL-3": "KL and band exits rise in the first steps on a batch, then stall",
    "ABL-4": "Entropy falls from 0.65 nats to 0.25, a little more slowly with the bonus",
    "ABL-5": "After twenty steps the ESS is 95 % or more with the clip, half without",
}

HEADER = "| What was measured | Number | Required | Outcome | Cell |"


class Claim(NamedTuple):
    """One line that `companion.show.claim` printed, and the cell that printed it."""

    statement: str
    what: str
    measured: str
    required: str
    outcome: str
    cell: str


def claims(notebook: Any) -> Iterator[Claim]:
    """The claims of an executed notebook, in order."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for line in output.get("text", "").splitlines():
                if is_claim(line):
                    yield Claim(*line.split(" | ")[:5], cell.id)


def is_claim(line: str) -> bool:
    """Whether a line of output is one that `companion.show.claim` printed."""
    return re.match(r"[A-Z]+-\d+ \| ", line) is not None


def markdown(notebooks: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The ledger as a page's MyST: a table per section, a link to every cell.

    Raises:
        SystemExit: a statement without a measurement, or a measurement without a statement.
    """
    found = {name: list(claims(notebook)) for name, notebook in notebooks.items()}
    every = [claim for of_section in found.values() for claim in of_section]
    measured = {claim.statement for claim in every}
    if odd := sorted(measured ^ STATEMENTS.keys()):
        raise SystemExit(f"measured but not in the ledger, or in it but not measured: {odd}")
    held = sum(claim.outcome == "holds" for claim in every)
    lines = [f"{len(measured)} statements, {len(every)} measurements, {held} hold.", ""]
    for name, of_section in found.items():
        if of_section:
            lines += [f"## {titles[name]}", "", f"[Open the section](../notebooks/{name}.ipynb)."]
            lines += ["", *_tables(of_section)]
    return "\n".join(lines)


def _tables(of_section: list[Claim]) -> list[str]:
    lines = []
    for statement in sorted({c.statement for c in of_section}, key=list(STATEMENTS).index):
        lines += [f"**{statement}** {STATEMENTS[statement]}.", ""]
        lines += [HEADER, "|---|---|---|---|---|"]
        for claim in of_section:
            if claim.statement == statement:
                cells = [_escaped(field) for field in claim[1:5]]
                position = claim.cell.rpartition("-")[2]
                lines.append(f"| {' | '.join(cells)} | [{position}](#{anchor(claim.cell)}) |")
        lines.append("")
    return lines


def anchor(cell: str) -> str:
    """The name by which pages refer to a notebook's cell."""
    return f"cell-{cell}"


def _escaped(text: str) -> str:
    return re.sub(r"([^\w\s,.;:%/()+-])", r"\\\1", text).replace("_", r"\_")
