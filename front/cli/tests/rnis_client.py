"""A client of ETSI MEC 012 in another language: subscribes to handovers and measurement reports, is notified, and lets both expire.

Usage: rnis_client.py URL SECONDS. Prints a line for each kind of notification when it comes first, and ends when both subscriptions have
expired; with status 1 if something is missing.
"""

import http.server
import json
import sys
import threading
import time
import urllib.error
import urllib.request

root, lifetime = sys.argv[1], float(sys.argv[2])
seen = {}
# Notifications come in threads of their own, and `print` writes a line in pieces.
printing = threading.Lock()


def tell(*words):
    with printing:
        print(*words, flush=True)


class Callback(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = body["notificationType"]
        if kind not in seen:
            tell(kind, json.dumps(body))
        seen[kind] = body
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


callbacks = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Callback)
threading.Thread(target=callbacks.serve_forever, daemon=True).start()
phone = {"type": 1, "value": "10.77.0.2"}
links = []
for kind, member in [
    ("CellChangeSubscription", "filterCriteriaAssocHo"),
    ("MeasRepUeSubscription", "filterCriteriaAssocTri"),
]:
    made = ask("POST", root + "/rni/v2/subscriptions", {
        "subscriptionType": kind,
        "callbackReference": f"http://127.0.0.1:{callbacks.server_address[1]}/",
        "expiryDeadline": {"seconds": int(time.time() + lifetime), "nanoSeconds": 0},
        member: {"associateId": [phone]},
    })
    links.append(made["_links"]["self"]["href"])
tell("subscribed", *links)

end = time.time() + lifetime + 10
while links and time.time() < end:
    try:
        ask("GET", links[0])
        time.sleep(0.1)
    except urllib.error.HTTPError as error:
        assert error.code == 404, error
        links.pop(0)
wanted = {"CellChangeNotification", "MeasRepUeNotification", "ExpiryNotification"}
tell("missing", *sorted(wanted - seen.keys()))
sys.exit(bool(links) or not wanted <= seen.keys())
