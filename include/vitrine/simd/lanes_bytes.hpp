// The integer half of the lanes' vocabulary: dot products of 8-bit weights with 8-bit activations, sixteen rows at
// once.
//
// A k-group is four consecutive k-values. bytes64 holds one k-group of the weights of sixteen rows ([16 rows][4]),
// XGroup the same four activations for every row. Exact on every machine; what differs is how many products fit an
// accumulator:
//
//   Partial         sums of products: 16-bit pairs where the CPU has only vpmaddubsw, 32-bit elsewhere
//   partial_groups  how many k-groups of `bits`-bit weights one Partial holds without overflow (pairs of products up to
//                   (2^bits - 1) * 127 * 2 each, within 32767); bits = 8 means signed weights, all others are unsigned
//   widen           a Partial to exact 32-bit sums, one per row; widen_scaled also multiplies by a row's integer scale
//   partial_of      partial_of<shift>(sum, parts [2]) widens to sum * 2^shift in every row; 16-bit halves take a part
//                   each, and may wrap around while more is added, if what they end with fits
//
// Bytes    load_bytes store_bytes & |, low_nibbles high_nibbles, move_bits<from, width, to> (a bit field of each byte),
//          row_bits<width>(p, from): bits from .. from + width - 1 of each row's four bytes at p, as 32-bit values
// Dots     x_group(4 activations), dot_first<bits>(w, x), dot_next<bits>(partial, w, x), dot_weights<bits>(bytes)
//          to_scratch<bits>(bytes): the form that an unpacked panel keeps; signed weights may come out offset by
//          scratch_offset<bits>, which the caller takes back with the sum of the activations
//          offset_to_scratch(bytes): the same form, for bits = 8, of signed weights that come offset by 128
// Scales   scale_at<i>, signed_scale_at<i>: byte i of each row, in the form that widen_scaled wants
//          even_bytes odd_bytes (and signed_): bytes 0 and 2, or 1 and 3, of each row as two 16-bit values;
//          dot_pairs(sum, those, pair): sum + a0 * pair[0] + a1 * pair[1]
// Floats   load_i8: sixteen signed bytes; load_i4<half>: the low (0) or high (1) nibbles of sixteen bytes, each minus 8
// Tiles    what the number of registers makes good sizes. Linear layers: tile_tokens x tile_panels, float_tile_tokens,
//          float_panels, accumulators_in_registers. Attention: max_accumulators of sixteen lanes, group_rows (query
//          rows that go together; integer_rows of them in an integer dot), registers_of_lanes (registers that sixteen
//          floats take)
// Other    to_bytes (of i32x16, saturating), max_i32 hmax_i32 hsum_i32, hsum_pairs (over lanes 4 i and
//          4 i + 1, and over the others), keep (holds values in registers at that point), prefetch (into the
//          first-level cache), prefetch_far (into the second)
#pragma once

#include "vitrine/simd/lanes.hpp"

#if VITRINE_ISA_LEVEL >= 2
#include "vitrine/simd/lanes_bytes_avx512.hpp"
#elif VITRINE_ISA_LEVEL == 1
#include "vitrine/simd/lanes_bytes_avx2.hpp"
#else
#include "vitrine/simd/lanes_bytes_scalar.hpp"
#endif
