/// @file ParArray.hpp
/// @brief An array whose rows are part of a global numbering over the ranks of a communicator.
#pragma once

#include "DNDS/Index/GlobalMapping.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/CommunicatorLife.hpp"
#include "DNDS/Storage/Array.hpp"

#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace DNDS {

/// One rank's rows of a distributed array: a local `Array` plus the communicator and, once made, the global numbering.
///
/// A father holds the rows its rank owns; a son holds copies of others' rows. Both are ParArrays; only fathers have a
/// global mapping. Copies share the (immutable) mapping; all else is as for `Array`.
///
/// What exchanges need of an array is virtual, so that an `ArrayTransformer` of this type treats an array that is
/// derived from it, as `ArrayEigenMatrix` is, as what it is: with matrix shapes. Access to elements is not virtual.
template <class T, rowsize rowSizeParam = 1, rowsize rowMaxParam = rowSizeParam, int alignParam = NoAlign>
class ParArray : public Array<T, rowSizeParam, rowMaxParam, alignParam> {
  public:
    using Base = Array<T, rowSizeParam, rowMaxParam, alignParam>;

    /// An array without rows. Local. After the communicator was freed the array is of use on its rank only.
    explicit ParArray(CommunicatorView comm) : comm_(comm), life_(comm) {}
    ParArray(std::string name, CommunicatorView comm) : ParArray(comm) { this->setName(std::move(name)); }
    ParArray(const ParArray &) = default;
    ParArray &operator=(const ParArray &) = default;
    ParArray(ParArray &&) noexcept = default;
    ParArray &operator=(ParArray &&) noexcept = default;
    virtual ~ParArray() = default;

    /// Local, O(1). Throws StateError when the communicator was freed, and so does all that communicates.
    const CommunicatorView &comm(SourceLocation where = SourceLocation::current()) const {
        if (life_.ended()) [[unlikely]]
            throw StateError(fmt::format("the communicator of '{}' was freed, or MPI is finalized: free it after the "
                                         "last collective use of its arrays",
                                         this->label()),
                             where);
        return comm_;
    }

    /// Numbers the rows of all ranks consecutively. Collective. Call it after the number of rows is final.
    void createGlobalMapping() { globalMapping_ = GlobalMapping::create(comm(), this->size()); }
    /// Uses an existing numbering of as many rows. Local. Throws StateError when the numbers of rows differ.
    void setGlobalMapping(std::shared_ptr<const GlobalMapping> mapping) {
        DNDS_CHECK(mapping != nullptr, ArgumentError, "'{}' is given a null global mapping", this->label());
        DNDS_CHECK(mapping->localSize() == this->size(), StateError,
                   "'{}' has {} rows, but the mapping was made for {}", this->label(), this->size(),
                   mapping->localSize());
        globalMapping_ = std::move(mapping);
    }
    /// The numbering, or null before `createGlobalMapping`. Local.
    const std::shared_ptr<const GlobalMapping> &globalMapping() const noexcept { return globalMapping_; }

    /// The number of rows on all ranks. Collective.
    index globalSize() const { return comm().allReduce(this->size(), MPI_SUM); }

    /// Makes the run-time width equal on all ranks: ranks without rows take the others'. Collective; no communication
    /// for layouts without a run-time width. Throws LayoutError on all ranks when two ranks chose different widths.
    virtual void agreeShape() {
        if constexpr (hasRunTimeWidth(Base::layout)) {
            // The largest and, negated, the smallest width that a rank has chosen: all ranks see a difference alike.
            constexpr rowsize none = std::numeric_limits<rowsize>::min();
            const bool chosen = this->width() != DynamicSize;
            std::array<rowsize, 2> extremes{chosen ? this->width() : none, chosen ? -this->width() : none};
            comm().allReduce(extremes.data(), 2, MPI_MAX);
            if (extremes[0] == none)
                return;
            DNDS_CHECK(extremes[0] == -extremes[1], LayoutError,
                       "rows of '{}' are {} elements wide on some rank and {} on another (here {}): they must be equal",
                       this->label(), -extremes[1], extremes[0], this->width());
            if (!chosen)
                this->resize(0, extremes[0]);
        }
    }

    /// As ArrayBase::adoptShape, for all that is chosen at run time. Local. Throws LayoutError when `other` is an array
    /// of another type.
    virtual void adoptShape(const ParArray &other) { Base::adoptShape(other); }

    using Base::resize;
    /// As ArrayBase::resize.
    virtual void resize(index rows) { Base::resize(rows); }
    /// Makes this a son of `rows` ghosts, of `sizes` [rows] elements where rows have sizes of their own. Local.
    /// Contents are zero.
    virtual void resizeGhosts(index rows, [[maybe_unused]] std::span<const rowsize> sizes) {
        if constexpr (isFixedLayout(Base::layout))
            Base::resize(rows);
        else
            Base::resize(rows, [&](index i) { return sizes[static_cast<std::size_t>(i)]; });
    }
    /// Whether each row has a shape of its own, as the last part of `rowLayout`.
    virtual bool hasRowShapes() const noexcept { return false; }
    /// As ArrayBase::rehost.
    virtual void rehost(const HostMemoryResource &resource) { Base::rehost(resource); }

    /// As ArrayBase::rowLayout. Exchanges call the last one, which derived arrays override.
    RowLayout rowLayout(MemorySpace space, Access access) {
        RowLayout described;
        rowLayout(space, access, described);
        return described;
    }
    virtual RowLayout rowLayout(MemorySpace space) const { return Base::rowLayout(space); }
    virtual void rowLayout(MemorySpace space, Access access, RowLayout &into) { Base::rowLayout(space, access, into); }

    /// Exchanges rows, mapping and communicator with `other`, but not the names. Local, O(1).
    void swapData(ParArray &other) noexcept {
        Base::swapData(other);
        swapDistribution(other);
    }
    friend void swap(ParArray &a, ParArray &b) noexcept {
        swap(static_cast<Base &>(a), static_cast<Base &>(b));
        a.swapDistribution(b);
    }
    /// Makes this a deep copy of `other`, but keeps its own name. Local. O(array).
    void clone(const ParArray &other) {
        Base::clone(other);
        comm_ = other.comm_;
        life_ = other.life_;
        globalMapping_ = other.globalMapping_;
    }

  private:
    void swapDistribution(ParArray &other) noexcept {
        std::swap(comm_, other.comm_);
        std::swap(life_, other.life_);
        globalMapping_.swap(other.globalMapping_);
    }

    CommunicatorView comm_;
    CommunicatorLife life_;
    std::shared_ptr<const GlobalMapping> globalMapping_;
};

} // namespace DNDS
