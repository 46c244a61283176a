/// @file FieldCase.hpp
/// @brief Pairs of every layout and element type with one interface, filled with contents that each rank can compute.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Index/PullLists.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Storage/ArrayCases.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace DNDS::test {

/// Mixes numbers into 64 random-looking bits.
inline std::uint64_t mix(std::initializer_list<std::uint64_t> numbers) {
    std::uint64_t x = 0x9e3779b97f4a7c15ULL;
    for (const std::uint64_t number : numbers) {
        x = (x ^ number) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 29)) * 0x94d049bb133111ebULL;
        x ^= x >> 32;
    }
    return x;
}

/// An element from random bits. Floating-point numbers have full mantissas and differ in size, so that sums depend on
/// order.
template <class T>
T elementFrom(std::uint64_t bits) {
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(
            std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits)), static_cast<int>(bits % 40) - 80));
    else if constexpr (std::is_integral_v<T>)
        return static_cast<T>(bits);
    else if constexpr (std::is_same_v<T, Particle>)
        return {elementFrom<real>(bits), static_cast<std::int32_t>(bits >> 7), static_cast<std::int32_t>(bits >> 33)};
    else
        return {elementFrom<float>(bits), elementFrom<float>(mix({bits})), elementFrom<float>(mix({bits, 1}))};
}

/// Result of `op` applied to the owner's element and a pushed one.
template <class T>
T combineElements(const T &mine, const T &pushed, PushOp op) {
    if (op == PushOp::Replace)
        return pushed;
    if constexpr (std::is_arithmetic_v<T>) {
        if (op == PushOp::Min)
            return pushed < mine ? pushed : mine;
        if (op == PushOp::Max)
            return mine < pushed ? pushed : mine;
        if constexpr (std::is_floating_point_v<T>)
            return mine + pushed;
        else
            return static_cast<T>(static_cast<std::uint64_t>(mine) + static_cast<std::uint64_t>(pushed));
    } else if constexpr (std::is_same_v<T, Particle>) {
        return mine; // operations on structs are refused
    } else {
        T result = mine;
        for (std::size_t k = 0; k < result.size(); ++k)
            result[k] = combineElements(mine[k], pushed[k], op);
        return result;
    }
}

/// A father and a son of some type on some mapping. Versions choose contents: another version, other elements. Sizes of
/// padded rows change with the version, too; those of CSR rows belong to the row for good.
class FieldCase {
  public:
    FieldCase() = default;
    FieldCase(const FieldCase &) = delete;
    FieldCase &operator=(const FieldCase &) = delete;
    virtual ~FieldCase() = default;

    virtual std::string name() const = 0;
    /// Whether elements can be added and compared.
    virtual bool arithmetic() const = 0;

    /// Makes arrays, mapping and son, on the device if the case was made for it; what writes and looks goes by way of
    /// the host then. Collective.
    virtual void create(const PullLists &pullLists) = 0;
    /// The same on the mapping of another case. Collective.
    virtual void borrow(const FieldCase &primary) = 0;

    virtual void fillFather(std::uint64_t version) = 0;
    /// Gives every ghost values of this rank's own; its size is that of the owner's row of that version.
    virtual void fillSon(std::uint64_t version) = 0;
    virtual void clearSon() = 0;
    /// Fails the test unless ghosts equal their owners' rows of that version.
    virtual void expectSon(std::uint64_t version) = 0;
    /// Fails the test unless owned rows are those of `fatherVersion` after all ranks' sons of `sonVersion` were pushed.
    virtual void expectFather(std::uint64_t fatherVersion, std::uint64_t sonVersion, PushOp op) = 0;

    virtual void initPull(TransportKind kind) = 0;
    virtual void initPush(PushOp op, TransportKind kind) = 0;
    virtual void pullOnce(TransportKind kind) = 0;
    virtual void pushOnce(PushOp op, TransportKind kind) = 0;
    /// Start, wait, clear.
    virtual ArrayTransformerBase &trans() = 0;
    virtual void addTo(ExchangeGroup &group) const = 0;
    virtual std::size_t pullBytes() const = 0;

    const PullLists &pullLists() const { return wishes_; }
    void liveOnDevice() { onDevice_ = true; }

  protected:
    PullLists wishes_;
    bool onDevice_ = false;
};

using FieldCases = std::vector<std::unique_ptr<FieldCase>>;

/// One case of each layout and element type that the tests know. Their arrays are not created yet.
FieldCases allFieldCases(bool onDevice = false);

/// The transports that can be forced here. Collective.
std::vector<TransportKind> allTransports();

/// Calls `body(options)` once for each of them.
template <class Body>
void forEachTransport(Body &&body) {
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        body(ExchangeOptions{.transport = kind});
    }
}

/// The pull lists on which everything is tried: random ones, and those with empty ranks, lonely ranks and own rows.
std::vector<PullLists> allPullLists();

} // namespace DNDS::test
