#!/usr/bin/env bash
# Gives the module another path, so that `go get` can fetch it from where the repository lives.
# Nothing else names the path.
#
#	release/module.sh github.com/OWNER/strandline
set -euo pipefail
[ $# = 1 ] || { sed -n 's/^#\t/usage: /p' "$0" >&2 && exit 2; }
cd "$(dirname "$0")/.."
old=$(go list -m -f '{{.Path}}')
packages=$(go list ./... | sed -n "s|^$old/||p" | paste -sd'|')
go mod edit -module "$1"
(cd release && go mod edit -module "$1/release")
git ls-files -z '*.go' | xargs -0 sed -E -i "s#(^|[\"[ ])$old/($packages)([]\".])#\1$1/\2\3#g; s#^const module = \"$old\"#const module = \"$1\"#"
gofmt -w $(git diff --name-only --diff-filter=d -- '*.go') # imports are in the order of their paths
