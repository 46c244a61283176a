/// @file ArrayBase.hpp
/// @brief The part of arrays that is independent of the element type: rows, widths, buffers, residency. Compiled once.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// An array without its element type: the base of `Array`, and the parameter of code that is not a template. It has
/// no virtual functions (those of arrays with ghosts are in `ParArray`) and is not made, copied or destroyed on its
/// own.
///
/// Everything here is Local, and concerns the host side unless stated otherwise. Sizes and widths count elements.
///
/// The layouts differ in how rows get their sizes:
///
/// | layout      | before `resize(n)`         | row sizes afterwards                                       |
/// |-------------|----------------------------|------------------------------------------------------------|
/// | StaticFixed |                            | the static width                                           |
/// | Fixed       | a width, `resize(n, width)`| that width                                                 |
/// | StaticMax   |                            | 0 for new rows; `resizeRow` or `resize(n, rowSizeOf)`      |
/// | Max         | a width, `resize(n, width)`| 0 for new rows; `resizeRow` or `resize(n, rowSizeOf)`      |
/// | CSR         |                            | 0 for new rows; decompressed until `compress()`            |
///
/// A CSR array is either compressed (rows in one block, to be viewed, exchanged and transferred) or decompressed (rows
/// grow one by one). Elements outside rows (padding, and the rest of rows that shrank) are kept zero.
class ArrayBase {
  public:
    /// The name of this array in messages; empty until set.
    const std::string &name() const noexcept { return name_; }
    void setName(std::string name) { name_ = std::move(name); }
    /// The name, or "unnamed array".
    std::string_view label() const noexcept { return name_.empty() ? std::string_view("unnamed array") : name_; }

    /// Rows, widths and starts of rows, which arrays may share. Local.
    const ArrayShape &shape() const noexcept { return *shape_; }

    /// The number of rows.
    index size() const noexcept { return rows_; }

    /// The width that all rows have or are padded to; DynamicSize where it was not chosen yet, NonUniformSize for CSR.
    rowsize width() const noexcept { return width_; }

    /// Of matrices, the shape that all rows would share, or be limited to, if rows were `width` elements wide: one
    /// dimension that was not chosen yet follows from the other. O(1).
    MatrixShape shapeOfWidth(rowsize width) const noexcept;

    /// The number of elements of row `i`. O(1). @throws IndexError.
    rowsize rowSize(index i) const {
        checkRow(i);
        return rowSizeUnchecked(i);
    }

    /// The number of elements of every row of a fixed layout, 0 before a run-time width was chosen.
    /// @throws LayoutError for layouts whose rows differ.
    rowsize rowSize() const;

    /// The number of elements a row may have: the (padded) width, or for CSR the size of the longest row, O(rows).
    rowsize rowSizeMax() const;

    /// The number of elements in the array's memory, padding included. O(1), for a decompressed CSR array O(rows).
    index dataSize() const;

    /// The element number at which row `i` starts, `0 <= i <= size()` for CSR and `0 <= i < size()` otherwise.
    /// @throws IndexError; StateError for a decompressed CSR array.
    index rowStart(index i) const;

    /// Changes the number of rows. Rows that remain keep their contents, new elements are zero, new rows of non-uniform
    /// layouts are empty. A compressed CSR array is decompressed first. The same number changes nothing; another one
    /// reallocates, after which the host side is the valid one. O(array).
    /// @throws ArgumentError for a negative or unaddressable number; StateError if a run-time width was not chosen
    /// yet.
    void resize(index rows);

    /// The same and chooses the width: the run-time width (Fixed), the run-time maximum (Max), or the size of every row
    /// (CSR: compressed, all zero). With static widths `width` must be that width. Another width than before starts
    /// over with zeros. Of matrices, the one dimension that was not chosen yet follows from the width.
    /// @throws ArgumentError for negative, unaddressable or contradicting numbers.
    void resize(index rows, rowsize width);

    /// Starts over with rows of `width` elements without values, in a new allocation, for programs that write all of
    /// them: saves the pass over the memory that writes zeros. Local. Errors as resize(rows, width), and LayoutError
    /// for other layouts than fixed ones, whose rows have sizes besides.
    void resizeUninitialized(index rows, rowsize width);

