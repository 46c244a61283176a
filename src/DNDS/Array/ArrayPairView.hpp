/// @file ArrayPairView.hpp
/// @brief Owned rows and ghosts of a pair with one index, for kernels.
#pragma once

#include "DNDS/Array/GhostWatch.hpp"
#include "DNDS/Base/Types.hpp"

#include <type_traits>

namespace DNDS {

/// A trivially copyable view of father and son: rows [0, fatherSize()) are owned, rows [fatherSize(), size()) are
/// ghosts. `View` is the view type of the arrays. Choosing between the two is a conditional move if the row width is
/// fixed. On the host, with DNDS_DEBUG_CHECKS, access to ghosts that are not current throws: see GhostWatch.
template <class View>
class ArrayPairView {
  public:
    ArrayPairView() = default;
    /// Views of both arrays in one memory. Local, O(1), as all below.
    DNDS_HOST_DEVICE ArrayPairView(View father, View son) : father_(father), son_(son) {}
    /// The same; `ghosts` may be null, and only builds with DNDS_DEBUG_CHECKS read it.
    DNDS_HOST_DEVICE ArrayPairView(View father, View son, const GhostWatch::Access *ghosts)
        : father_(father), son_(son), ghosts_(ghosts) {}

    /// The number of rows, the number of owned ones, and the views of both parts.
    DNDS_HOST_DEVICE index size() const { return father_.size() + son_.size(); }
    DNDS_HOST_DEVICE index fatherSize() const { return father_.size(); }
    DNDS_HOST_DEVICE const View &father() const { return father_; }
    DNDS_HOST_DEVICE const View &son() const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (ghosts_ != nullptr)
            ghosts_->handOut();
#endif
        return son_;
    }

    /// The number of elements of row `i`.
    DNDS_HOST_DEVICE rowsize rowSize(index i) const {
        return isGhost(i) ? son_.rowSize(i - fatherSize()) : father_.rowSize(i);
    }
    /// Element `j` of row `i`, as the arrays' views return it.
    DNDS_HOST_DEVICE decltype(auto) operator()(index i, rowsize j) const {
        const bool ghost = isGhost(i);
        check(ghost);
        const View &part = ghost ? son_ : father_;
        return part(ghost ? i - fatherSize() : i, j);
    }
    DNDS_HOST_DEVICE decltype(auto) operator()(index i) const { return (*this)(i, 0); }
    /// Row `i`, as the arrays' views return it: a pointer, or an Eigen map.
    DNDS_HOST_DEVICE auto operator[](index i) const {
        const bool ghost = isGhost(i);
        check(ghost);
        const View &part = ghost ? son_ : father_;
        return part[ghost ? i - fatherSize() : i];
    }
    DNDS_HOST_DEVICE bool isGhost(index i) const { return i >= father_.size(); }

  private:
    // On the device views carry no checks: kernels cannot throw.
    DNDS_HOST_DEVICE void check([[maybe_unused]] bool ghost) const {
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        if (ghost && ghosts_ != nullptr)
            ghosts_->check();
#endif
    }

    View father_;
    View son_;
    const GhostWatch::Access *ghosts_ = nullptr; // in every build: no layout depends on a macro
};

} // namespace DNDS
