#!/usr/bin/env bash
# Checks the repository: formatting, vet, the build, and the tests that need no
# process to watch, with the seeds of the fuzz tests and those of the page. It
# takes a few minutes. With --all also staticcheck, vet for every system, the tests
# that trace real processes, the race detector, the page in a browser, and whether
# generated files match their sources.
#
# It needs Go alone; what this machine cannot run is named at the end.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
case "${1:-}" in
"") all= ;;
--all) all=1 ;;
*)
	echo "usage: ./test.sh [--all]" >&2
	exit 2
	;;
esac
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
export CGO_ENABLED=0

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
failed=()
skipped=()
flaky=()

# step NAME COMMAND... runs one check, prints how long it took, and goes on if it fails.
step() {
	local name=$1 began=$SECONDS
	shift
	echo "== $name"
	"$@" || failed+=("$name")
	echo "   $((SECONDS - began)) s"
}

# skip NAME REASON notes a check that this machine cannot run.
skip() {
	echo "== $1: skipped"
	skipped+=("$1: $2")
}

formatted() {
	local files
	files=$(find . -mindepth 1 \( -name '.*' -o -name node_modules -o -name testdata \) -prune -o -name '*.go' -print0 |
		xargs -0 gofmt -l) || return 1
	[ -z "$files" ] || {
		echo "run gofmt -w on:"
		echo "$files"
		return 1
	}
}

# have CHECK PACKAGE... reports whether a check passes; where it does not, root
# installs Debian's packages first.
have() {
	local check=$1
	shift
	"$check" && return
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
	echo "== install $1"
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1
	"$check"
}

# compiles reports whether programs in C can be built, which the race detector
# needs.
compiles() {
	echo '#include <stdlib.h>' | gcc -fsyntax-only -x c - 2>/dev/null
}

# builds_bpf reports whether there is a compiler of BPF programs.
builds_bpf() { command -v clang && command -v llvm-strip; } >/dev/null

# find_jemalloc finds the malloc whose memory a test distinguishes from glibc's.
find_jemalloc() {
	compgen -G '/usr/lib/*/libjemalloc.so.2' >/dev/null
}

# with_line PATTERN lists the packages that have a file with a line that matches.
with_line() {
	local package folder
	go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package folder; do
		grep -qE "$1" "$folder"/*.go && echo "$package"
	done
}

# What a test needs is said in it, by a mark of internal/test/live. Packages with tests
# that trace are tested one after another with nothing beside them: what a busy machine
# keeps from happening cannot be seen. Within a package many are traced at once, which
# all mostly wait.
tracing() { with_line 'live\.Traces\(t'; }

# concurrent lists the packages that start goroutines, by themselves or in their
# tests, or say that others do: the race detector has nothing to see in the rest.
concurrent() { with_line '^[^/]*\<(go (func\(|[A-Za-z_.]+\()|Parallel\(\)|AfterFunc\()|^[^/]*\.Go\(|live\.Concurrent\(t'; }

# in_turn PACKAGES COMMAND... runs a command that tests packages, those that trace last.
in_turn() {
	local packages=$1 last rc=0
	shift
	last=$(comm -12 <(sort <<<"$packages") <(tracing | sort))
	# shellcheck disable=SC2046 # a list
	"$@" $(comm -23 <(sort <<<"$packages") <(echo "$last")) || rc=1
	# shellcheck disable=SC2086 # a list
	"$@" -p 1 -parallel 8 $last || rc=1
	return $rc
}

# races runs what starts goroutines under the race detector. The tests that it leaves out
# are not listed among what this machine cannot run.
races() {
	local skipped=()
	in_turn "$(concurrent)" go_tests -race -short -timeout 15m
}

# known_available lists what this machine has for certain, so that a test which reports
# that it is missing fails.
known_available() {
	local name out=("$(uname -s)") # "Linux" for one
	for name in gcc g++ gdb python3; do
		command -v "$name" >/dev/null && out+=("$name")
	done
	local caps
	caps=$((16#$(sed -n 's/^CapEff:\s*//p' /proc/self/status 2>/dev/null || echo 0)))
	# CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_BPF
	if ((caps >> 19 & caps >> 21 & caps >> 39 & 1)) && [ -r /sys/kernel/btf/vmlinux ]; then
		out+=(BPF ptrace "reading the memory of another process")
	fi
	(IFS=,; echo "${out[*]}")
}

