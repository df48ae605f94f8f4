// Weight images: the packed weights of a model in a file of their own, which later loads map instead of packing anew.
//
//   "VITRIMG1" | identity u64 | n_bytes u64 | XXH64 of each 4 MiB of the weights | XXH64 of all this | (page) weights
//
// All matrices of the model in the order of the plan, each from a page boundary on. The identity stands for all that
// the weights come from: size, time and samples of the model's files, the tensors with their types and shapes, the
// layout and the version of the arithmetic. An image of another identity is stale, one whose sums do not fit is
// damaged; both are refused and made anew. Sums find accidents, not forgers: keep the folder as safe as the models.
// Images are replaced by renaming, never written over, since other programs may have them mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/ops/packed_matrix.hpp"

VITRINE_NAMESPACE_BEGIN

struct MatrixShape {
  DType type;
  std::int64_t n_rows, n_cols;
  PackedLayout layout = PackedLayout::whole;
};

// Where the image of the model at `model` is kept, in `folder`: one file per path and layout of the head, so that
// programs that want it in different ways do not take it from each other.
std::filesystem::path weight_image_path(const std::filesystem::path& folder, const std::filesystem::path& model,
                                        PackedLayout head = PackedLayout::whole);

// The matrices, mapped, after all sums have been checked by the team. Throws Error: io when the file cannot be opened,
// bad_file when it is of another identity or damaged.
std::vector<PackedMatrix> read_weight_image(const std::filesystem::path& path, std::uint64_t identity,
                                            std::span<const MatrixShape> shapes, Team& team);

// Writes an image beside its place and renames it. Throws Error::io; then nothing is left behind.
void write_weight_image(const std::filesystem::path& path, std::uint64_t identity,
                        std::span<const PackedMatrix* const> matrices, Team& team);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/weight_image.inl.hpp"
#endif
