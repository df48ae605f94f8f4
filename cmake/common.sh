# What the set-up scripts share; sourced by bash, not run.
#
# Each script does all of its own set-up on a fresh Debian 12 machine: packages (by apt, and only those that are
# missing, so that no rights are needed where all are there), build, models. Whatever cannot be had is said in one
# message that names it and the way out.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
export HOME
# The folder of the model files; tests and examples look there too.
export VITRINE_MODELS=${VITRINE_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/vitrine/models}

say() { printf '\n\033[1m== %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }
die() { printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

have_header() {  # is this header in a usual place?
  local folder
  for folder in /usr/include /usr/local/include /usr/include/eigen3 "/usr/include/$(uname -m)-linux-gnu" \
                ${CPATH:+${CPATH//:/ }}; do
    [ -e "$folder/$1" ] && return 0
  done
  return 1
}

# require_packages NEED=PACKAGE...: a NEED is a file (a pattern of full paths), a header (its name has a dot),
# `python:MODULE`, or a program. Installs the packages of those that are missing.
require_packages() {
  local pair need package missing=()
  for pair in "$@"; do
    need=${pair%%=*} package=${pair#*=}
    case $need in
      /*) compgen -G "$need" >/dev/null && continue ;;
      python:*) python3 -c "import ${need#python:}" >/dev/null 2>&1 && continue ;;
      *.h | *.hpp | Eigen/*) have_header "$need" && continue ;;
      *) command -v "$need" >/dev/null && continue ;;
    esac
    missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "Installing what is missing: ${missing[*]}"
  command -v apt-get >/dev/null ||
    die "these packages (by their Debian names) are missing, and there is no apt-get to install them: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and this user may not install them. As root, run:
    apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || echo "(the package lists could not be refreshed; trying with those at hand)"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}
    Check the network and the package sources, or install them by hand, and run this again."
}

# The same for what can be done without.
want_packages() { (require_packages "$@") || say "Going on without: ${*#*=}"; }

build_packages=(cmake=cmake g++=g++ ninja=ninja-build pkg-config=pkg-config xsimd/xsimd.hpp=libxsimd-dev
                Eigen/Core=libeigen3-dev nlohmann/json.hpp=nlohmann-json3-dev pcre2.h=libpcre2-dev
                utf8proc.h=libutf8proc-dev cxxopts.hpp=libcxxopts-dev)

# build PRESET [cmake options]: configures and builds build/PRESET (only $build_targets, if that is set), with the
# compiler's progress on the terminal.
build() {
  local preset=$1
  shift
  say "Building ($preset) in build/$preset"
  cd "$root" && mkdir -p build
  cmake --preset "$preset" "$@" >"$root/build/$preset.log" 2>&1 || {
    cat "$root/build/$preset.log"
    die "CMake could not configure the build (see above)"
  }
  cmake --build --preset "$preset" ${build_targets:+--target $build_targets} || die "the build failed (see above)"
}
