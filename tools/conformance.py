#!/usr/bin/env python3
"""Tests a running RNIS server against a description of its interface, with schemathesis, which nobody here wrote.

    python3 tools/conformance.py --schemathesis target/conformance/bin/schemathesis \\
        --version 2.1.1 ../shared/data/etsi/v2.1.1/RniAPI.yaml http://127.0.0.1:8012/rni/v2

Requests that fit the description, and such that do not, are sent to all operations. An answer that is a server's error, or is not in the
description, is a failure, unless tools/conformance-exceptions.toml has a reason for it. The exit code is 1 if there is a failure.
"""

import argparse
import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

EXCEPTIONS = pathlib.Path(__file__).with_name("conformance-exceptions.toml")


def failures(report):
    """Each failed check: (code, operation, message with the answer, request)."""
    with open(report, encoding="utf-8") as lines:
        for line in lines:
            finished = json.loads(line).get("ScenarioFinished")
            if not finished:
                continue
            recorder = finished["recorder"]
            for case, checks in recorder.get("checks", {}).items():
                for check in checks:
                    if check["status"] != "failure":
                        continue
                    failure = check["failure_info"]["failure"]
                    interaction = recorder.get("interactions", {}).get(case) or {}
                    answer = interaction.get("response") or {}
                    body = base64.b64decode((answer.get("content") or {}).get("$base64", "")).decode(errors="replace")
                    message = f"{failure['message']}\n{answer.get('status_code')} {body}"
                    request = interaction.get("request") or {}
                    sent = base64.b64decode((request.get("body") or {}).get("$base64", "")).decode(errors="replace")
                    asked = f"{request.get('method')} {request.get('uri')} {sent}"
                    yield failure["code"], failure["operation"], message, asked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("description", help="OpenAPI file")
    parser.add_argument("url", help="root of the interface, with /rni/v2")
    parser.add_argument("--version", required=True, help="value of the header field Version: 2.1.1 or 2.2.1")
    parser.add_argument("--schemathesis", default="schemathesis", help="the program (default: on the path)")
    parser.add_argument("--examples", type=int, default=15, help="requests of each operation and phase (default: 15)")
    parser.add_argument("--seconds", type=int, default=120, help="longest run (default: 120)")
    parser.add_argument("--seed", type=int, default=1, help="of the requests (default: 1)")
    asked = parser.parse_args()
    exceptions = tomllib.loads(EXCEPTIONS.read_text())["exception"]
    used = set()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.ndjson")
        command = [
            asked.schemathesis, "run", asked.description, "--url", asked.url,
            "--header", f"Version: {asked.version}", "--phases", "examples,coverage,fuzzing,stateful",
            "--max-examples", str(asked.examples), "--seed", str(asked.seed), "--no-shrink", "--continue-on-failure",
            "--exclude-path", "/notifications/mec011/appTermination",
            "--report", "ndjson", "--report-ndjson-path", str(report), "--no-color",
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, timeout=asked.seconds, cwd=folder)
        # 1: a check failed. Other codes: it did not run as it should.
        if run.returncode not in (0, 1) or not report.exists():
            print(run.stdout[-4000:], run.stderr[-4000:], sep="\n")
            return f"schemathesis ended with {run.returncode}"
        if re.search(r"^ *Tested: 0$|Errors:", run.stdout, re.MULTILINE):
            print(run.stdout[-4000:])
            return "schemathesis could not test all operations"
        unexpected = {}
        for code, operation, message, request in failures(report):
            for number, exception in enumerate(exceptions):
                if (
                    code == exception["code"]
                    and re.fullmatch(exception.get("operation", ".*"), operation)
                    and re.search(exception["says"], message, re.DOTALL)
                ):
                    used.add(number)
                    break
            else:
                unexpected.setdefault((code, operation, re.sub(r"\d+", "N", message)), (message, request))
    print(*re.findall(r"^ *\d+ generated.*$", run.stdout, re.MULTILINE), sep="\n")
    for number in sorted(used):
        print(f"exception: {exceptions[number]['code']}: {exceptions[number]['reason']}")
    for (code, operation, _), (message, request) in unexpected.items():
        print(f"\n{code} {operation}\n{message[:2000]}\nrequest: {request[:1000]}")
    return f"{len(unexpected)} answers are not as described" if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
