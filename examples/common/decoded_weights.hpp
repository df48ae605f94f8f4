// A model with all of its weights decoded to F32: what its quantised weights mean, multiplied without rounding anything
// to 8 bits. With a KV cache in F32 besides, it is what the quantised model would say if it computed exactly.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "vitrine/engine/model.hpp"

namespace example {

// The same rows, in the order in which the kernels have them.
inline vitrine::PackedMatrix decoded(const vitrine::PackedMatrix& matrix) {
  std::vector<float> rows(std::size_t(matrix.n_rows() * matrix.n_cols()));
  for (std::int64_t i = 0; i < matrix.n_rows(); ++i) matrix.decode_row(i, rows.data() + i * matrix.n_cols());
  vitrine::PackedMatrix result(vitrine::DType::f32, matrix.n_rows(), matrix.n_cols());
  result.pack_panels(0, result.n_panels(), reinterpret_cast<const std::byte*>(rows.data()), nullptr);
  return result;
}

// `model` lends its tokenizer; its weights are read once more, from `path`. Takes four bytes for each
// of them, and until the last is decoded the packed ones besides.
inline std::shared_ptr<const vitrine::Model> load_decoded(const std::filesystem::path& path,
                                                          const vitrine::Model& model) {
  auto loaded = vitrine::load_model_files(path);
  std::vector<vitrine::PackedMatrix*> matrices = {&loaded.weights.token_embedding, &loaded.weights.lm_head};
  for (auto& layer : loaded.weights.layers)
    for (auto* matrix : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down})
      matrices.push_back(matrix);
  for (auto* matrix : matrices)
    if (!matrix->empty()) *matrix = decoded(*matrix);
  return std::make_shared<const vitrine::Model>(vitrine::Transformer(std::move(loaded)), model.tokenizer());
}

}  // namespace example