# go_tests runs Go's tests. It prints a line for each package and the end of what
# one that fails printed, and notes the tests that were skipped, by their reason.
go_tests() {
	local reasons failures rc line package names
	reasons=$(mktemp) && failures=$(mktemp) || return
	go test -vet=off -v "$@" 2>&1 | awk -v reasons="$reasons" -v failures="$failures" '
		!/^=== |^ *--- PASS/ { printed[n++ % 400] = $0 }
		/^ *[a-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^[^:]*:[0-9]+: /, "", reason) }
		/^ *--- SKIP: / { names[reason] = names[reason] " " $3 }
		/^ *[a-z0-9_]+\.go:[0-9]+: waits for other processes: / { waits[$NF] = 1 }
		/^--- FAIL: / { failing[$3] = 1 }
		/^panic: |^WARNING: DATA RACE/ { failing["-"] = 1 }
		/^(ok  |FAIL|\?   )\t/ {
			if (/^FAIL/) {
				tell()
				print $2, again() > failures
			} else if (/^ok/) {
				print
			}
			n = 0
			delete failing
			delete waits
		}
		# again returns the tests that failed, or nothing if one does not wait for processes.
		function again(   name, names) {
			for (name in failing) {
				if (!(name in waits)) return ""
				names = names "|" name
			}
			return substr(names, 2)
		}
		function tell(   i) { for (i = n > 400 ? n - 400 : 0; i < n; i++) print printed[i % 400] }
		END {
			tell()
			for (r in names) print substr(names[r], 2) ": " r > reasons
		}'
	rc=${PIPESTATUS[0]}
	while read -r line; do
		[[ $'\n'$(printf '%s\n' "${skipped[@]}")$'\n' == *$'\n'"$line"$'\n'* ]] || skipped+=("$line")
	done < <(sort "$reasons")
	if [ "$rc" != 0 ] && [ -s "$failures" ]; then
		rc=0
		while read -r package names; do
			once_more "$package" "$names" "$@" || rc=1
		done <"$failures"
	fi
	rm -f "$reasons" "$failures"
	return "$rc"
}

