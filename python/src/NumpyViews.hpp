/// @file NumpyViews.hpp
/// @brief Memory of the library as NumPy arrays, without copying, that keep that memory alive.
#pragma once

#include "DNDS/Storage/ArrayBase.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace DNDS::Python {

/// The NumPy type of elements. Throws LayoutError for opaque ones.
nanobind::dlpack::dtype dtypeOf(ElementKind kind);
/// The kind that NumPy calls so ("float64", numpy.int32, ...). Throws ArgumentError that lists the kinds.
ElementKind elementKindOf(nanobind::handle dtype);
ElementKind elementKindOf(nanobind::dlpack::dtype dtype);

/// The memory that a view shows; strides count elements.
struct Block {
    void *data = nullptr;
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> strides;
    ElementKind kind = ElementKind::Float64;
};

/// A NumPy array of memory that `hold` keeps alive for as long as the array, or a view of it, lives. Local, O(1).
nanobind::object numpyOf(const Block &block, std::shared_ptr<const void> hold, bool writable);

/// A list that `owner` holds, read-only. Local, O(1).
template <class T>
nanobind::object numpyOf(std::span<const T> values, std::shared_ptr<const void> owner) {
    Block block;
    block.data = const_cast<T *>(values.data());
    block.shape = {values.size()};
    block.strides = {1};
    block.kind = DNDS::elementKindOf<T>();
    return numpyOf(block, std::move(owner), false);
}

/// The elements of an array on the host: [rows x width] for fixed and padded layouts, padding included, [elements] for
/// CSR. The memory lives as long as the NumPy array, even where the array is resized or goes: the view then shows what
/// was there. Writable views make the device side stale. Local, O(1). Throws StaleError, StateError (not compressed).
nanobind::object elementsOf(ArrayBase &array, bool writable);
/// The same as a block and what keeps its memory, for views that differ in shape.
Block blockOf(ArrayBase &array, bool writable, std::shared_ptr<const void> &hold,
              MemorySpace space = MemorySpace::Host);
/// The size of each row: [rows], int32. Without copying for padded rows; a list of its own for others.
nanobind::object rowSizesOf(ArrayBase &array);
/// Starts of the rows of a CSR array: [rows + 1], int64, read-only, without copying. Throws LayoutError for others.
nanobind::object offsetsOf(ArrayBase &array);

} // namespace DNDS::Python
