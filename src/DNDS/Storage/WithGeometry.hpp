/// @file WithGeometry.hpp
/// @brief A member and a geometry, laid out alike by host and device compilers.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <type_traits>

namespace DNDS {

/// `Member` followed by `Geometry`, which takes no memory where it is empty. For views that kernels take by value.
///
/// It replaces `[[no_unique_address]]`: nvcc lays out a class with such an empty member larger in device code than on
/// the host, so that kernels read everything after it at wrong offsets. scripts/compile-cuda.sh compares the layouts.
template <class Member, class Geometry, bool isEmpty = std::is_empty_v<Geometry>>
class WithGeometry {
  public:
    WithGeometry() = default;
    DNDS_HOST_DEVICE constexpr WithGeometry(const Member &member, const Geometry &geometry)
        : member_(member), geometry_(geometry) {} ///< Takes both.

    DNDS_HOST_DEVICE constexpr const Member &member() const { return member_; } ///< The first.
    DNDS_HOST_DEVICE constexpr Geometry geometry() const { return geometry_; }  ///< The second.

  private:
    Member member_{};
    Geometry geometry_{};
};

template <class Member, class Geometry>
class WithGeometry<Member, Geometry, true> {
  public:
    WithGeometry() = default;
    DNDS_HOST_DEVICE constexpr WithGeometry(const Member &member, const Geometry &) : member_(member) {} ///< Both.

    DNDS_HOST_DEVICE constexpr const Member &member() const { return member_; } ///< The first.
    DNDS_HOST_DEVICE constexpr Geometry geometry() const { return {}; }         ///< The second.

  private:
    Member member_{};
};

} // namespace DNDS
