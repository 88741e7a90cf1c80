#!/bin/sh
# Downloads the C library of images into a folder, for -libc. It runs as root on Debian.
#
#	release/libc.sh FOLDER
set -eu
cd "$1"
dpkg --add-architecture arm64
dpkg --add-architecture amd64
apt-get update -q
apt-get download -q libc6:amd64 libc6:arm64
