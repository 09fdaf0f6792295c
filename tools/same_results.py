#!/usr/bin/env python3
"""Plays 60 scenarios with two builds of ranpace and compares every file they write, byte by byte.

    tools/same_results.py OLD NEW [--folder DIR]

OLD and NEW are ranpace binaries. For a change that is to change no result. Digests and the version, which name the build,
are left out of the comparison. Exit status: 0 if all files are the same. For the reproductions, `ranpace reproduce NAME --record`
writes the recorded verdicts and figures anew, and `git diff reproductions` shows what has changed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DROPTAIL = 'queue = { kind = "droptail", limit = "150KB" }'


def head(seconds, seed):
    return f'duration = "{seconds}s"\nseed = {seed}\n'


def link(more=DROPTAIL, rate='rate = "20Mbit/s"', extra=""):
    return (
        f'[[link]]\nname = "radio"\nfrom = "server"\nto = "phone"\n{rate}\ndelay = "15ms"\n{more}\nduplex = true\n{extra}\n'
    )


def flow(cc="cubic", more="", start="server", end="phone"):
    return f'[[flow]]\nfrom = "{start}"\nto = "{end}"\ncc = "{cc}"\n{more}\n'


def wire(name, start, end, delay):
    return (
        f'[[link]]\nname = "{name}"\nfrom = "{start}"\nto = "{end}"\nrate = "1Gbit/s"\ndelay = "{delay}"\nduplex = true\n'
    )


def cell(preset):
    return f'[[cell]]\nname = "cell"\nhost = "mast"\npreset = "{preset}"\n'


CORE = wire("core", "server", "mast", "10ms")
EDGE = wire("wan", "server", "edge", "10ms") + wire("back", "edge", "mast", "1ms") + cell("lte")
USERS = "".join(f'[[user]]\nname = "u{i}"\nposition = [{100 + 120 * i}, 20]\n' for i in range(4))
UDP = '[[flow]]\nfrom = "server"\nto = "{}"\ntransport = "udp"\npacket = "1200B"\nworkload = {{ kind = "cbr", rate = "1Mbit/s" }}\n'


def downloads(ccs, more=""):
    return "".join(flow(ccs[i % len(ccs)], more, end=f"u{i}") for i in range(4))


def scenarios():
    """The 60 scenarios, by name."""
    all = {}
    algorithms = (
        "newreno cubic scalable westwood westwoodplus veno vegas yeah bbr1 bbr-zhong vivace sprout verus quic-cqic dcic cqic-s "
        "cdbe cdbev2 mdcc cubic+c2tcp cubic+meld-me"
    )
    for seed, cc in enumerate(algorithms.split(), 1):
        all[f"cc-{cc}"] = head(8, seed) + link() + flow(cc) + flow("cubic", 'start = "2s"')
    for queue in ["codel", "fq_codel", "pie"]:
        all[queue] = head(8, 3) + link(f'queue = {{ kind = "{queue}" }}') + flow() + flow("bbr1") + flow("vegas")
    for trace in ["lte", "umts", "nr"]:
        rate = f'trace = "builtin:{trace}"'
        flows = flow() + flow("cubic+c2tcp:target=50ms") + flow("verus")
        all[f"trace-{trace}"] = head(10, 5) + link(rate=rate, extra='back = { rate = "20Mbit/s" }') + flows
    all["loss"] = head(8, 9) + link(f'{DROPTAIL}\nloss = 0.01\njitter = "3ms"') + flow() + flow("bbr1")
    changes = '[[change]]\nat = "3s"\nlink = "radio"\nrate = "5Mbit/s"\n[[change]]\nat = "5s"\nlink = "radio"\ndelay = "30ms"\n'
    all["change"] = head(8, 9) + link() + flow() + flow("cubic+c2tcp") + changes
    all["quic"] = head(6, 2) + link() + flow("cubic", 'transport = "quic"') + flow("bbr1")
    all["datagrams"] = head(6, 2) + link() + flow("sprout") + flow("verus", 'start = "1s"')
    all["udp"] = head(6, 2) + link() + UDP.format("phone") + flow()
    workloads = [
        '{ kind = "fixed", size = "2MB" }',
        '{ kind = "repeat", size = "300KB", pause = "500ms" }',
        '{ kind = "paced", rate = "1Mbit/s", interval = "20ms" }',
        '{ kind = "web", page = "500KB", interval = "2s" }',
    ]
    for number, workload in enumerate(workloads, 1):
        flows = flow("cubic", f"workload = {workload}") + flow("newreno", 'stop = "5s"')
        all[f"workload-{number}"] = head(8, 4) + 'warmup = "1s"\n' + link() + flows
    for preset in ["lte", "nr"]:
        mixes = [["cubic", "bbr1"], ["cdbe", "cdbev2"], ["dcic", "cqic-s"], ["vegas", "cubic+meld-de"]]
        for number, mix in enumerate(mixes, 1):
            uploads = flow("cubic", start="u0", end="server") + flow("sigma", start="u1", end="server")
            all[f"cell-{preset}-{number}"] = head(4, number) + CORE + cell(preset) + USERS + downloads(mix) + uploads
    quic = downloads(["cubic+meld-me"], 'transport = "quic"')
    all["cell-quic"] = head(4, 7) + CORE + cell("lte") + USERS + quic
    feeds = '[rnis]\nperiod = "8ms"\ndelay = "5ms"\nerror = 0.2\n[modem]\ndelay = "1ms"\n'
    upload = flow("sigma", start="u2", end="server")
    all["feeds"] = head(4, 7) + CORE + cell("lte") + USERS + downloads(["cubic+meld-me"]) + upload + feeds
    for proxy in ['kind = "split"', 'kind = "rapid"\nprofile = "thesis"\naccount_udp = true', 'kind = "rapid"\naccount_udp = true']:
        flows = downloads(["cubic", "bbr1"], 'workload = { kind = "repeat", size = "1MB", pause = "200ms" }')
        table = f'[[proxy]]\nname = "proxy"\nhost = "edge"\n{proxy}\n'
        all[f"proxy-{len(all)}"] = head(5, 1) + EDGE + USERS + flows + table + UDP.format("u0")
    for transport in ["", 'transport = "quic"']:
        for lie in ["", 'lie = "gaps"', "loss = 0.1"]:
            table = f'[[pep]]\nname = "pep"\nhost = "edge"\n{lie}\n'
            all[f"pep-{len(all)}"] = head(5, 3) + EDGE + USERS + downloads(["mdcc"], transport) + table
    many = "".join(flow(["cubic", "newreno", "bbr1"][i % 3]) for i in range(100))
    all["many"] = head(3, 3) + link(rate='rate = "1Gbit/s"') + many
    disc = '[[user]]\nname = "u"\ndrop = { radius = "400m" }\ncount = 20\n'
    all["disc"] = head(2, 5) + CORE + cell("lte") + disc + flow("cubic", end="u.1") + flow("cubic", start="u.2", end="server")
    walk = '[[user]]\nname = "u"\nwalk = { radius = "400m", speed = ["1m/s", "5m/s"] }\ncount = 10\n'
    all["walk"] = head(3, 6) + CORE + cell("nr") + walk + flow("bbr1", end="u.1") + flow("cdbe", end="u.2")
    middlebox = '[[middlebox]]\nhost = "edge"\nkind = "drop_every"\npackets = 300\n'
    all["middlebox"] = head(4, 8) + EDGE + USERS + downloads(["cubic", "newreno"]) + middlebox
    all["upload"] = head(6, 4) + link() + flow("cubic", start="phone", end="server") + flow("bbr1")
    return all


DIGEST = re.compile(rb"[0-9a-f]{64}|[0-9a-f]{32}|\d+\.\d+\.\d+\+[0-9a-f]{8}")


def play(binary, folder, texts):
    """Plays all scenarios; gives what each file holds, by its place without digests."""
    found = {}
    for number, (name, text) in enumerate(texts.items(), 1):
        print(f"\r{os.path.basename(binary)}: {number} of {len(texts)}", end="", file=sys.stderr)
        here = folder / name
        here.mkdir(parents=True)
        (here / "scenario.toml").write_text(text)
        command = [os.path.abspath(binary), "run", "scenario.toml", "--out", "out"]
        run = subprocess.run(command, cwd=here, capture_output=True)
        if run.returncode != 0:
            sys.exit(f"\n{name}: {binary} ended with status {run.returncode}: {run.stderr.decode()}")
        found[f"{name}/stdout"] = DIGEST.sub(b"", run.stdout)
        for path in sorted((here / "out").rglob("*")):
            if path.is_file():
                place = DIGEST.sub(b"", str(path.relative_to(folder)).encode()).decode()
                found[place] = DIGEST.sub(b"", path.read_bytes())
    print(file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--folder", help="keeps what was played in this folder, which must not exist")
    given = parser.parse_args()
    texts = scenarios()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(given.folder or temporary)
        old, new = (play(binary, folder / which, texts) for which, binary in [("old", given.old), ("new", given.new)])
    different = [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]
    for place in different:
        only = "" if place in old and place in new else " (written by one alone)"
        print(f"differs: {place}{only}")
    print(f"{len(texts)} scenarios, {len(old)} files, {len(different)} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
