/// @file FarView.hpp
/// @brief What kernels reach other ranks by where loads and stores do not: one class, chosen when they are compiled.
#pragma once

#include "DNDS/OneSided/NvshmemView.hpp"
#include "DNDS/OneSided/ProxyView.hpp"

#include <concepts>

namespace DNDS {

/// The operations that views of heaps and windows need of it, each by rank and offset in bytes; false where one was not
/// carried out. `ProxyView` says what each promises.
template <class View>
concept ReachesFarRanks = std::is_trivially_copyable_v<View> &&
    requires(const View &view, const std::byte *from, std::byte *to, const AtomicRequest &request,
             std::uint64_t &bits) {
    {static_cast<bool>(view)};
    { view.put(0, std::uint64_t{}, from, std::uint64_t{}, Lane{}) } -> std::same_as<bool>;
    { view.get(0, std::uint64_t{}, to, std::uint64_t{}, Lane{}) } -> std::same_as<bool>;
    { view.fetchAtomic(0, std::uint64_t{}, request, bits) } -> std::same_as<bool>;
    { view.atomic(0, std::uint64_t{}, request) } -> std::same_as<bool>;
    { view.signal(0, std::uint64_t{}, std::uint64_t{}, true) } -> std::same_as<bool>;
    { view.fence() } -> std::same_as<bool>;
    { view.quiet() } -> std::same_as<bool>;
};

/// The proxy; NVSHMEM in sources that are compiled with DNDS_NVSHMEM.
#if defined(DNDS_NVSHMEM)
using FarView = NvshmemView;
#else
using FarView = ProxyView;
#endif

static_assert(ReachesFarRanks<ProxyView> && ReachesFarRanks<NvshmemView>);

} // namespace DNDS
