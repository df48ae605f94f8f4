// What reading a configuration shares between architectures: sizes, RoPE, windows, and the refusal of what is not
// understood. For the files in this folder.
//
//   in_range(file, "llama.block_count", n, most_layers)    n, or Error::bad_file with the key, the value and the bounds
//
// A number that cannot be is Error::bad_file; a setting that can be but is not done here is Error::unsupported, by
// refuse(): ignoring it would give plausible text from a model that was trained otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/model/arch/description.hpp"
#include "vitrine/model/byte_reader.hpp"

VITRINE_NAMESPACE_BEGIN

namespace arch {

// Bounds that no real model comes near; they keep products of a file's numbers far from 2^63 and vectors sized by them
// small.
inline constexpr std::int64_t most_layers = 4096, most_heads = 65536, largest_width = std::int64_t{1} << 24,
                              longest_context = std::int64_t{1} << 40;

// Throws unless 1 <= value <= most, and returns it. `key` is named in full.
inline std::int64_t in_range(const std::string& file, std::string_view key, std::int64_t value, std::int64_t most) {
  check(value >= 1 && value <= most, ErrorKind::bad_file, file, ": ", key, " is ", value, ", expected 1 to ", most);
  return value;
}

inline float positive(const std::string& file, std::string_view key, double value) {
  const float rounded = float(value);
  check(std::isfinite(rounded) && rounded > 0, ErrorKind::bad_file, file, ": ", key, " is ", value,
        ", expected a positive number");
  return rounded;
}

// The base of RoPE's frequencies theta^(-2i/d); below 1 these grow beyond what a float holds.
inline float rope_base(const std::string& file, std::string_view key, double value) {
  check(value >= 1, ErrorKind::bad_file, file, ": ", key, " is ", value, ", expected at least 1");
  return positive(file, key, value);
}

inline void refuse(bool condition, const std::string& file, std::string_view key, std::string_view why) {
  check(!condition, ErrorKind::unsupported, file, ": ", key, ": ", why);
}

// The relations between sizes that everything later relies on, before anything is divided or allocated by them.
inline void check_heads(const std::string& file, const ModelConfig& config, std::string_view heads_key,
                        std::string_view kv_heads_key) {
  check(config.n_head % config.n_kv_head == 0, ErrorKind::bad_file, file, ": ", heads_key, " is ", config.n_head,
        " and ", kv_heads_key, " is ", config.n_kv_head, ", expected a multiple of it");
  check(config.head_dim % 2 == 0, ErrorKind::unsupported, file, ": the size of a head is ", config.head_dim,
        ", expected an even number");
}

inline float inverse_square_root(std::int64_t value) { return float(1.0 / std::sqrt(double(value))); }

}  // namespace arch

VITRINE_NAMESPACE_END
