// The vocabulary of every kernel: sixteen lanes, whatever the machine has.
//
//   f32x16 a = load(x), b = broadcast(2.0f);   store(y, fma(a, b, zero()));
//
// One AVX-512 register, two AVX2 registers, or an array in scalar code; the same bits from each. The three files behind
// this one and the CPU probe are the only places with intrinsics and instruction-set conditionals.
//
// Types   f32x16, i32x16 (values), mask16 (one truth value per lane)
// Memory  load store load_part store_part (n < 16 lanes: the rest reads as +0 and is not written), any alignment;
//         load_f16 load_bf16 store_f16 store_bf16, each also with _part: 16-bit storage, rounded to nearest even
// Maths   + - * /, fma(a, b, c) = a * b + c rounded once, max(a, b) = a > b ? a : b, sqrt, negate (flips the sign
//         bit)
// Choice  less equal greater -> mask16 (false for NaN), first_lanes(n), select(mask, if_true, if_false)
// Whole   hsum: lanes i and i+8, then +4, +2, +1 (the library's order for every reduction); hmax likewise
//         transpose(rows): sixteen rows of sixteen lanes, in place
// Integer load_i32 store_i32 broadcast_i32, + - &, shift_left<n>
// Between to_i32 (nearest, ties to even; NaN and out of range give INT32_MIN), to_f32, bits, from_bits
#pragma once

#include "vitrine/simd/isa.hpp"

#if VITRINE_ISA_LEVEL >= 2
#include "vitrine/simd/lanes_avx512.hpp"
#elif VITRINE_ISA_LEVEL == 1
#include "vitrine/simd/lanes_avx2.hpp"
#else
#include "vitrine/simd/lanes_scalar.hpp"
#endif
