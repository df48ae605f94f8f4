// Bodies of engine/session.hpp that change or move what a session holds: remove_range, save, load.
#pragma once

#include <algorithm>
#include <istream>
#include <ostream>
#include <utility>

#include "vitrine/cache/kv_tokens.hpp"
#include "vitrine/engine/saved_form.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/engine/session_impl.inl.hpp"
#include "vitrine/ops/attention.hpp"

VITRINE_NAMESPACE_BEGIN

namespace session_detail {

// Memory to move tokens with, reserved before the first is touched: what is refused then has changed nothing.
struct MoveRoom {
  static constexpr std::int64_t at_once = 64;
  Tensor<float, 2> k, v, cos, sin;
  std::vector<std::int64_t> turns;

  MoveRoom(const ModelConfig& config, std::int64_t by)
      : k({at_once, config.n_kv_head * config.head_dim}),
        v(k.shape()),
        cos({at_once, config.head_dim / 2}),
        sin(cos.shape()),
        turns(std::size_t(at_once), -by) {}
};

// Moves tokens [first, last) of one layer to positions `by` lower. A key at p that was turned by p is turned back by
// `by`; values are as they are.
VITRINE_INLINE void move_tokens(const KernelTable& kernels, const KvView& view, std::span<const float> frequencies,
                                std::int64_t first, std::int64_t last, std::int64_t by, MoveRoom& room) {
  constexpr auto at_once = MoveRoom::at_once;
  auto& [k, v, cos, sin, turns] = room;
  OwnWorker worker;
  rope_cos_sin(worker, frequencies, turns, cos.view(), sin.view());
  for (auto at = first; at < last; at += at_once) {
    const auto n = (std::min)(at_once, last - at);
    const auto rows = [n](Tensor<float, 2>& x) { return TensorView<float, 2>(x.data(), {n, x.shape()[1]}); };
    for (std::int64_t i = 0; i < n; ++i) read_kv(view, at + i, k.view().row(i).data(), v.view().row(i).data());
    rope(worker, kernels, rows(k), view.n_kv_head, view.head_dim, rows(cos), rows(sin));
    store_kv(worker, kernels, view, at - by, rows(k), rows(v));
  }
}

VITRINE_INLINE std::string identity(const Model& model, const SessionOptions& options) {
  return saved_identity(model.fingerprint(), model.transformer().kv_layout(options.kv_type)) + ", " +
         cache_kind_name(options.cache) +
         (options.window == 0
              ? std::string()
              : ", window " + std::to_string(options.window) + ", sinks " + std::to_string(options.sinks));
}

}  // namespace session_detail

VITRINE_INLINE void Session::remove_range(std::int64_t begin, std::int64_t end) {
  auto& self = impl();
  const session_detail::InUse in_use(self.in_use);
  check(0 <= begin && begin <= end && end <= length(), ErrorKind::bad_argument,
        "remove_range: expected 0 <= begin <= end <= ", length(), ", got ", begin, " and ", end);
  check(self.cache.kind() != CacheKind::ring, ErrorKind::unsupported,
        "remove_range: a ring cannot move its tokens; reset() and prefill() those that shall stay");
  const auto& types = self.options.kv_type;
  check(!is_quantised_kv(types.k) && !is_quantised_kv(types.v), ErrorKind::unsupported, "remove_range: a cache of ",
        types.name(), " cannot be turned; reset() and prefill() the tokens that shall stay");
  if (begin == end) return;
  self.forget_guesses();
  const auto held = self.cache.length();
  if (end < held) {
    const auto move = [&] {
      session_detail::MoveRoom room(self.model->config(), end - begin);
      self.cache.make_writable(begin);
      const parallel_detail::DefaultFloatEnvironment environment;
      const auto& transformer = self.model->transformer();
      for (std::int64_t layer = 0; layer < self.model->config().n_layer; ++layer)
        session_detail::move_tokens(self.kernels, self.cache.tables().view(layer),
                                    transformer.inverse_frequencies(layer), end, held, end - begin, room);
    };
    naming_memory(move, "remove_range");
    self.edited_from = (std::min)(self.edited_from, begin);
  }
  self.cache.truncate(end < held ? held - (end - begin) : (std::min)(held, begin));
  self.tokens.erase(self.tokens.begin() + begin, self.tokens.begin() + end);
  self.n_kept_blocks = (std::min)(self.n_kept_blocks, begin / kv_block_tokens);
}

