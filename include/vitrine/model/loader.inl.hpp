// Bodies of loader.hpp.
#pragma once

#include <algorithm>
#include <new>
#include <utility>

#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/hash.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/version.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/tensor_plan.inl.hpp"
#include "vitrine/model/weight_image.hpp"

VITRINE_NAMESPACE_BEGIN

namespace loader_detail {

// Where a slot's matrix goes; nullptr for the slots that are vectors.
VITRINE_INLINE PackedMatrix* matrix_of(ModelWeights& weights, Slot slot, std::int64_t layer) {
  if (slot == Slot::token_embedding) return &weights.token_embedding;
  if (slot == Slot::lm_head) return &weights.lm_head;
  if (layer < 0) return nullptr;
  LayerWeights& block = weights.layers[std::size_t(layer)];
  switch (slot) {
    case Slot::wq: return &block.wq;
    case Slot::wk: return &block.wk;
    case Slot::wv: return &block.wv;
    case Slot::wo: return &block.wo;
    case Slot::w_gate: return &block.w_gate;
    case Slot::w_up: return &block.w_up;
    case Slot::w_down: return &block.w_down;
    default: return nullptr;
  }
}

VITRINE_INLINE std::vector<float>& vector_of(ModelWeights& weights, Slot slot, std::int64_t layer) {
  if (layer < 0) return weights.final_norm;
  LayerWeights& block = weights.layers[std::size_t(layer)];
  switch (slot) {
    case Slot::attention_post_norm: return block.attention_post_norm;
    case Slot::feed_forward_norm: return block.feed_forward_norm;
    case Slot::feed_forward_post_norm: return block.feed_forward_post_norm;
    case Slot::q_norm: return block.q_norm;
    case Slot::k_norm: return block.k_norm;
    case Slot::q_bias: return block.q_bias;
    case Slot::k_bias: return block.k_bias;
    case Slot::v_bias: return block.v_bias;
    default: return block.attention_norm;
  }
}

VITRINE_INLINE bool is_norm(Slot slot) {
  switch (slot) {
    case Slot::final_norm:
    case Slot::attention_norm:
    case Slot::attention_post_norm:
    case Slot::feed_forward_norm:
    case Slot::feed_forward_post_norm:
    case Slot::q_norm:
    case Slot::k_norm: return true;
    default: return false;
  }
}

// Where the rows of half-split heads are in a file whose rotary pairs are neighbours: row p * half + i of a head (part
// p, pair i) is row 2 i + p there.
VITRINE_INLINE std::vector<std::int64_t> interleaved_rows(std::int64_t n_rows, std::int64_t head_dim) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n_rows));
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t head = row / head_dim, within = row % head_dim, half = head_dim / 2;
    order[std::size_t(row)] = head * head_dim + within % half * 2 + within / half;
  }
  return order;
}

VITRINE_INLINE int team_size(int n_threads) {
  check(n_threads >= 0 && n_threads <= max_threads, ErrorKind::bad_argument, "n_threads: expected 1 to ", max_threads,
        ", or 0 for all, got ", n_threads);
  return n_threads == 0 ? available_threads() : n_threads;
}

class Loader {
 public:
  Loader(const ModelConfig& config, const Architecture& architecture, bool is_gguf, const LoadOptions& options)
      : config_(config),
        options_(options),
        team_(team_size(options.n_threads)),
        interleaved_(is_gguf && architecture.interleaved_rope_in_gguf),
        norms_less_one_(!is_gguf && architecture.norms_less_one_in_hf) {}

  // `model`: the path that names the image, if there is a folder for it.
  void load(const std::vector<PlannedTensor>& plan, const std::filesystem::path& model, LoadedModel& out) {
    ModelWeights& weights = out.weights;
    weights.layers.resize(std::size_t(config_.n_layer));
    for (const auto& tensor : plan) {
      total_ += std::int64_t(tensor.source->n_bytes);
      if (tensor.slot == Slot::lm_head) head_ = Slot::lm_head;
    }
    report(0);
    const bool use_image = !options_.image_folder.empty() && options_.n_layers == 0;
    const bool mapped = out.from_image = use_image && map_image(plan, model, weights, out.notices);
    if (!mapped) take_memory(plan, weights);
    for (const auto& tensor : plan) {
      PackedMatrix* const matrix = matrix_of(weights, tensor.slot, tensor.layer);
      if (!matrix)
        load_vector(tensor, vector_of(weights, tensor.slot, tensor.layer));
      else if (mapped)
        report(std::int64_t(tensor.source->n_bytes));
      else
        plan_matrix(tensor, *matrix);
    }
    run_jobs();
    if (use_image && !mapped) keep_image(plan, model, weights, out.notices);
  }

