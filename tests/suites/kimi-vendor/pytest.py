"""Stands in for Moonshot's vendor verifier (3dad65a): its arguments, its report, and pytest's exit codes.

It asks one tool of a single required integer, in both modes for each case. STAND_IN chooses what goes wrong.
"""

import argparse
import datetime
import json
import os
import sys
import time
import urllib.error
import urllib.request

MODE = os.environ.get("STAND_IN", "")
TOOL = "kvv_walle_case"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", choices=["tests/tool_call_json_schema/test_tool_call_json_schema.py"])
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("-p", choices=["no:cacheprovider"])
    parser.add_argument("--tb", choices=["short"])
    parser.add_argument("--think-mode", choices=["kimi", "opensource", "none"], required=True)
    parser.add_argument("--selection", choices=["all", "object"], required=True)
    parser.add_argument("--max-tokens", type=int, required=True)
    parser.add_argument("--max-cases", type=int)
    for name in ["--base-url", "--smoke-model", "--case-dir", "--tool-json-report"]:
        parser.add_argument(name, required=True)
    return parser.parse_args()


def ask(args, line, stream):
    """The arguments of the call, or why there are none."""
    schema = {"type": "object", "required": ["value"], "properties": {"value": {"type": "integer", "minimum": line}}}
    body = {
        "model": args.smoke_model,
        "messages": [{"role": "user", "content": "Call the tool."}],
        "tools": [{"type": "function", "function": {"name": TOOL, "parameters": schema}}],
        "tool_choice": "required",
        "max_tokens": args.max_tokens,
        "stream": stream,
    }
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['KIMI_API_KEY']}"}
    request = urllib.request.Request(f"{args.base_url}/chat/completions", json.dumps(body).encode(), head)
    try:
        text = urllib.request.urlopen(request, timeout=120).read().decode()
    except urllib.error.HTTPError as error:
        return None, f"tool schema rejected: Error code: {error.code} - a fault"
    except OSError:
        return None, "tool schema rejected: Connection error."
    if not stream:
        calls = json.loads(text)["choices"][0]["message"].get("tool_calls") or []
        return (calls[0]["function"]["arguments"], "") if calls else (None, "did not include tool_calls")
    pieces = ""
    for event in text.split("\n\n"):
        if event.startswith("data: {"):
            for choice in json.loads(event[6:])["choices"]:
                for call in choice["delta"].get("tool_calls", []):
                    pieces += call["function"].get("arguments", "")
    return pieces, ""


def check(args, line, mode):
    got, message = ask(args, line, mode == "stream")
    if not message:
        try:
            value = json.loads(got).get("value")
            if type(value) is not int or value < line:
                message = f"arguments validation failed: {got}"
        except ValueError:
            message = f"arguments are not valid JSON: {got}"
    if message:
        message = f"E   AssertionError: TestBasicTypes:{line} [{mode}] (x) {message}"
    return {"suite": "TestBasicTypes", "line": line, "mode": mode, "selection_reason": "x", "schema": {},
            "status": "failed" if message else "passed", "message": message}


def count(rows, field):
    values = [row[field] for row in rows]
    return {value: values.count(value) for value in sorted(set(values))}


def main():
    args = arguments()
    if MODE == "crash":
        print("ImportError while loading conftest", file=sys.stderr)
        sys.exit(4)
    cases = args.max_cases or 204
    modes = ["non-stream", "stream"]
    rows = [check(args, line, mode) for line in range(1, cases + 1) for mode in modes]
    if MODE == "missing":
        rows.pop()
    if MODE == "hang":
        time.sleep(60)
    report = {
        "generated_at": datetime.datetime.now().isoformat(), "model": args.smoke_model, "base_url": args.base_url,
        "tool_name": TOOL, "modes": modes, "results": rows,
        "summary": {
            "total": len(rows), "by_status": count(rows, "status"),
            "by_mode": {mode: count([row for row in rows if row["mode"] == mode], "status") for mode in modes},
        },
    }
    if MODE != "silent":
        with open(args.tool_json_report, "w") as file:
            file.write('{"summary": {"total"' if MODE == "malformed" else json.dumps(report, indent=2) + "\n")
    failed = report["summary"]["by_status"].get("failed", 0)
    print(f"{failed} failed, {len(rows) - failed} passed")
    sys.exit(1 if failed else 0)


main()