// The form of a file: name, identity, numbers, tokens, checksum; then the blocks, checksum.
VITRINE_INLINE void Session::save(std::ostream& out) const {
  auto& self = impl();
  const session_detail::InUse in_use(self.in_use);
  self.forget_guesses();
  const auto write = [&] {
    SavedWriter writer(out);
    writer.text("VITRINE-SESSION");
    writer.text(session_detail::identity(*self.model, self.options));
    const auto held = self.cache.length();
    writer.value(std::int64_t(self.tokens.size()));
    writer.value(held);
    writer.value(self.edited_from);
    writer.bytes(self.tokens.data(), self.tokens.size() * sizeof(Token));
    writer.checksum();
    const auto groups = self.cache.tables().groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto& layout = groups[g].layout;
      std::vector<std::byte> last;
      for (std::int64_t b = 0; b < KvLayout::blocks_for(held); ++b) {
        if (!self.cache.needs(g, b, held)) continue;
        const std::byte* block = groups[g].blocks[b];
        if ((b + 1) * kv_block_tokens > held) {
          last.assign(block, block + layout.block_bytes());
          clear_behind(layout, last.data(), held - b * kv_block_tokens);
          block = last.data();
        }
        writer.bytes(block, layout.block_bytes());
      }
    }
    writer.checksum();
    out.flush();
    check(bool(out), ErrorKind::io, "save: the stream cannot be written");
  };
  naming_memory(write, "save");
}

VITRINE_INLINE void Session::load(std::istream& in) {
  auto& self = impl();
  const session_detail::InUse in_use(self.in_use);
  const auto read = [&] {
    constexpr auto bad = ErrorKind::bad_file;
    SavedReader reader(in);
    check(reader.text(64) == "VITRINE-SESSION", bad, "load: not a saved session");
    const auto expected = session_detail::identity(*self.model, self.options), found = reader.text(1024);
    check(found == expected, bad, "load: saved from [", found, "], this session has [", expected, "]");
    const auto n_tokens = reader.value<std::int64_t>(), held = reader.value<std::int64_t>();
    const auto edited_from = reader.value<std::int64_t>();
    check(n_tokens >= 0 && held >= 0 && held <= n_tokens && edited_from >= 0, bad, "load: ", n_tokens, " tokens, ",
          held, " of them with K and V, cannot be");
    check(n_tokens <= self.options.n_context, ErrorKind::context_full, "load: ", counted(n_tokens, "token"),
          " do not fit the context of ", self.options.n_context);
    std::vector<Token> tokens;
    tokens.reserve(std::size_t(self.options.n_context));
    tokens.resize(std::size_t(n_tokens));
    reader.bytes(tokens.data(), tokens.size() * sizeof(Token));
    reader.checksum();
    for (const Token token : tokens)
      check(token >= 0 && token < self.model->config().n_vocab, bad, "load: token ", token, ", expected 0 to ",
            self.model->config().n_vocab - 1);
    auto cache = session_detail::make_cache(self.model->transformer(), self.options);
    cache.restore(held);
    const auto groups = cache.tables().groups();
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::int64_t b = 0; b < KvLayout::blocks_for(held); ++b)
        if (cache.needs(g, b, held)) reader.bytes(groups[g].blocks[b], groups[g].layout.block_bytes());
    reader.checksum();
    self.cache = std::move(cache);
    self.tokens = std::move(tokens);
    self.forget_guesses();
    self.edited_from = edited_from;
    self.n_kept_blocks = 0;
  };
  naming_memory(read, "load");
}

VITRINE_NAMESPACE_END