 private:
  // What the packed weights follow from. Samples of the tensors notice a file that was replaced with its time kept.
  std::uint64_t image_identity(const std::vector<PlannedTensor>& plan) const {
    Hash64 hash;
    hash.add(r16::layout_version).add(arithmetic_version).add(interleaved_).add(config_.head_dim);
    for (const auto& tensor : plan) {
      const auto& source = *tensor.source;
      hash.add(layout(tensor)).add(tensor.slot).add(tensor.layer).add(std::string_view(source.name)).add(*source.type);
      for (const auto size : source.shape) hash.add(size);
      hash.add(source.file->bytes().size()).add(source.file->modified()).add(source.offset);
      hash.add(source.data(), std::size_t((std::min)(source.n_bytes, std::uint64_t(1024))));
    }
    return hash.value();
  }

  // Not by what was asked for: where no head can lie in planes, there is one image, whatever the option says.
  std::filesystem::path image_path(const std::vector<PlannedTensor>& plan, const std::filesystem::path& model) const {
    const bool in_planes = std::any_of(
        plan.begin(), plan.end(), [&](const PlannedTensor& tensor) { return layout(tensor) == PackedLayout::planes; });
    return weight_image_path(options_.image_folder, model, in_planes ? PackedLayout::planes : PackedLayout::whole);
  }

  bool map_image(const std::vector<PlannedTensor>& plan, const std::filesystem::path& model, ModelWeights& weights,
                 std::vector<std::string>& notices) {
    const auto path = image_path(plan, model);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return false;
    std::vector<PackedMatrix*> places;
    std::vector<MatrixShape> shapes;
    for (const auto& tensor : plan)
      if (PackedMatrix* const matrix = matrix_of(weights, tensor.slot, tensor.layer)) {
        places.push_back(matrix);
        shapes.push_back({*tensor.source->type, tensor.source->shape[0], tensor.source->shape[1], layout(tensor)});
      }
    try {
      auto matrices = read_weight_image(path, image_identity(plan), shapes, team_);
      for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(matrices[i]);
      return true;
    } catch (const Error& error) {
      notices.push_back(concat("weight image not used: ", error.what()));
      return false;
    }
  }

  void keep_image(const std::vector<PlannedTensor>& plan, const std::filesystem::path& model, ModelWeights& weights,
                  std::vector<std::string>& notices) {
    std::vector<const PackedMatrix*> matrices;
    for (const auto& tensor : plan)
      if (const PackedMatrix* const matrix = matrix_of(weights, tensor.slot, tensor.layer)) matrices.push_back(matrix);
    try {
      write_weight_image(image_path(plan, model), image_identity(plan), matrices, team_);
    } catch (const Error& error) {
      notices.push_back(concat("weight image not kept: ", error.what()));
    }
  }

  // What a matrix takes of the memory of all, which lie side by side in the order of the plan.
  static std::size_t room(const SourceTensor& source) {
    return round_up(PackedMatrix::bytes_of(*source.type, source.shape[0], source.shape[1]), tensor_alignment);
  }

  void take_memory(const std::vector<PlannedTensor>& plan, ModelWeights& weights) {
    std::size_t n_bytes = 0;
    for (const auto& tensor : plan)
      if (matrix_of(weights, tensor.slot, tensor.layer)) n_bytes += room(*tensor.source);
    memory_ = std::make_shared<AlignedBytes>(n_bytes, false);
  }

  PackedLayout layout(const PlannedTensor& tensor) const {
    const bool in_planes = options_.head_in_planes && tensor.slot == head_ && tensor.source->type == DType::q8_0;
    return in_planes ? PackedLayout::planes : PackedLayout::whole;
  }

  std::vector<std::int64_t> row_order(Slot slot, std::int64_t n_rows) const {
    const bool rotated = slot == Slot::wq || slot == Slot::wk || slot == Slot::q_bias || slot == Slot::k_bias;
    return interleaved_ && rotated ? interleaved_rows(n_rows, config_.head_dim) : std::vector<std::int64_t>{};
  }

  void load_vector(const PlannedTensor& tensor, std::vector<float>& out) {
    const SourceTensor& source = *tensor.source;
    source.file->check_size();
    std::vector<float> values(static_cast<std::size_t>(source.shape[0]));
    decode_block_row(*source.type, source.data(), source.shape[0], values.data());
    if (norms_less_one_ && is_norm(tensor.slot))
      for (float& value : values) value = 1.0f + value;
    const auto order = row_order(tensor.slot, source.shape[0]);
    out = values;
    for (std::size_t i = 0; i < order.size(); ++i) out[i] = values[std::size_t(order[i])];
    report(std::int64_t(source.n_bytes));
  }

  // A few panels of one matrix: what a thread takes at a time.
  struct Job {
    PackedMatrix* matrix;
    const SourceTensor* source;
    std::vector<std::int64_t> order;  // of the matrix's rows; empty: as in the file
    std::int64_t first_panel, last_panel;
    std::uint64_t offset, n_bytes;  // of the rows in the file, but for their order
  };

