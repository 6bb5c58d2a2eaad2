"""``tickets audit``: would a verifier catch a fix that cheats?"""

from __future__ import annotations

from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    Measuring,
    OptionalIds,
    OutputFormat,
    Root,
    Seed,
    completes,
    find_each,
    flag,
    option,
)
from finding_tickets.cli.output import Format, say, say_errors, style, write, write_json
from finding_tickets.cli.verify import measurable
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.gate.audit import Audited, Fate
from finding_tickets.gate.audit import audit as run
from finding_tickets.measure.cheats import CHEATS
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.load import load
from finding_tickets.report.gate import audit_item, audit_lines
from finding_tickets.verify.plan import verifier_of
from finding_tickets.verify.verify import draw_seed

complete_cheat = completes(lambda _: (each.id for each in CHEATS))


def audit(
    ids: OptionalIds = None,
    everything: Annotated[bool, flag("--all", "Every document that has a verifier.")] = False,
    cheat: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Try this cheat alone (repeatable).",
            autocompletion=complete_cheat,
        ),
    ] = None,
    root: Root = HERE,
    how: Measuring = MEASURING,
    seed: Seed = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Try fixes that cheat: does the verifier catch them?"""
    if bool(ids) is everything:
        raise UsageError("name the tickets to audit, or say --all", hint="one of the two")
    # A misspelt name would try nothing, and so find nothing wrong.
    known = [each.id for each in CHEATS]
    for name in cheat or ():
        if name not in known:
            raise UsageError(f"--cheat {name}: no such cheat", hint=f"one of {', '.join(known)}")
    cheats = tuple(each for each in CHEATS if not cheat or each.id in cheat)
    with Isolation(sandbox=how.sandbox) as isolation:
        register = load(root)
        chosen, code = find_each(register.find, ids or ())
        if everything:
            chosen = [one for one in register.documents if verifier_of(one, register.root)]
            say(f"{len(chosen)} of {len(register.documents)} documents with a verifier")
        sound, reading = measurable(register, chosen)
        seed = draw_seed() if seed is None else seed
        settings = how.settings(register, record=False, seed=seed)
        done: list[Audited] = []
        codes = [code, reading]
        if sound:
            names = ", ".join(each.id.value for each in sound)
            say(f"trying {len(cheats)} cheats on {names} with seed {seed}")
        for number, audited in enumerate(run(sound, isolation, settings, cheats), 1):
            fates = {one.fate for one in audited.tried}
            codes += [say_errors([audited.error])]
            codes += [ExitCode.GATE_FAILED] if Fate.MISSED in fates else []
            # A cheat that was not tried may be one that nothing catches.
            codes += [ExitCode.INCONCLUSIVE] if audited.reason or Fate.UNTRIED in fates else []
            say(f"[{number}/{len(sound)}] {audited.document.id.value}")
            done.append(audited)
    # They come as they end; people look for them in the order in which they named them.
    done.sort(key=lambda audited: sound.index(audited.document))
    shown = [audited for audited in done if not audited.error]
    if output_format is Format.JSON:
        write_json("audit", map(audit_item, shown), seed=seed)
    elif shown:
        write("\n\n".join("\n".join(audit_lines(audited, style)) for audited in shown))
    return ExitCode.worst(*codes)
