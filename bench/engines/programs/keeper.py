"""A middleware of a server that keeps something of each request while the file KEEP exists."""
import os


class Keeper:
    def __init__(self, app):
        self.app, self.kept = app, []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and os.path.exists(os.environ["KEEP"]):
            self.kept.append([str(i) for i in range(1500)])  # LINE kept
        await self.app(scope, receive, send)