  // Splits a matrix into jobs. They are run once enough have gathered: regions of the team are few and long, yet short
  // enough for progress to be told and pages to be given back in between.
  void plan_matrix(const PlannedTensor& tensor, PackedMatrix& matrix) {
    constexpr std::int64_t batch_bytes = 8 << 20, job_bytes = 256 << 10;
    const SourceTensor& source = *tensor.source;
    const std::int64_t n_rows = source.shape[0];
    matrix = PackedMatrix(*source.type, n_rows, source.shape[1], memory_, memory_used_, layout(tensor));
    memory_used_ += room(source);
    const auto order = row_order(tensor.slot, n_rows);
    const std::int64_t row_bytes = std::int64_t(matrix.row_bytes());
    const std::int64_t n_panels = (std::max)(job_bytes / (panel_rows * row_bytes), std::int64_t{1});
    for (std::int64_t first = 0; first < matrix.n_panels(); first += n_panels) {
      const std::int64_t last = (std::min)(first + n_panels, matrix.n_panels());
      const std::int64_t begin = first * panel_rows * row_bytes,
                         end = (std::min)(last * panel_rows, n_rows) * row_bytes;
      jobs_.push_back(
          {&matrix, &source, order, first, last, source.offset + std::uint64_t(begin), std::uint64_t(end - begin)});
      gathered_ += end - begin;
      if (gathered_ >= batch_bytes) run_jobs();
    }
  }

  void run_jobs() {
    for (const Job& job : jobs_) job.source->file->check_size();
    team_.run([&](Worker& worker) {
      worker.for_chunks(std::int64_t(jobs_.size()), 1, [&](std::int64_t begin, std::int64_t) {
        const Job& job = jobs_[std::size_t(begin)];
        job.matrix->pack_panels(job.first_panel, job.last_panel, job.source->data(),
                                job.order.empty() ? nullptr : job.order.data());
      });
    });
    // Rows in another order may read these pages again: they then come from the system's cache.
    for (const Job& job : jobs_) job.source->file->drop(job.offset, job.n_bytes);
    jobs_.clear();
    report(std::exchange(gathered_, 0));
  }

  void report(std::int64_t n_bytes) {
    done_ += n_bytes;
    if (options_.progress) options_.progress({"load", done_, total_, "bytes"});
  }

  const ModelConfig& config_;
  const LoadOptions& options_;
  Team team_;
  bool interleaved_, norms_less_one_;
  Slot head_ = Slot::token_embedding;     // of a tied model
  std::shared_ptr<AlignedBytes> memory_;  // of all matrices
  std::size_t memory_used_ = 0;
  std::vector<Job> jobs_;
  std::int64_t gathered_ = 0, done_ = 0, total_ = 0;
};

template <class File>
LoadedModel load(const File& file, const std::string& name, const Architecture& architecture, ModelConfig config,
                 bool is_gguf, const LoadOptions& options) {
  LoadedModel model;
  model.config = std::move(config);
  model.n_file_bytes = file.n_file_bytes();
  for (const auto& part : file.parts())
    if (!part.is_mapped() && options.try_map)
      model.notices.push_back(part.name() + ": could not be mapped, was read into memory");
  const auto tensors = list_tensors(file);
  auto plan = plan_tensors(tensors, name, architecture, model.config, is_gguf);
  if (const auto n = options.n_layers; n != 0) {
    check(n >= 1 && n <= model.config.n_layer, ErrorKind::bad_argument, "n_layers: expected 1 to ",
          model.config.n_layer, ", or 0 for all, got ", n);
    std::erase_if(plan, [n](const PlannedTensor& tensor) { return tensor.layer >= n; });
    model.config.n_layer = n;
    model.config.layers.resize(std::size_t(n));
  }
  Loader(model.config, architecture, is_gguf, options).load(plan, name, model);
  return model;
}

VITRINE_INLINE LoadedModel load_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  const parallel_detail::DefaultFloatEnvironment environment;
  const HfConfig config = HfConfig::open(folder / "config.json");
  const Architecture& architecture = architecture_of(config);
  ModelConfig model_config = read_config(folder);
  return load(SafetensorsFile::open_folder(folder), folder.string(), architecture, std::move(model_config), false,
              options);
}

}  // namespace loader_detail

VITRINE_INLINE LoadedModel load_gguf(const GgufFile& file, const LoadOptions& options) {
  const parallel_detail::DefaultFloatEnvironment environment;  // weights must not depend on the host's rounding mode
  return loader_detail::load(file, file.name(), architecture_of(file), config_from_gguf(file), true, options);
}

VITRINE_INLINE void check_model_tensors(const GgufFile& file) {
  loader_detail::plan_tensors(loader_detail::list_tensors(file), file.name(), architecture_of(file),
                              config_from_gguf(file), true);
}

VITRINE_INLINE LoadedModel load_model_files(const std::filesystem::path& path, const LoadOptions& options) {
  const auto load = [&] {
    if (const auto folder = model_folder(path)) return loader_detail::load_folder(*folder, options);
    return load_gguf(GgufFile::open(path, options.try_map), options);
  };
  return naming_memory(load, path.string());
}

VITRINE_NAMESPACE_END
