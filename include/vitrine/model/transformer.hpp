// The page to read first: one forward pass, from token ids to logits, top to bottom.
//
//   1/9 tokenize      text -> ids                                       text/tokenizer.hpp
//   2/9 embed         id -> row of the embedding matrix                 here
//   3/9 project       norm, then queries, keys, values                  layers/attention_layer.hpp  }
//   4/9 rope          turn queries and keys by their position           layers/attention_layer.hpp  }  n_layer
//   5/9 attention     cache K and V, look back, mix the values          layers/attention_layer.hpp  }  times
//   6/9 output        mix the heads, add to the residual stream         layers/attention_layer.hpp  }
//   7/9 feed-forward  gate, up, down, add to the residual stream        layers/feed_forward.hpp     }
//   8/9 head          norm, then one logit per word of the vocabulary   here
//   9/9 sample        logits -> the next id                             sample/sampler.hpp
//
// `grep -rn STEP include | sort -k2` lists the places in this order.
//
// Prefill and decode are the same code: a pass over many tokens or over one. A token's numbers do not depend on which
// other tokens are in the pass.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "vitrine/cache/ring.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/token.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/layers/pass.hpp"
#include "vitrine/model/config.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/weights.hpp"
#include "vitrine/ops/logits.hpp"

VITRINE_NAMESPACE_BEGIN

// What one pass works on.
struct Batch {
  std::span<const Token> tokens;             // [n_tokens], ids in [0, n_vocab)
  std::span<const SequenceSlice> slices;     // cover the tokens in order
  std::span<const std::int64_t> logit_rows;  // tokens whose logits are wanted, ascending; the head runs for these only
};

// The weights and what follows from them. Immutable, so any number of threads may run passes on it at once.
class Transformer {
 public:
  explicit Transformer(LoadedModel loaded);

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  // Of the layer's rotation, [head_dim / 2].
  std::span<const float> inverse_frequencies(std::int64_t layer) const {
    return inverse_frequencies_[std::size_t(config_.layers[std::size_t(layer)].rope)];
  }
  // What follows from the configuration alone is there before any weights are: for plans.
  KvLayout kv_layout(KvTypes types) const { return kv_layout(config_, types); }
  static KvLayout kv_layout(const ModelConfig& config, KvTypes types) {
    return {types, config.n_layer, config.n_kv_head, config.head_dim};
  }
  // Which keys each layer looks at, [n_layer]; `limit` bounds those that have no shorter window of their own.
  std::vector<KvReach> kv_reach(const KvReach& limit = {}) const { return kv_reach(config_, limit); }
  static std::vector<KvReach> kv_reach(const ModelConfig& config, const KvReach& limit = {});

  // Memory for passes of up to max_tokens tokens at positions below max_context, with layers limited as in kv_reach.
  PassScratch make_scratch(std::int64_t max_tokens, std::int64_t max_context, int n_threads,
                           const KvReach& limit = {}) const {
    return make_scratch(config_, max_tokens, max_context, n_threads, limit);
  }
  static PassScratch make_scratch(const ModelConfig& config, std::int64_t max_tokens, std::int64_t max_context,
                                  int n_threads, const KvReach& limit = {});

  // Runs one pass: writes K and V of every token into the caches (whose lengths the caller keeps) and the wanted logits
  // [n_logit_rows, n_vocab]. Returns false when `stop` was requested, within one layer; the caches' new positions then
  // hold nothing of use. `observer` may be null. Throws Error::bad_argument, before anything runs, for a batch that
  // contradicts itself, the model or the memory given.
  bool forward(Team& team, const KernelTable& kernels, const Batch& batch, PassScratch& scratch,
               const LogitsView& logits, const TraceObserver* observer, const std::stop_token& stop) const;

 private:
  void check_batch(const Batch& batch, const PassScratch& scratch, const LogitsView& logits, int n_threads) const;
  static BlockShape block_shape(const ModelConfig& config, const LayerConfig& layer);
  void embed(const Pass& pass, const Batch& batch) const;
  void head(const Pass& pass, const Batch& batch, const LogitsView& logits) const;

  ModelConfig config_;
  ModelWeights weights_;
  std::vector<std::vector<float>> inverse_frequencies_;  // per rotation table, [head_dim / 2]
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/transformer.inl.hpp"
#endif
