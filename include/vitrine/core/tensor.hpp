// Tensors: an owning Tensor<T, Rank> and a non-owning TensorView<T, Rank> with strides.
//
//   Tensor<float, 2> x({n_tokens, d_model});     x(t, i)     x.view()     x.view().row(t)
//
// Row-major, 64-byte aligned storage (a cache line, and the widest vector). Sizes are int64; T may be const in a view.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/huge_pages.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::size_t tensor_alignment = 64;

// While one lives, AlignedBytes of its thread take no memory and are only counted: how much something would take, asked
// of the code that takes it. What was made in the meantime must not be used.
class CountedBytes {
 public:
  CountedBytes() : outer_(std::exchange(current(), this)) {}
  ~CountedBytes() { current() = outer_; }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;
  std::size_t bytes() const { return bytes_; }

 private:
  friend class AlignedBytes;
  static CountedBytes*& current() {
    thread_local CountedBytes* counter = nullptr;
    return counter;
  }
  CountedBytes* outer_;
  std::size_t bytes_ = 0;
};

// Owning bytes, zeros unless told otherwise, aligned to 64, from 4 MB on to the system's large pages. A refused
// allocation is an Error that says how many bytes were wanted.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t n_bytes, bool zeroed = true) : size_(n_bytes) {
    if (n_bytes == 0) return;
    if (auto* const counter = CountedBytes::current()) {
      counter->bytes_ += n_bytes;
      return;
    }
    if (n_bytes <= PTRDIFF_MAX)  // operator new rounds sizes up to the alignment, the largest ones to nothing
      data_ = static_cast<std::byte*>(::operator new(n_bytes, alignment(), std::nothrow));
    check(data_ != nullptr, ErrorKind::out_of_memory, "cannot allocate ", n_bytes, " bytes");
    if (is_large()) advise_huge_pages(data_, n_bytes);
    if (zeroed) std::memset(data_, 0, n_bytes);
  }
  AlignedBytes(AlignedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBytes() {
    if (auto* const counter = CountedBytes::current(); counter && !data_) counter->bytes_ -= size_;
    ::operator delete(data_, alignment());
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  bool is_large() const { return size_ >= 2 * huge_page_bytes; }
  std::align_val_t alignment() const { return std::align_val_t{is_large() ? huge_page_bytes : tensor_alignment}; }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T, int Rank>
class TensorView {
 public:
  using Shape = std::array<std::int64_t, Rank>;

  TensorView() = default;
  TensorView(T* data, Shape shape) : data_(data), shape_(shape) {
    std::int64_t stride = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      strides_[std::size_t(axis)] = stride;
      stride *= shape[std::size_t(axis)];
    }
  }
  TensorView(T* data, Shape shape, Shape strides) : data_(data), shape_(shape), strides_(strides) {}
  // A view of T is a view of const T.
  template <class U>
  requires(std::is_same_v<const U, T>) TensorView(const TensorView<U, Rank>& other)
      : data_(other.data()), shape_(other.shape()), strides_(other.strides()) {}

  template <class... Index>
  requires(sizeof...(Index) == Rank) T& operator()(Index... index) const {
    std::int64_t offset = 0;
    int axis = 0;
    ((offset += std::int64_t(index) * strides_[std::size_t(axis++)]), ...);
    return data_[offset];
  }

  // The sub-view at `index` of the first axis: [a, b, c] -> [b, c].
  TensorView<T, Rank - 1> operator[](std::int64_t index) const requires(Rank > 1) {
    std::array<std::int64_t, Rank - 1> shape, strides;
    for (std::size_t axis = 1; axis < Rank; ++axis) {
      shape[axis - 1] = shape_[axis];
      strides[axis - 1] = strides_[axis];
    }
    return {data_ + index * strides_[0], shape, strides};
  }

  // Row of a matrix as a span; the last axis must be contiguous, as it is in everything the library makes.
  std::span<T> row(std::int64_t index) const requires(Rank == 2) {
    return {data_ + index * strides_[0], std::size_t(shape_[1])};
  }

  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  std::int64_t size(int axis) const { return shape_[std::size_t(axis)]; }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (const auto extent : shape_) n *= extent;
    return n;
  }

 private:
  T* data_ = nullptr;
  Shape shape_{}, strides_{};
};

template <class T, int Rank>
class Tensor {
 public:
  using Shape = typename TensorView<T, Rank>::Shape;
  Tensor() = default;
  // Zeroed, or with whatever the memory held: for scratch that is written before it is read, untouched pages cost
  // nothing.
  explicit Tensor(Shape shape, bool zeroed = true)
      : bytes_(sizeof(T) * std::size_t(TensorView<T, Rank>(nullptr, shape).count()), zeroed), shape_(shape) {}
  // What was moved from has the shape of the memory that it is left with: none, or the other's.
  Tensor(Tensor&& other) noexcept : bytes_(std::move(other.bytes_)), shape_(std::exchange(other.shape_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    std::swap(shape_, other.shape_);
    return *this;
  }

  TensorView<T, Rank> view() { return {data(), shape_}; }
  TensorView<const T, Rank> view() const { return {data(), shape_}; }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  const Shape& shape() const { return shape_; }
  template <class... Index>
  T& operator()(Index... index) {
    return view()(index...);
  }
  template <class... Index>
  const T& operator()(Index... index) const {
    return view()(index...);
  }

 private:
  AlignedBytes bytes_;
  Shape shape_{};
};

VITRINE_NAMESPACE_END
