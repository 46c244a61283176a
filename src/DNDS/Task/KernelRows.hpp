/// @file KernelRows.hpp
/// @brief Arguments of tasks' kernels: views of the arrays that the task declared, and of nothing else.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Task/RowMask.hpp"

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS::Task {

/// The rows that a part of a task declared of one array; checked by builds with DNDS_DEBUG_CHECKS.
/// Made by SplitTasks.cpp for each access of each part, and owned by the part: views point to it for the length of a
/// run.
struct RowGuard {
    RowMask rows;
    std::string task;
    std::string array;
    index owned = 0;
    const char *verb = "reads";
    bool sameRow = false; ///< only the row that the task is at

    /// Throws IndexError, naming task, array and row, if the task did not declare this row. `refuse` always throws
    /// it.
    void check(index row) const {
        if (row < 0 || row >= rows.size() || !rows.test(row)) [[unlikely]]
            refuse(row);
    }
    [[noreturn]] void refuse(index row) const;
    /// The same for element `j` of a row that has `width` elements.
    void checkElement(index row, rowsize j, rowsize width) const {
        if (j < 0 || j >= width) [[unlikely]]
            refuseElement(row, j, width);
    }
    [[noreturn]] void refuseElement(index row, rowsize j, rowsize width) const;
};

/// The rows of an array that a kernel reads or writes. It is used as the array's own view, owned rows and then ghosts:
/// `u(row, k)`, `u(row)`, `u[row]`. Trivially copyable. If the library is built with DNDS_DEBUG_CHECKS, a row that
/// the task did not declare, or an element that a row does not have, throws IndexError on the host, naming task, array
/// and row.
template <class View>
class Rows {
  public:
    Rows() = default;
    /// `guard` may be null; only builds with DNDS_DEBUG_CHECKS read it.
    DNDS_HOST_DEVICE Rows(View view, const RowGuard *guard) : view_(view), guard_(guard) {}

    /// The numbers of rows, owned ones and ghosts, and of elements of a row.
    DNDS_HOST_DEVICE index size() const { return view_.size(); }
    DNDS_HOST_DEVICE rowsize rowSize(index row) const { return view_.rowSize(row); }
    /// Element `j` of a row, or its first one; `[]` gives the row as the array's view does.
    DNDS_HOST_DEVICE decltype(auto) operator()(index row, rowsize j) const {
        check(row);
        checkElement(row, j);
        return view_(row, j);
    }
    DNDS_HOST_DEVICE decltype(auto) operator()(index row) const { return (*this)(row, 0); }
    DNDS_HOST_DEVICE auto operator[](index row) const {
        check(row);
        return view_[row];
    }

    /// For code that runs kernels: the row that the task is at. Only builds with DNDS_DEBUG_CHECKS look at it.
    void at(index row) { at_ = row; }

  protected:
    DNDS_HOST_DEVICE const View &view() const { return view_; }

  private:
    DNDS_HOST_DEVICE void check([[maybe_unused]] index row) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr) {
            guard_->check(row);
            if (guard_->sameRow && at_ >= 0 && row != at_)
                guard_->refuse(row);
        }
#endif
    }

    DNDS_HOST_DEVICE void checkElement([[maybe_unused]] index row, [[maybe_unused]] rowsize j) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr)
            guard_->checkElement(row, j, view_.rowSize(row));
#endif
    }

    View view_{};
    const RowGuard *guard_ = nullptr; // in every build: no layout depends on a macro
    index at_ = -1;
};

/// The row of an array that a kernel writes: the one that the task is at.
template <class View>
class WrittenRows : public Rows<View> {
  public:
    using Rows<View>::Rows;
    /// For code that runs kernels. Not for arrays without ghosts.
    bool isGhost(index row) const requires requires(const View &view) { view.isGhost(row); }
    { return this->view().isGhost(row); }
};

/// The rows of an array that a kernel adds to, and may not read: sums are complete only after the task.
///
/// Each row gets its contributions in ascending order of the rows that the task loops over, in any number of threads
/// and on the device: a thread that computes sums of some rows calls the kernel for all rows that contribute to these,
/// and drops contributions to other rows. So a kernel may run more than once for a row, and must write nothing
/// else.
template <class View>
class AddedRows {
  public:
    AddedRows() = default;
    /// Adds to all rows of `view`, unless narrowed. `guard` is as for Rows.
    DNDS_HOST_DEVICE AddedRows(View view, const RowGuard *guard) : view_(view), last_(view.size()), guard_(guard) {}

    /// Adds to element `j` of `row`.
    template <class T>
    DNDS_HOST_DEVICE void add(index row, rowsize j, const T &value) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (guard_ != nullptr) {
            guard_->check(row);
            guard_->checkElement(row, j, view_.rowSize(row));
        }
#endif
        if (row >= first_ && row < last_)
            view_(row, j) += value;
    }
    /// Adds to the only element of `row`.
    template <class T>
    DNDS_HOST_DEVICE void add(index row, const T &value) const {
        add(row, 0, value);
    }

    /// For code that runs kernels: leaves out rows outside [first, last).
    DNDS_HOST_DEVICE void narrow(index first, index last) {
        first_ = first;
        last_ = last;
    }

  private:
    View view_{};
    index first_ = 0;
    index last_ = 0;
    const RowGuard *guard_ = nullptr;
};

/// Fetches a row of a view with elements in rows of one width into the processor's caches, for a functor's `prefetch`:
/// see TaskBuilder::run. On the host.
template <class View>
void prefetchRow(const View &view, index row) {
    constexpr index cacheLine = 64;
    const auto *elements = view[row];
    const auto *bytes = reinterpret_cast<const std::byte *>(elements);
    const auto size = static_cast<index>(sizeof(*elements)) * view.rowSize(row);
    for (index offset = 0; offset < size; offset += cacheLine)
        __builtin_prefetch(bytes + offset);
    asm volatile(""); // an effect: GCC drops calls of functions that only prefetch
}

/// A kernel's argument for an array (a pair, or an array without ghosts) that its task reads, writes or adds to.
template <class TArray>
using ReadRows = Rows<decltype(std::declval<const TArray &>().template deviceView<DeviceBackend::Host>())>;
template <class TArray>
using WriteRows = WrittenRows<decltype(std::declval<TArray &>().template deviceView<DeviceBackend::Host>())>;
template <class TArray>
using AddRows = AddedRows<decltype(std::declval<TArray &>().template deviceView<DeviceBackend::Host>())>;

} // namespace DNDS::Task