    /// Starts over with rows of `rowSizeOf(i)` zero elements: padded layouts (Max: after its width was chosen) and CSR,
    /// which is compressed afterwards. `rowSizeOf` is called once a row, in order. O(array).
    /// @throws ArgumentError for sizes that are negative or larger than the padded width; LayoutError for fixed
    /// layouts.
    template <std::invocable<index> RowSizeOf>
    void resize(index rows, RowSizeOf &&rowSizeOf) {
        resizeToSizes(collectSizes(rows, std::forward<RowSizeOf>(rowSizeOf)), width_);
    }

    /// The same and chooses the run-time maximum of the Max layout.
    template <std::invocable<index> RowSizeOf>
    void resize(index rows, rowsize width, RowSizeOf &&rowSizeOf) {
        resizeToSizes(collectSizes(rows, std::forward<RowSizeOf>(rowSizeOf)), width);
    }

    /// Gives row `i` the size `width`: remaining elements keep their values, new ones are zero. O(width), amortised.
    /// Padded: up to the padded width. CSR: only while decompressed. Fixed layouts accept their own width.
    /// @throws IndexError, ArgumentError; StateError for a compressed CSR array; StaleError.
    void resizeRow(index i, rowsize width);

    /// Brings the rows of a CSR array into one block, in a new allocation. Does nothing if they already are in one
    /// block, and for other layouts.
    void compress();
    /// Gives every row of a CSR array its own memory, so that rows can change size. Does nothing if they already have
    /// it, and for other layouts. @throws StaleError if only the device has the values.
    void decompress();
    /// Whether rows lie in one block: always, except for decompressed CSR arrays.
    bool isCompressed() const noexcept { return compressed_; }

    /// Takes what was chosen at run time for `other` (width, matrix shape), but no rows: for arrays that get their rows
    /// later. O(1).
    /// @throws LayoutError when the types or layouts differ; StateError when this array has rows of another width or
    /// shape.
    void adoptShape(const ArrayBase &other);

    /// Makes run-time choices equal on all ranks; ranks without a choice take the others'. `largest`
    /// replaces numbers by their maxima over ranks; it is not called if the type leaves nothing to be chosen.
    /// @throws LayoutError on all ranks if two chose differently.
    void takeLargestShape(const std::function<void(std::span<rowsize>)> &largest);

    /// Makes the device side current: elements, row sizes, offsets and shapes. Waits, or with a stream queues the
    /// copies.
    /// @throws StateError for a decompressed CSR array; NotBuiltError, MemoryError.
    void toDevice();
    void toDevice(Device::StreamHandle stream);
    /// Makes the host side current. Waits, or with a stream the host may read after synchronising it.
    void toHost();
    void toHost(Device::StreamHandle stream);
    /// Whether the elements in `space` are current.
    bool valid(MemorySpace space) const noexcept { return data_.valid(space); }

    /// Moves elements, row sizes and shapes into memory of `resource` (null: ordinary memory), and has them stay there
    /// when they are reallocated later. Contents are kept, generations change.
    void rehost(const HostMemoryResource &resource);

    /// Moves the elements of `back` directly after those of `front` in `space`, until either is reallocated. Contents
    /// are kept, generations change. See HostDeviceBuffer::join. @throws LayoutError unless all rows have one width,
    /// the same in both; MemoryError.
    static void joinRows(ArrayBase &front, ArrayBase &back, MemorySpace space);
    /// Whether rows of `back` continue those of `front` there: one pointer serves both. O(1).
    static bool areJoined(const ArrayBase &front, const ArrayBase &back, MemorySpace space) noexcept {
        return HostDeviceBuffer::areJoined(front.data_, back.data_, space);
    }

    /// A hash of the contents: number of rows, row sizes, matrix shapes and the bytes of all elements, padding between
    /// rows excluded. Equal contents hash alike in every layout and state. Compares bits: -0.0 and 0.0 differ, and so
    /// may padding inside a struct. O(array). @throws StaleError if only the device has the values.
    std::uint64_t hash() const;

    /// Readable description of element type and layout, for example "float64[8]:CSR:-2:-2:-1"; see
    /// `ArrayShape::signature`.
    std::string layoutSignature() const { return shape_->signature(); }
    /// A hash of the same.
    std::uint64_t layoutHash() const { return shape_->hash(); }

