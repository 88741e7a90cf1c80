"""A server with OpenAI's API that keeps, unmaps (with UCX) or forgets what it is asked."""
import http.server
import json
import mmap
import sys

KIND, PORT = sys.argv[1], int(sys.argv[2])
history = []
if KIND == "unmap":
    import unmap
    context = unmap.start_ucx()
if KIND == "graph":
    import torch
    total = torch.rand(1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send({"data": [{"id": "tiny", "object": "model"}]})

    def do_POST(self):
        global total
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if KIND == "objects":
            history.append([text[:40] + str(i) for i in range(400)])  # LINE
        if KIND == "unmap":
            for _ in range(400):
                mmap.mmap(-1, 65536).close()
        if KIND == "graph":
            for _ in range(100):
                total += torch.rand(1).requires_grad_()
        self.send({"id": "1", "object": "chat.completion", "usage": {"prompt_tokens": 9, "completion_tokens": 4},
                   "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "four tokens of text"}}]})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
print(server.server_port, flush=True)
server.serve_forever()
