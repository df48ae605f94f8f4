#!/bin/sh
# pkg_config.sh COMPILER PREFIX LIBDIR SOURCE PROGRAM MODEL: builds SOURCE with what pkg-config says, and runs it.
set -eu
export PKG_CONFIG_PATH="$2/$3/pkgconfig"
flags=$(pkg-config --cflags --libs vitrine)
eval "$1 -std=c++20 -O1 '$4' $flags -o '$5'"  # eval: pkg-config quotes the spaces in folders
LD_LIBRARY_PATH="$2/$3" "$5" "$6"
pkg-config --modversion vitrine