    /// The rows as bytes in `space`, for transports. Part 0 holds the elements; padded layouts have their row sizes in
    /// part 1; the shapes of matrices that differ in both dimensions are the last part. CSR offsets are host memory in
    /// any case. With `Access::Write` the other side becomes stale. The signature equals `layoutHash()` as long as
    /// nothing was chosen at run time, and contains what was chosen afterwards. O(1).
    /// @throws StateError for a decompressed CSR array; StaleError.
    RowLayout rowLayout(MemorySpace space, Access access);
    /// The same for reading.
    RowLayout rowLayout(MemorySpace space) const;
    /// The same, written into an existing description of an array of this type: for callers in which every nanosecond
    /// counts.
    void rowLayout(MemorySpace space, Access access, RowLayout &into);

    /// The generation of the elements' allocation; see `HostDeviceBuffer::generation`.
    std::uint64_t generation() const noexcept { return data_.generation(); }

    /// A number that no two contents in the process share: elements, row sizes and row shapes. It grows whenever one of
    /// these may have changed: by non-const access to elements, `view`, `deviceView` and `rowLayout` for writing, by
    /// resizing, compressing, decompressing, and by what copies another array here. Reading, `toDevice`, `toHost` and
    /// `rehost` leave it; swaps and moves take it along with the contents. A view that was taken earlier writes unseen:
    /// take a new one for each use, or call `markWritten`. Equal numbers mean equal contents, others need not differ.
    /// O(1).
    std::uint64_t version() const noexcept { return data_.version(); }
    void markWritten() noexcept { data_.markWritten(); }

    /// The version of the father that these ghosts were last pulled from, 0 for none; see HostDeviceBuffer::pulledFrom.
    /// Pulls set it; `ghostStateOf` compares it.
    std::uint64_t pulledFrom() const noexcept { return data_.pulledFrom(); }
    std::uint64_t finishedBy() const noexcept { return data_.finishedBy(); }
    void setPulledFrom(std::uint64_t version, std::uint64_t finishedBy = 0) noexcept {
        data_.setPulledFrom(version, finishedBy);
    }

    /// Shares ownership of a compressed CSR array's row starts on the host, as `RowPart::hold` does for elements:
    /// its pointers in `RowLayout` stay valid after resizing and destruction of the array. Null without offsets.
    std::shared_ptr<const void> holdOffsets() const noexcept { return offsets_.hold(MemorySpace::Host); }

  protected:
    explicit ArrayBase(const ArrayShape &shape) noexcept;
    ArrayBase(const ArrayBase &other) = default;
    ArrayBase &operator=(const ArrayBase &other);
    ArrayBase(ArrayBase &&other) noexcept;
    ArrayBase &operator=(ArrayBase &&other) noexcept;
    ~ArrayBase() = default;

    /// Makes this an array of matrices: `shape` extends that of the constructor, and is static. There are no rows yet.
    void setShape(const ArrayShape &shape) noexcept {
        shape_ = &shape;
        common_ = shape.limit;
    }
    /// Of matrices, what all rows share or are limited to; DynamicSize if not chosen yet, NonUniformSize without limit.
    MatrixShape commonShape() const noexcept { return common_; }
    void setCommonShape(MatrixShape common) noexcept { common_ = common; }
    /// Matrices that differ in both dimensions: the shape of each row in `space`.
    const MatrixShape *rowShapesIn(MemorySpace space) const {
        return reinterpret_cast<const MatrixShape *>(shapes_.read(space, label()));
    }
    /// The same on the host, for writing.
    MatrixShape *writeRowShapes() {
        markWritten();
        return reinterpret_cast<MatrixShape *>(shapes_.write(MemorySpace::Host, label()));
    }

    /// Exchanges all state but the names.
    void swapState(ArrayBase &other) noexcept;
    void swapNames(ArrayBase &other) noexcept { name_.swap(other.name_); }
    /// Deep copy of all state but the name.
    void copyState(const ArrayBase &other);

    void checkRow(index i) const {
        if (i < 0 || i >= rows_) [[unlikely]]
            throwRow(i);
    }
    void checkElement(index i, rowsize j) const {
        if (j < 0 || j >= rowSizeUnchecked(i)) [[unlikely]]
            throwElement(i, j);
    }
    /// @throws StateError telling to call compress(), for a decompressed CSR array.
    void checkCompressed() const {
        if (!compressed_) [[unlikely]]
            throwDecompressed();
    }

