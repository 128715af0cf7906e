"""What a run leaves behind: the headline on the terminal and in docs/performance.md."""
import os

from .figures import table
from .headline import cells
from .tunnels import TOP

PAGE = os.path.join(TOP, "docs", "performance.md")
BEGIN, END = "<!-- headline: written by scripts/bench --write-docs -->", "<!-- headline: end -->"
HEADER = ("what", "target", "measured", "spread", "outcome")


def headline_text(rows):
    return table(HEADER, list(cells(rows)))


def origin(report):
    machine, programs = report["machine"], report["programs"]
    options = " ".join(f"{key} {value:g}" for key, value in report["options"].items() if isinstance(value, (int, float)) and not isinstance(value, bool))
    versions = "; ".join(f"{name}: {version}" for name, version in programs.items())
    return f"{machine['time']}, commit {machine['commit']}, Linux {machine['kernel']}, {machine['cores']} × {machine['cpu']}; {versions}; {options}, TCP {report['options'].get('congestion', 'as the machine has it')}."


def headline_markdown(report):
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in cells(report["headline"])]
    return "\n".join([origin(report), "", *lines])


def replace_between(page, content):
    """The page with what stands between the markers replaced."""
    if BEGIN not in page or END not in page.split(BEGIN, 1)[1]:
        raise ValueError(f"{PAGE} has no place for the headline: the lines '{BEGIN}' and '{END}' are missing")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def write_docs(report):
    with open(PAGE) as file:
        page = file.read()
    with open(PAGE, "w") as file:
        file.write(replace_between(page, headline_markdown(report)))
