"""A server with the API of OpenAI that holds some memory and answers at once: answering.py MIB. It prints its port."""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HELD = bytearray(b"x" * (int(sys.argv[1]) << 20))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, doc):
        body = json.dumps(doc).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "none", "object": "model"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = " ".join(str(i * i) for i in range(2000))[:20]  # some work
        self.answer({"id": "1", "object": "chat.completion", "model": "none", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                     "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]})

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
