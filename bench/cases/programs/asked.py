"""A server with OpenAI's API whose answers are made up: serve(PORT, ASKED) calls asked(TEXT) for each request, and prints its port."""
import http.server
import json


def serve(port, asked):
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
            asked(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send({"id": "1", "object": "chat.completion", "usage": {"prompt_tokens": 9, "completion_tokens": 4},
                       "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "four tokens of text"}}]})

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(server.server_port, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
