#!/usr/bin/env bash
# The main job in one command: builds Vitrine, fetches SmolLM2-135M and lets it answer a question; then shows prefill
# against decode, and decoding with the cache against decoding without.
#
#   cmake/quickstart.sh ["a question of your own"]
set -euo pipefail
. "$(dirname "$0")/common.sh"
question=${1:-Why is the sky blue? Answer in two sentences.}

require_packages "${build_packages[@]}"
build quickstart
say "The model"
"$root/cmake/models.sh" smollm2
model=$VITRINE_MODELS/SmolLM2-135M-Instruct.Q4_1.gguf
cd "$root/build/quickstart/examples"

say "An answer, token by token"
./generate --model "$model" --chat "$question"
say "Reading a prompt (prefill) against writing an answer (decode)"
./prefill_vs_decode --model "$model"
say "With the KV cache and without"
./cached_vs_uncached --model "$model"
say "That was Vitrine. The programs are in build/quickstart/examples; README.md says what each of them shows."