# once_more PACKAGE NAMES FLAG-OR-PACKAGE... runs tests that failed a second time, if
# all wait for processes: docs/decisions/0028. Neither a race nor a panic is tried again.
once_more() {
	local package=$1 names=$2 arg flags=()
	shift 2
	[ -n "$names" ] || return
	for arg; do
		[[ $arg == strandline* || $arg == ./* ]] || flags+=("$arg")
	done
	echo "== $package: $names failed, once more"
	go test -vet=off -count=1 "${flags[@]}" -run "^($names)\$" "$package" </dev/null || return
	flaky+=("$package: ${names//|/, }")
}

# new_node reports whether the page can be built and tested.
new_node() {
	command -v npm >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge 20 ]
}

# find_chromium reports whether the page can be tested in a browser.
find_chromium() {
	[ -n "${CHROMIUM:-}" ] || command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

# built NAME BUILD reports whether a committed object is what its sources make.
built() {
	local said
	said=$("$2" --check 2>&1)
	case $? in
	0) echo "== $1 is built from its sources" ;;
	77) skip "$1 is built from its sources" "$said" ;;
	*)
		echo "$said"
		failed+=("$1 is built from its sources")
		;;
	esac
}

# in_browser runs the page's scenarios against the program as it is now.
in_browser() {
	local dir rc
	dir=$(mktemp -d) || return
	go build -o "$dir/strandline" ./cmd/strandline && go run ./cmd/site "$dir/site" &&
		STRANDLINE="$dir/strandline" STRANDLINE_SITE="$dir/site" npm --prefix ui run --silent e2e
	rc=$?
	rm -rf "$dir"
	return $rc
}

# vet_everywhere vets the packages for every system that a user may build them on,
# once where two of them build the same files.
vet_everywhere() {
	local target files vetted=() rc=0
	for target in linux/arm64 darwin/arm64 darwin/amd64 windows/arm64 windows/amd64; do
		files=$(GOOS=${target%/*} GOARCH=${target#*/} go list -f '{{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./... | sha256sum)
		[[ " ${vetted[*]} " != *" $files "* ]] || continue
		vetted+=("$files")
		GOOS=${target%/*} GOARCH=${target#*/} go vet ./... || {
			echo "that is for $target"
			rc=1
		}
	done
	GOOS=js GOARCH=wasm go vet ./face/web/worker || rc=1
	return $rc
}

# check_page checks the page and, with --all, the page in a browser.
check_page() {
	if ! have new_node nodejs npm; then
		skip "the page" "it needs Node 20 or newer, with npm"
		return
	fi
	if ! npm --prefix ui ci --silent --no-audit --no-fund; then
		skip "the page" "npm cannot get the packages that ui/package-lock.json names"
		return
	fi
	step "page types" npm --prefix ui run --silent check
	step "page tests" npm --prefix ui test --silent
	step "page is built from its sources" npm --prefix ui run --silent build -- --check
	[ -n "$all" ] || return
	if have find_chromium chromium; then
		step "page in Chromium" in_browser
	else
		skip "page in Chromium" "there is no Chromium"
	fi
}

# check_release checks the module that builds releases; release/check.sh builds one.
check_release() { (cd release && go vet ./... && go test -vet=off ./...); }

typechecks() { command -v mypy; } >/dev/null
lints() { command -v pyflakes3; } >/dev/null

# check_module checks the Python module of the recorder.
check_module() {
	if have typechecks mypy; then
		step "types of the Python module" mypy --strict --no-incremental --cache-dir=/dev/null record/python/strandline
	else
		skip "types of the Python module" "there is no mypy"
	fi
	if have lints pyflakes3; then
		step "lint of the Python module" pyflakes3 record/python
	else
		skip "lint of the Python module" "there is no pyflakes3"
	fi
}

command -v go >/dev/null || {
	echo "go is missing" >&2
	exit 1
}

step gofmt formatted
step vet go vet ./...
step build go build ./...
if [ -n "$all" ]; then
	step "vet for other systems" vet_everywhere
	if go run "$staticcheck" -version >/dev/null 2>&1; then
		step staticcheck go run "$staticcheck" ./...
	else
		skip staticcheck "it is not in the module cache and cannot be downloaded"
	fi
	if go run "$actionlint" -version >/dev/null 2>&1; then
		step "workflows of GitHub" go run "$actionlint" -shellcheck= .github/workflows/*.yml
	else
		skip "workflows of GitHub" "actionlint is not in the module cache and cannot be downloaded"
	fi
	have builds_bpf clang llvm # Debian 12's are those that built the object
	built "BPF object" host/calls/bpf/build.sh
	built "reader of NVML" host/gpu/nvml/build.sh
	built "library of pausable memory" pausable/build.sh
	built "library that samples malloc" host/calls/malloc/build.sh
	check_module
	if (cd release && go mod download) >/dev/null 2>&1; then
		step "what builds a release" check_release
	else
		skip "what builds a release" "its modules cannot be downloaded"
	fi
	have compiles gcc libc6-dev || skip "tests of programs in C" "there is no gcc with the C library's headers"
	have find_jemalloc libjemalloc2 # a test names it if it is missing
	STRANDLINE_REQUIRE=$(known_available)
	export STRANDLINE_REQUIRE
	step test in_turn "$(go list ./...)" go_tests -timeout 15m
	if compiles; then
		CGO_ENABLED=1 step "race detector" races
	else
		skip "race detector" "it needs gcc and the C library's headers"
	fi
else
	step test go_tests -short -timeout 5m ./...
	skip "what ./test.sh --all adds" "tests that trace processes, the race detector, staticcheck, vet for other systems, the page in a browser"
fi
check_page
for s in "${skipped[@]}"; do
	echo "skipped: $s"
done
for s in "${flaky[@]}"; do
	echo "flaky: $s passed only the second time"
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
if [ ${#skipped[@]} -gt 0 ]; then
	echo "ok: all checks that this machine can run passed"
else
	echo "ok: all checks passed"
fi
