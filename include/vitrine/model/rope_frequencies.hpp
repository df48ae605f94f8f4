// STEP 4/9 rope, the table: inverse frequencies of rotary position embedding.
//
//   f_i = theta^(-2i / head_dim),  i = 0 .. head_dim / 2 - 1          (Su et al. 2021, arXiv 2104.09864)
//   linear: f_i / factor                                               (Chen et al. 2023, arXiv 2306.15595)
//   llama3: frequencies whose wavelength 2 pi / f_i is longer than original / low are divided by factor, those with one
//           shorter than original / high stay, those between are blended                    (Llama 3.1's release)
//
// All in F32 and in the order of operations of Hugging Face transformers, since at position 8000 the difference between
// a float and a double angle moves a cosine by 1e-4. One exception: the blended frequencies of llama3 are divided by a
// factor, as in GGUF files, which store the factors (rope_freqs.weight); so both formats of a model give the same bits,
// which are within two units in the last place of transformers'.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/model/config.hpp"

VITRINE_NAMESPACE_BEGIN

// [head_dim / 2]. Throws Error::bad_argument for a head_dim that is odd or below 2, and for frequency divisors that are
// not one for each pair.
std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/rope_frequencies.inl.hpp"
#endif