    rowsize rowSizeUnchecked(index i) const {
        if (sizes_.bytes() > 0)
            return hostSizes()[i];
        if (shape_->layout != ArrayLayout::CSR)
            return width_;
        if (!compressed_)
            return static_cast<rowsize>(looseRows_[static_cast<std::size_t>(i)].size() / shape_->elementBytes);
        const index *offsets = hostOffsets();
        return static_cast<rowsize>(offsets[i + 1] - offsets[i]);
    }

    const rowsize *hostSizes() const { return sizesIn(MemorySpace::Host); }
    const index *hostOffsets() const { return offsetsIn(MemorySpace::Host); }
    const rowsize *sizesIn(MemorySpace space) const {
        return reinterpret_cast<const rowsize *>(sizes_.read(space, label()));
    }
    const index *offsetsIn(MemorySpace space) const {
        return reinterpret_cast<const index *>(offsets_.read(space, label()));
    }
    const std::byte *readData(MemorySpace space) const { return data_.read(space, label()); }
    std::byte *writeData(MemorySpace space) { return data_.write(space, label()); }
    /// Elements from one row to the next in fixed and padded layouts.
    index stride() const noexcept { return stride_; }
    /// The bytes of row `i` of a decompressed CSR array.
    std::vector<std::byte> &looseRow(index i) {
        markWritten();
        return looseRows_[static_cast<std::size_t>(i)];
    }
    const std::vector<std::byte> &looseRow(index i) const { return looseRows_[static_cast<std::size_t>(i)]; }

    /// Appends one element to row `i`. @throws IndexError, ArgumentError when a padded row is full, StateError,
    /// LayoutError.
    void appendElement(index i, const std::byte *element);

  private:
    template <class RowSizeOf>
    std::vector<rowsize> collectSizes(index rows, RowSizeOf &&rowSizeOf) const {
        std::vector<rowsize> sizes(checkedRowCount(rows));
        for (index i = 0; i < rows; ++i)
            sizes[static_cast<std::size_t>(i)] = checkedSize(i, static_cast<index>(std::invoke(rowSizeOf, i)));
        return sizes;
    }

    [[noreturn]] void throwRow(index i) const;
    [[noreturn]] void throwElement(index i, rowsize j) const;
    [[noreturn]] void throwDecompressed() const;
    std::size_t checkedRowCount(index rows) const;
    rowsize checkedSize(index i, index size) const;
    rowsize checkedWidth(rowsize width) const;
    std::size_t checkedBytes(index rows, index elementsPerRow) const;
    const std::byte *rowBytes(index i) const;
    /// Zero shapes of `rows` rows in the memory resource of the present ones; none unless each row has a shape.
    HostDeviceBuffer newShapes(std::size_t rows) const {
        return HostDeviceBuffer(shape_->shapePerRow() ? rows * sizeof(MatrixShape) : 0, shapes_.resource());
    }

    void resizeToSizes(std::span<const rowsize> sizes, rowsize width);
    /// Starts over with these CSR rows: zeros or, to `keep` contents, the decompressed rows.
    void renewCsr(std::vector<index> offsets, bool keep);
    /// Starts over with new elements, of `rowSizes` or, where these are empty, none a padded row.
    void renew(index rows, rowsize width, std::span<const rowsize> rowSizes, NewBytes contents = NewBytes::Zero);
    void describe(MemorySpace space, RowLayout &layout) const;
    /// All buffers.
    template <class Self>
    static auto buffersOf(Self &self) {
        return std::array{&self.data_, &self.sizes_, &self.offsets_, &self.shapes_};
    }

    /// Static, one a type. Arrays of matrices replace it in their constructors (setShape).
    const ArrayShape *shape_;
    std::string name_;
    HostDeviceBuffer data_;                         ///< elements
    HostDeviceBuffer sizes_;                        ///< padded layouts: one rowsize per row
    HostDeviceBuffer offsets_;                      ///< compressed CSR with rows: rows + 1 starts
    HostDeviceBuffer shapes_;                       ///< matrices of differing shapes: one MatrixShape per row
    std::vector<std::vector<std::byte>> looseRows_; ///< decompressed CSR
    index rows_ = 0;
    index stride_;
    /// Elements of a row, or their limit: as `width`. And its distance to the next row, padding included.
    rowsize width_;
    /// As `commonShape`.
    MatrixShape common_;
    /// CSR: false while rows are in `looseRows_`, when `data_` and `offsets_` are empty.
    bool compressed_ = true;
};

} // namespace DNDS
