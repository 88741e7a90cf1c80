"""Hooks of MkDocs: pages link as they do in the repository."""

import os
import posixpath
import re

LINK = re.compile(r"(?P<fence>^```.*?^```$)|(?P<code>`[^`\n]*`)|\]\((?P<to>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)", re.M | re.S)


def slug(text, separator):
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def on_config(config):
    """Makes anchors as GitHub does."""
    config["mdx_configs"]["toc"]["slugify"] = slug
    return config


def on_page_markdown(markdown, page, config, files):
    """Sends links to folders to their page, and links to other files to the repository."""
    pages = os.environ["STRANDLINE_PAGES"]
    home = config["repo_url"]

    def target(match):
        to, anchor = match["to"], match["anchor"] or ""
        if not to or "://" in to:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), to))
        if os.path.isfile(os.path.join(pages, path)):
            return match[0]
        if os.path.isfile(os.path.join(pages, path, "README.md")):
            return "](%s)" % (posixpath.join(to, "README.md") + anchor)
        if home:
            return "](%s/blob/HEAD/%s)" % (home.rstrip("/"), path)
        return "]"  # text in brackets

    return LINK.sub(target, markdown)
