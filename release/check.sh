#!/usr/bin/env bash
# Builds a release of the commit that is checked out twice and compares the files. Then
# installs, uses and removes each package in a clean root, and compares what is left.
#
#	release/check.sh [--all] [DIR]
#
# --all builds for all systems; else for this machine's. DIR is a folder with a release, to
# check that one instead of building.
#
# It needs root, Go, git, python3 with venv, and debootstrap or a folder DEBIAN_ROOT with what it
# makes; rpm and skopeo where they are installed. LIBC is the folder for -libc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
arch=$(go env GOARCH)
targets=(-targets "linux/$arch")
[ "${1:-}" != --all ] || { targets=() && shift; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
examples=$here/../examples/image-leak
failed=0

say() { printf '== %s\n' "$*"; }
fail() {
	printf 'failed: %s\n' "$*" >&2
	failed=1
}

# build FOLDER CACHE REPOSITORY builds from a clone in a folder of its own, with a tag.
build() {
	git clone --quiet "$3" "$work/$1"
	git -C "$work/$1" describe --tags --exact-match >/dev/null 2>&1 || git -C "$work/$1" tag v0.1.0-rc.1
	(cd "$work/$1/release" && GOCACHE=$2 go run . -o "$work/dist-$1" -home https://example.com/strandline ${LIBC:+-libc "$LIBC"} "${targets[@]}")
}

# finds COMMAND... diagnoses an example with a program just installed, and tells how long ago
# the installation began.
began=0
start() { began=$(date +%s%N); }
finds() {
	local out rc=0 took
	out=$("$@" 2>"$work/log") || rc=$?
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$rc" = 1 ] && grep -q '^LEAK' <<<"$out" || fail "$*: exit status $rc: $out"
	echo "   from the package to the first finding: $took ms"
	((took < 10000)) || fail "it took $took ms"
}

# listing FOLDER lists what is in a root, without the package managers' own books.
listing() {
	find "$1" -mindepth 1 -printf '%P %y %m\n' | grep -vE '^(var/lib/(dpkg|rpm|dnf)|usr/lib/sysimage|root/.rpmdb|etc/dnf|var/log|var/cache)(/| )' | sort
}

# unchanged NAME FOLDER compares a root with its listing before the installation.
unchanged() {
	listing "$2" | diff "$work/before" - || fail "$1 leaves files behind"
}

dist=${1:-}
if [ -z "$dist" ]; then
	say "build"
	build one "$(go env GOCACHE)" "$here/.."
	say "build again, elsewhere and from nothing"
	build two "$work/cache" "$work/one" # the same commit, whatever was committed meanwhile
	diff "$work/dist-one/SHA256SUMS" "$work/dist-two/SHA256SUMS" || fail "two builds differ"
	dist=$work/dist-one
fi
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)

say "archive"
mkdir "$work/archive"
start
tar -xzf "$dist"/strandline_*_linux_"$arch".tar.gz -C "$work/archive" --strip-components 1
finds "$work/archive/strandline" diagnose "$examples"
"$work/archive/strandline" version
"$work/archive/strandline" version --licenses >"$work/licenses"
python3 - "$work/licenses" "$dist"/*.spdx.json <<'PYTHON' || fail "the notices and the list of parts differ"
import json, re, sys
rule = "=" * 80
notices = re.findall("^%s\n(.+)\n%s$" % (rule, rule), open(sys.argv[1]).read(), re.M)
parts = json.load(open(sys.argv[2]))["packages"]
listed = ["Go standard-library" if p["name"] == "stdlib" else p["name"] + " " + p["versionInfo"] for p in parts[1:]]
print("   %d parts" % len(notices))
sys.exit(notices != listed or len(notices) < 20)
PYTHON
for page in "$work"/archive/man/*.1; do
	! command -v mandoc >/dev/null || mandoc -T lint -W error "$page" || fail "$page"
done
bash -n "$work/archive/completions/strandline.bash"

say "library"
git clone --quiet "$here/.." "$work/library"
"$work/library/release/module.sh" example.com/strandline
mkdir "$work/consumer"
cat >"$work/consumer/main.go" <<'GO'
package main

import (
	"fmt"
	"os"

	"example.com/strandline/torch/snapshot"
)

func main() {
	s, err := snapshot.Read(os.Stdin, snapshot.Options{})
	if err == nil {
		fmt.Println(s.Traces[0].Len(), "events")
	}
}
GO
library() (
	export GOWORK=off GOFLAGS=-mod=mod
	cd "$work/consumer" && go mod init consumer &&
		go mod edit -require example.com/strandline@v0.0.0 -replace "example.com/strandline=$work/library" &&
		go run . <"$examples/step-4.pickle" | grep '^[0-9]* events' && cd "$work/library" &&
		grep -rl '^func Example' --include=example_test.go . | xargs -n1 dirname | xargs go test -vet=off -run Example
)
library >"$work/log" 2>&1 || { cat "$work/log" && fail "the library"; }

if command -v qemu-aarch64-static >/dev/null && compgen -G "$dist/strandline_*_linux_arm64.tar.gz" >/dev/null; then
	say "archive for arm64"
	mkdir "$work/arm64"
	tar -xzf "$dist"/strandline_*_linux_arm64.tar.gz -C "$work/arm64" --strip-components 1
	start
	finds qemu-aarch64-static "$work/arm64/strandline" diagnose "$examples"
fi

say "wheel"
python3 -m venv "$work/venv"
listing "$work/venv" | grep -v __pycache__ >"$work/before"
start
"$work/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$dist"/*manylinux*_"$(uname -m)".*.whl
finds "$work/venv/bin/strandline" diagnose "$examples"
"$work/venv/bin/python" -c 'import strandline; strandline.start'
"$work/venv/bin/pip" uninstall --quiet --yes strandline
find "$work/venv" -name __pycache__ -prune -exec rm -rf {} +
unchanged wheel "$work/venv"

say "deb"
root=$work/debian
if [ -n "${DEBIAN_ROOT:-}" ]; then
	cp -a "$DEBIAN_ROOT" "$root"
else
	debootstrap --variant=minbase stable "$root" >"$work/log" 2>&1 || { tail "$work/log" && exit 1; }
fi
listing "$root" >"$work/before"
cp -r "$examples" "$root/tmp/example"
cp "$dist"/*_"$arch".deb "$root/tmp/strandline.deb"
start
chroot "$root" dpkg --install /tmp/strandline.deb >"$work/log" || { cat "$work/log" && fail "dpkg --install"; }
finds chroot "$root" strandline diagnose /tmp/example
chroot "$root" dpkg --verify strandline || fail "dpkg --verify"
mkdir -p "$root/var/lib/strandline" && : >"$root/var/lib/strandline/node.strandline" # as the unit makes it
chroot "$root" dpkg --purge strandline >"$work/log" || { cat "$work/log" && fail "dpkg --purge"; }
rm -rf "$root/tmp/example" "$root/tmp/strandline.deb"
unchanged deb "$root"

# Programs of the root run the package's scripts; a shell and coreutils are enough.
if command -v rpm >/dev/null; then
	say "rpm"
	root=$work/fedora
	mkdir -p "$root"
	cp -a "$work"/debian/{bin,lib*,usr} "$root/"
	rm -rf "$root/usr/lib/systemd" # as in a container
	mkdir -p "$root"/{etc,root,run,tmp,var/lib,var/tmp,usr/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,doc}}
	rpm --root "$root" --initdb
	listing "$root" >"$work/before"
	cp -r "$examples" "$root/tmp/example"
	start
	rpm --root "$root" --nodeps --install "$dist"/*."$(uname -m)".rpm || fail "rpm --install"
	finds chroot "$root" strandline diagnose /tmp/example
	rpm --root "$root" --verify --nodeps strandline || fail "rpm --verify"
	mkdir -p "$root/var/lib/strandline" && : >"$root/var/lib/strandline/node.strandline"
	rpm --root "$root" --erase strandline || fail "rpm --erase"
	rm -rf "$root/tmp/example"
	unchanged rpm "$root"
	if command -v dnf >/dev/null; then
		say "rpm, by dnf"
		dnf() { command dnf --installroot="$root" --disablerepo='*' --releasever=40 --setopt=reposdir="$work" --quiet --assumeyes "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "dnf $1"; }; }
		cp -r "$examples" "$root/tmp/example"
		start
		dnf install "$dist"/*."$(uname -m)".rpm
		finds chroot "$root" strandline diagnose /tmp/example
		dnf remove strandline
		rm -rf "$root/tmp/example"
		unchanged dnf "$root"
	fi
else
	echo "skipped: rpm is not installed"
fi

say "image"
mkdir -p "$work/image" "$work/image-root"
start
tar -xf "$dist"/*_"$arch".image.tar -C "$work/image"
for layer in "$work"/image/*.tar.gz; do tar -xzf "$layer" -C "$work/image-root"; done
cp -r "$examples" "$work/image-root/tmp/example"
finds chroot "$work/image-root" /strandline diagnose /tmp/example
if [ -e "$work/image-root/lib/$(uname -m)-linux-gnu/libc.so.6" ] && command -v gcc >/dev/null; then
	say "image: a driver's library"
	mkdir -p "$work"/image-root/{dev,proc,"usr/lib/$(uname -m)-linux-gnu"}
	gcc -shared -fPIC -w -o "$work/image-root/usr/lib/$(uname -m)-linux-gnu/libnvidia-ml.so.1" "$here/../host/gpu/nvml/testdata/fake.c"
	printf 'version 580\ndevice GPU-a FAKE_H200 150000000000 5000000000 145000000000 0\n' >"$work/image-root/tmp/says"
	mknod "$work/image-root/dev/null" c 1 3
	mount --bind /proc "$work/image-root/proc"
	FAKE_NVML=/tmp/says chroot "$work/image-root" /strandline watch --once --json >"$work/log" || :
	umount "$work/image-root/proc"
	grep -q '"FAKE H200"' "$work/log" || fail "watch in the image sees no device"
fi
if command -v skopeo >/dev/null; then
	skopeo inspect "docker-archive:$(echo "$dist"/*_"$arch".image.tar)" >/dev/null || fail "skopeo inspect"
else
	echo "skipped: skopeo is not installed"
fi
if [ -e "$dist/strandline.nix" ]; then
	say "formulas"
	! command -v ruby >/dev/null || ruby -c "$dist/strandline.rb" >/dev/null || fail "strandline.rb"
	! command -v nix-instantiate >/dev/null || nix-instantiate --parse "$dist/strandline.nix" >/dev/null || fail "strandline.nix"
fi
[ "$failed" = 0 ] && echo "ok"
exit "$failed"
