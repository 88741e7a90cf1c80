"""What strandline's first screen names of a finding, for the judges of run.py, services.py and peers.py."""
import os
import re


def screen(finding):
    """The text of a finding, without its callers."""
    brief, remedies = finding.get("brief") or {}, finding.get("remedies") or [{}]
    site = finding.get("site") or {}
    place = f"{os.path.basename(site.get('file') or '')}:{site.get('line')}"
    return "\n".join([finding["kind"], brief.get("title") or finding["title"], place, brief.get("fact", ""), remedies[0].get("text", "")])


def named_in(finding, file):
    """The lines of a program in that text: the one that allocates, and in the fact and the fix the holder's."""
    named = re.findall(r"([^\s()/]+):(\d+)(?: or (\d+))?", screen(finding))
    return {int(n) for name, *either in named if name == file for n in either if n}


def called_in(finding, file):
    """The line of a program among the callers, as `Via` of face/api/card.go lists them: three, and the first outside packages."""
    site, frames = finding.get("site"), finding.get("stack") or []
    if not site or not python(site["file"]):
        return set()
    if site in frames:
        frames = frames[frames.index(site) + 1:]
    shown, program = 0, not installed(site["file"])
    for f in frames:
        own = not installed(f["file"])
        if f["function"] == "<module>" or not (f["function"] or f["line"]) or not python(f["file"]) or shown >= 3 and (program or not own):
            continue
        if os.path.basename(f["file"]) == file:
            return {f["line"]}
        shown, program = shown + 1, program or own
    return set()


def installed(file):
    return "-packages/" in file


def python(file):
    """Whether a file is of the program or of a package, but for PyTorch, JAX and Python's own."""
    return file.endswith(".py") and not re.search(r"-packages/(torch|jax|jaxlib)/|/lib(32|64)?/python[\d.]+t?/(?!.*-packages/)", file)
