/// @file MatrixShapes.hpp
/// @brief The run-time part of a matrix array's shapes: what all rows have in common, and what each row has of its own.
#pragma once

#include "DNDS/Array/MatrixShape.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Storage/RowLayout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace DNDS {

/// Remembers the shapes of the matrices in the rows of one array, next to the array's elements and row sizes. Compiled
/// once; part of the arrays `ArrayEigenMatrix` and `ArrayEigenUniMatrixBatch`, which keep it in step with their rows.
///
/// `common()` has for each dimension the number that all rows share or are limited to: the static number, or what was
/// chosen at run time. Where both dimensions differ between rows there is one MatrixShape a row as well, on host and
/// device.
///
/// Everything is Local unless it says otherwise; `label` is the array's, for messages. Copies are deep, a moved-from
/// object is as new.
class MatrixShapes {
  public:
    /// `declared` and `limit` are those of MatrixTraits.
    MatrixShapes(MatrixShape declared, MatrixShape limit) noexcept
        : declared_(declared), limit_(limit), common_(limit) {}
    MatrixShapes(const MatrixShapes &) = default;
    MatrixShapes &operator=(const MatrixShapes &) = default;
    MatrixShapes(MatrixShapes &&other) noexcept
        : declared_(other.declared_), limit_(other.limit_), common_(std::exchange(other.common_, other.limit_)),
          perRow_(std::move(other.perRow_)) {}
    MatrixShapes &operator=(MatrixShapes &&other) noexcept {
        MatrixShapes taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~MatrixShapes() = default;
    void swap(MatrixShapes &other) noexcept {
        std::swap(declared_, other.declared_);
        std::swap(limit_, other.limit_);
        std::swap(common_, other.common_);
        perRow_.swap(other.perRow_);
    }

    /// For each dimension what all rows share or are limited to; DynamicSize where it was not chosen yet.
    const MatrixShape &common() const noexcept { return common_; }
    /// Whether all numbers that are to be chosen at run time were chosen.
    bool chosen() const noexcept { return common_.rows != DynamicSize && common_.cols != DynamicSize; }

    /// `common()` after choosing the run-time numbers from `shape`; changes nothing itself.
    /// @throws ArgumentError where `shape` contradicts static numbers, is negative, or has too many elements.
    MatrixShape merged(MatrixShape shape, std::string_view label) const;
    /// Takes what `merged` or `mergedRows` returned.
    void setCommon(MatrixShape common) noexcept { common_ = common; }

    /// The same for the shapes of all rows, beginning with what `common` says: a dimension that is DynamicSize and not
    /// yet chosen takes that of the first row. @throws ArgumentError for the first shape that does not fit. O(rows).
    MatrixShape mergedRows(MatrixShape common, std::span<const MatrixShape> shapes, std::string_view label) const;

    /// @throws ArgumentError unless a matrix of `shape` can be row `i`.
    void check(index i, MatrixShape shape, std::string_view label) const { checkAgainst(common_, i, shape, label); }

    /// Takes the common numbers of `other`. @throws StateError where this array has `rows` rows with other ones.
    void adopt(const MatrixShapes &other, index rows, std::string_view label);

    /// Makes the numbers chosen at run time equal on all ranks: ranks without rows take the others'. Collective.
    /// Returns whether they changed here. @throws LayoutError on all ranks when ranks chose differently.
    bool agree(const CommunicatorView &comm, index rows, std::string_view label);

    /// The shapes that belong to each row; 0 bytes unless both dimensions differ between rows.
    HostDeviceBuffer &perRow() noexcept { return perRow_; }
    const HostDeviceBuffer &perRow() const noexcept { return perRow_; }
    /// The same as shapes, of which `space` is to have the latest: to be read, or to be changed there.
    const MatrixShape *read(MemorySpace space, std::string_view label) const {
        return reinterpret_cast<const MatrixShape *>(perRow_.read(space, label));
    }
    MatrixShape *write(MemorySpace space, std::string_view label) {
        return reinterpret_cast<MatrixShape *>(perRow_.write(space, label));
    }
    /// A buffer for the shapes of `rows` rows in the memory resource of the present one: zero, or with the shapes of
    /// the rows that there are.
    HostDeviceBuffer newBuffer(std::size_t rows) const {
        return HostDeviceBuffer(rows * sizeof(MatrixShape), perRow_.resource());
    }
    HostDeviceBuffer resizedBuffer(std::size_t rows) const;

    /// Adds per-row shapes to the parts of `layout`, whose last part they become, and common numbers to its signature.
    /// Null `base`: there are no per-row shapes.
    void describe(RowLayout &layout, std::byte *base) const;
    /// `contents` mixed with the common numbers and the shapes of `rows` rows.
    std::uint64_t hash(std::uint64_t contents, std::string_view label) const;

  private:
    void checkAgainst(MatrixShape common, index i, MatrixShape shape, std::string_view label) const;
    bool perRowNeeded() const noexcept { return declared_.rows == NonUniformSize && declared_.cols == NonUniformSize; }

    MatrixShape declared_;
    MatrixShape limit_;
    MatrixShape common_;
    HostDeviceBuffer perRow_;
};

} // namespace DNDS
