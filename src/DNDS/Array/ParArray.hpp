/// @file ParArray.hpp
/// @brief An array whose rows are part of a global numbering over the ranks of a communicator.
#pragma once

#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Storage/Array.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace DNDS {

/// The communicator and the numbering of a distributed array, for any element type: the second base of `ParArray`. Not
/// constructed on its own.
class ParRows {
  public:
    virtual ~ParRows() = default;

    /// The array whose rows these are. Local.
    virtual ArrayBase &localRows() noexcept = 0;
    virtual const ArrayBase &localRows() const noexcept = 0;

    /// Local, O(1). Throws StateError when the communicator was freed, as do all functions that communicate.
    const CommunicatorView &comm(SourceLocation where = SourceLocation::current()) const {
        if (life_.ended()) [[unlikely]]
            throw StateError(fmt::format("the communicator of '{}' was freed, or MPI is finalized: free it after the "
                                         "last collective use of its arrays",
                                         localRows().label()),
                             where);
        return comm_;
    }

    /// Numbers the rows of all ranks consecutively. Collective. Call it after the number of rows is final.
    void createGlobalMapping() { globalMapping_ = GlobalMapping::create(comm(), localRows().size()); }
    /// Uses an existing numbering of the same number of rows. Local. Throws StateError when the numbers differ.
    void setGlobalMapping(std::shared_ptr<const GlobalMapping> mapping) {
        const ArrayBase &rows = localRows();
        DNDS_CHECK(mapping != nullptr, ArgumentError, "'{}' is given a null global mapping", rows.label());
        DNDS_CHECK(mapping->localSize() == rows.size(), StateError, "'{}' has {} rows, but the mapping was made for {}",
                   rows.label(), rows.size(), mapping->localSize());
        globalMapping_ = std::move(mapping);
    }
    /// The numbering, or null before `createGlobalMapping`. Local.
    const std::shared_ptr<const GlobalMapping> &globalMapping() const noexcept { return globalMapping_; }

    /// The number of rows on all ranks. Collective.
    index globalSize() const { return comm().allReduce(localRows().size(), MPI_SUM); }

    /// Makes run-time choices (width, matrix shape) equal on all ranks: ranks without rows take the others'.
    /// Collective; no communication if the type leaves no choice. Throws LayoutError on all ranks when two
    /// ranks chose differently.
    void agreeShape() {
        localRows().takeLargestShape([this](std::span<rowsize> numbers) {
            comm().allReduce(numbers.data(), static_cast<int>(numbers.size()), MPI_MAX);
        });
    }

  protected:
    explicit ParRows(CommunicatorView comm) : comm_(comm), life_(comm) {}
    ParRows(const ParRows &) = default;
    ParRows &operator=(const ParRows &) = default;
    ParRows(ParRows &&) noexcept = default;
    ParRows &operator=(ParRows &&) noexcept = default;
    /// Exchanges communicators and numberings.
    void swapRows(ParRows &other) noexcept {
        std::swap(comm_, other.comm_);
        std::swap(life_, other.life_);
        globalMapping_.swap(other.globalMapping_);
    }

  private:
    CommunicatorView comm_;
    /// Tells when `comm_`, a handle only, was freed.
    CommunicatorLife life_;
    /// Fathers; null for sons, and before it is made.
    std::shared_ptr<const GlobalMapping> globalMapping_;
};

/// One rank's rows of a distributed array: a local `Array` plus the communicator and, once made, the global numbering.
///
/// A father holds the rows its rank owns; a son holds copies of others' rows. Both are ParArrays; only fathers have a
/// global mapping. Copies share the (immutable) mapping; otherwise they are as for `Array`.
///
/// An `ArrayTransformer` of this type keeps the behaviour of an array of derived type, such as `ArrayMatrices`:
/// `ArrayBase` knows the shapes of matrices, too.
template <class T, rowsize rowSizeParam = 1, rowsize rowMaxParam = rowSizeParam, int alignParam = NoAlign>
class ParArray : public Array<T, rowSizeParam, rowMaxParam, alignParam>, public ParRows {
  public:
    using Base = Array<T, rowSizeParam, rowMaxParam, alignParam>;

    /// An array without rows. Local. After the communicator was freed the array is of use on its rank only.
    explicit ParArray(CommunicatorView comm) : ParRows(comm) {}
    ParArray(std::string name, CommunicatorView comm) : ParRows(comm) { this->setName(std::move(name)); }

    ArrayBase &localRows() noexcept override { return *this; }
    const ArrayBase &localRows() const noexcept override { return *this; }

    /// Exchanges rows, mapping and communicator with `other`, but not the names. Local, O(1).
    void swapData(ParArray &other) noexcept {
        Base::swapData(other);
        swapRows(other);
    }
    friend void swap(ParArray &a, ParArray &b) noexcept {
        swap(static_cast<Base &>(a), static_cast<Base &>(b));
        a.swapRows(b);
    }
    /// Makes this a deep copy of `other`, but keeps its own name. Local. O(array).
    void clone(const ParArray &other) {
        Base::clone(other);
        ParRows::operator=(other);
    }
};

} // namespace DNDS
