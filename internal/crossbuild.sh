# Sourced by the scripts that build programs in C for amd64 and arm64, which define
#   build COMPILER FILE    builds one
#   object MACHINE         prints where that of a machine is committed
#   sources                prints what they are built from
# and noted, the file that notes the sources and the compilers.

compiler() { "$1" --version 2>/dev/null | head -n 1; }

# crossbuild builds the programs. With --check it changes nothing and reports whether the
# committed ones are what the sources make: exit status 77 means that a compiler is missing
# or is not the one that built them.
crossbuild() {
	if [ "${1:-}" = --check ]; then
		made=$(mktemp)
		trap 'rm -f "$made"' EXIT
	fi
	for machine in x86_64:amd64 aarch64:arm64; do
		cc=${machine%:*}-linux-gnu-gcc object=$(object "${machine#*:}")
		if [ "${1:-}" != --check ]; then
			build "$cc" "$object"
			continue
		fi
		command -v "$cc" >/dev/null || { echo "$cc is missing"; exit 77; }
		grep -qxF "$(compiler "$cc")" "$noted" || { echo "this is $(compiler "$cc"), which did not build what is committed"; exit 77; }
		build "$cc" "$made"
		cmp "$made" "$object"
	done
	[ "${1:-}" = --check ] || { sources | sha256sum | cut -d ' ' -f 1; compiler x86_64-linux-gnu-gcc; compiler aarch64-linux-gnu-gcc; } >"$noted"
}
