#!/usr/bin/env bash
# The whole suite in one command: installs what is missing, builds, fetches the models, runs every test.
#
#   cmake/test.sh            the Release build: all tests, once per instruction set that this machine has
#   cmake/test.sh asan       AddressSanitizer and UndefinedBehaviorSanitizer, on the tests that need no real model
#   cmake/test.sh tsan       ThreadSanitizer, on the tests of threads and sessions
#   cmake/test.sh fault      a build with a deliberate fault, and whether every test of equal bits finds it
#   cmake/test.sh PRESET [ctest options]
set -euo pipefail
. "$(dirname "$0")/common.sh"
preset=${1:-release}
[ $# -gt 0 ] && shift

require_packages "${build_packages[@]}" catch2/catch.hpp=catch2 python3=python3 objdump=binutils \
  clang-format=clang-format qemu-x86_64=qemu-user python:jinja2=python3-jinja2
if [ "$preset" = release ]; then
  want_packages clang++=clang '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a=libclang-rt-14-dev'
fi
# Sanitizers watch what runs on small data: not the real models, nor the checks of the sources.
folders=
case $preset in
  asan) folders='core simd ops cache model text sample engine serving' ;;
  tsan) folders='core engine serving' ;;
  fault) folders='invariant storage real_invariant' ;;
esac
[ -n "$folders" ] && build_targets=$(printf 'test_%s ' $folders)
build "$preset"
if [ "$preset" != asan ] && [ "$preset" != tsan ]; then
  say "The models"
  "$root/cmake/models.sh"
fi
select=()
[ -n "$folders" ] && select=(--label-regex "^(${folders// /|})\$")
say "Testing ($preset)"
ctest --preset "$preset" --parallel "$(nproc)" --no-tests=error "${select[@]}" "$@"
