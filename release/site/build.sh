#!/usr/bin/env bash
# Builds the site: the guides with search, the page that reads dropped files, and the plan's
# form. A link that leads nowhere is an error.
#
#	release/site/build.sh OUT [ADDRESS]
#
# ADDRESS is that of the repository, for links to its sources. It needs Go, git, and python3
# with venv; MkDocs is downloaded unless it is installed.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^#\t/usage: /p' "$0" >&2 && exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdocs=$(command -v mkdocs) || {
	python3 -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check mkdocs==1.6.1 mkdocs-material==9.8.2
	mkdocs=$work/venv/bin/mkdocs
}
cd "$here/../.."
git ls-files -z README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md 'docs/*.md' 'docs/*.svg' 'docs/*.png' 'examples/*.md' 'deploy/*.md' 'release/README.md' |
	xargs -0 cp --parents -t "$work" --
mkdir -p "$work/pages"
for name in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs examples deploy release; do mv "$work/$name" "$work/pages/"; done
CGO_ENABLED=0 go run ./cmd/site "$work/pages/read"
chmod -R u+rwX,go+rX "$work/pages"
export STRANDLINE_PAGES="$work/pages" STRANDLINE_SITE="$out" STRANDLINE_HOME="${2:-}" PYTHONPATH="$here"
[ -n "$STRANDLINE_HOME" ] || unset STRANDLINE_HOME
"$mkdocs" build --strict --quiet --config-file "$here/mkdocs.yml"
