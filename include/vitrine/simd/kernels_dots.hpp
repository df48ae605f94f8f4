// Kernels of a set that adds products of bytes in 32 bits (VNNI): other ones wherever bytes are multiplied.
//
//   vpdpbusd   sum[r] += w[4 r] x[0] + ... + w[4 r + 3] x[3], unsigned bytes by signed ones, in 32 bits; sets without
//              it add in 16 bits (vpmaddubsw) and have to widen before these overflow
//
// These are the quantised linear layers, the scores of attention with quantised keys, and the probe. Included by
// src/kernels_avxvnni.cpp and src/kernels_avx512vnni.cpp only.
#pragma once

#include "vitrine/simd/attention_quantised.hpp"
#include "vitrine/simd/kernel_table.hpp"
#include "vitrine/simd/kernels_extended.hpp"
#include "vitrine/simd/linear_bodies.hpp"
#include "vitrine/simd/probe_bodies.hpp"

VITRINE_ISA_NAMESPACE_BEGIN

void extend(KernelTable& table) {
  set_quantised_forms(table.linear);
  table.attention.integer_scores = attention_detail::integer_scores;
  table.probe = probe_detail::probe;
}

VITRINE_ISA_NAMESPACE_END
