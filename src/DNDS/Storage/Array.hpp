/// @file Array.hpp
/// @brief The local array of rows that all DNDS arrays build on, and what tells holders of a reference that it was
/// destroyed.
#pragma once

#include "DNDS/Storage/ArrayBase.hpp"
#include "DNDS/Storage/ArrayView.hpp"

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace DNDS {

/// A member that tells of the end of its object. Copies and moves leave each object its own: it belongs to the place,
/// not to the contents. Local; not thread-safe. Allocates a byte when it is first watched.
class Lifetime {
  public:
    Lifetime() noexcept = default;
    Lifetime(const Lifetime & /*other*/) noexcept {}
    Lifetime &operator=(const Lifetime & /*other*/) noexcept { return *this; }
    ~Lifetime() = default;

    /// Expires when the object is destroyed.
    std::weak_ptr<const void> watch() const {
        if (!token_)
            token_ = std::make_shared<char>();
        return token_;
    }

  private:
    /// Made by the first `watch`; the last reference to it ends with the object.
    mutable std::shared_ptr<const void> token_;
};

/// Owns rows of elements of type `T` in one of the layouts of `arrayLayoutOf`, on the host and, after `toDevice`, on
/// the device.
///
///     Array<real, 5> state;                       // 5 values a cell
///     state.setName("state");
///     state.resize(cells);
///     state(0, 4) = 1.4;                          // always checked
///     auto u = state.view();                      // for loops: raw pointers, checked in debug builds only
///
///     Array<index, NonUniformSize> cellNodes;     // CSR
///     cellNodes.resize(cells, [&](index cell) { return nodeCount[cell]; });
///
/// `T` is trivially copyable and not bool. `align` (bytes, a power of two) makes every row of a fixed or padded layout
/// start at a multiple of it. Memory starts out zero.
///
/// `operator()` and `operator[]` check bounds in every build and are for set-up and inspection; kernels take
/// views. Access through a non-const array counts as writing and makes the device side stale: read through a
/// const array or `view() const` to keep it valid. Everything is Local. Rows, widths and residency are in
/// `ArrayBase`.
///
/// Copies are deep and take their memory from the ordinary allocator; a moved-from array is empty and usable.
template <class T, rowsize rowSizeParam = 1, rowsize rowMaxParam = rowSizeParam, int alignParam = NoAlign>
class Array : public ArrayBase {
  public:
    using Element = T;
    using View = ArrayView<T, rowSizeParam, rowMaxParam, alignParam>;
    using ConstView = ArrayView<const T, rowSizeParam, rowMaxParam, alignParam>;

    static constexpr rowsize rowSizeStatic = rowSizeParam;
    static constexpr rowsize rowMaxStatic = rowMaxParam;
    static constexpr int alignStatic = alignParam;
    static constexpr ArrayShape shapeStatic = arrayShapeOf<T, rowSizeParam, rowMaxParam, alignParam>();
    static constexpr ArrayLayout layout = shapeStatic.layout;

    /// No rows; run-time widths are not chosen. Allocates nothing.
    Array() noexcept : ArrayBase(shapeStatic) {}

    /// Element `j` of row `i`. @throws IndexError naming array, row and element; StaleError if the host side is
    /// stale.
    T &operator()(index i, rowsize j) {
        checkRow(i);
        checkElement(i, j);
        return rowPointer(i)[j];
    }
    const T &operator()(index i, rowsize j) const {
        checkRow(i);
        checkElement(i, j);
        return rowPointer(i)[j];
    }

    /// The first element of row `i`.
    T &operator()(index i) { return (*this)(i, 0); }
    const T &operator()(index i) const { return (*this)(i, 0); }

    /// The start of row `i`; the row is checked, accesses through the pointer are not. @throws IndexError, StaleError.
    T *operator[](index i) {
        checkRow(i);
        return rowPointer(i);
    }
    const T *operator[](index i) const {
        checkRow(i);
        return rowPointer(i);
    }

    /// Row `i` as a span. @throws IndexError, StaleError.
    std::span<T> row(index i) {
        T *start = (*this)[i];
        return {start, static_cast<std::size_t>(rowSizeUnchecked(i))};
    }
    std::span<const T> row(index i) const {
        const T *start = (*this)[i];
        return {start, static_cast<std::size_t>(rowSizeUnchecked(i))};
    }

    /// All elements on the host, padding included; null without elements.
    /// @throws StateError for a decompressed CSR array; StaleError.
    T *data() {
        checkCompressed();
        return reinterpret_cast<T *>(writeData(MemorySpace::Host));
    }
    const T *data() const {
        checkCompressed();
        return reinterpret_cast<const T *>(readData(MemorySpace::Host));
    }

    /// Appends `value` to row `i` of a padded or decompressed CSR array. Amortised O(1).
    /// @throws IndexError; ArgumentError when a padded row is full; StateError for a compressed CSR array; StaleError.
    void appendToRow(index i, const T &value) requires(!isFixedLayout(layout)) {
        const T copy = value; // copied first: it may lie in the row that grows
        appendElement(i, reinterpret_cast<const std::byte *>(&copy));
    }

    /// A view of the rows in the memory of `backend`; the other side becomes stale. O(1).
    /// @throws StaleError naming this array when that side is not current; StateError for a decompressed CSR array.
    template <DeviceBackend backend>
    View deviceView() {
        checkCompressed();
        constexpr MemorySpace space = memorySpaceOf(backend);
        const auto geometry = geometryIn(space); // first, so that a failure changes nothing
        return {reinterpret_cast<T *>(writeData(space)), size(), geometry};
    }
    /// The same for reading: no side becomes stale.
    template <DeviceBackend backend>
    ConstView deviceView() const {
        checkCompressed();
        constexpr MemorySpace space = memorySpaceOf(backend);
        return {reinterpret_cast<const T *>(readData(space)), size(), geometryIn(space)};
    }

    /// `deviceView<DeviceBackend::Host>()`.
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }

    /// Exchanges all state with `other` except the names, which belong to the variables: widths, row sizes, residency,
    /// memory resources, compressed or not. Generations move with the memory. O(1).
    void swapData(Array &other) noexcept { swapState(other); }

    /// Exchanges two arrays, names included. O(1).
    friend void swap(Array &a, Array &b) noexcept {
        a.swapState(b);
        a.swapNames(b);
    }

    /// Makes this a deep copy of `other`, but keeps its own name and memory resource. Keeps allocation and generation
    /// where rows and widths agree. O(array).
    void clone(const Array &other) { copyState(other); }

    /// Expires when this object is destroyed, even if its contents have been moved.
    std::weak_ptr<const void> lifetime() const { return lifetime_.watch(); }

  private:
    using Geometry = typename View::Geometry;

    /// The element at which row `i` starts on the host. Static strides are constants here.
    static index start(const Array &self, index i) {
        if constexpr (layout == ArrayLayout::CSR)
            return self.hostOffsets()[i];
        else if constexpr (layout == ArrayLayout::StaticFixed || layout == ArrayLayout::StaticMax)
            return i * Geometry::stride;
        else
            return i * self.stride();
    }

    // Marks the host side as written, even if the caller only reads: constness decides.
    T *rowPointer(index i) {
        if constexpr (layout == ArrayLayout::CSR) {
            if (!isCompressed())
                return reinterpret_cast<T *>(looseRow(i).data());
        }
        return reinterpret_cast<T *>(writeData(MemorySpace::Host)) + start(*this, i);
    }
    const T *rowPointer(index i) const {
        if constexpr (layout == ArrayLayout::CSR) {
            if (!isCompressed())
                return reinterpret_cast<const T *>(looseRow(i).data());
        }
        return reinterpret_cast<const T *>(readData(MemorySpace::Host)) + start(*this, i);
    }

    // Members exist only in the layouts that need them.
    Geometry geometryIn([[maybe_unused]] MemorySpace space) const {
        Geometry geometry{};
        if constexpr (layout == ArrayLayout::Fixed)
            geometry.width = width() > 0 ? width() : 0;
        if constexpr (hasRunTimeWidth(layout))
            geometry.stride = stride();
        if constexpr (isPaddedLayout(layout))
            geometry.sizes = sizesIn(space);
        if constexpr (layout == ArrayLayout::CSR)
            geometry.offsets = offsetsIn(space);
        return geometry;
    }

    Lifetime lifetime_;
};

} // namespace DNDS
