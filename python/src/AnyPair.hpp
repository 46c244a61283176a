/// @file AnyPair.hpp
/// @brief Pairs whose element type and layout are chosen at run time.
#pragma once

#include "AnyArray.hpp"

#include "DNDS/Array/ArrayDof.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace DNDS::Python {

/// Fields of double precision with one width: those with the operations of iterative solvers.
using Dof = ArrayDof<DynamicSize, 1>;

/// An ArrayPair of any type, as Field uses it. Collective and Local as the functions of ArrayTransformer.
class AnyPair {
  public:
    AnyPair() = default;
    AnyPair(const AnyPair &) = delete;
    AnyPair &operator=(const AnyPair &) = delete;
    virtual ~AnyPair() = default;

    virtual std::shared_ptr<ArrayBase> father() const = 0;
    virtual std::shared_ptr<ArrayBase> son() const = 0;
    virtual void attach() = 0;
    virtual const GlobalMapping &numberRows() = 0;
    virtual void pullRows(std::span<const index> globalRows) = 0;
    virtual void usePattern(std::shared_ptr<const ExchangePattern> pattern) = 0;
    virtual void sizeSon() = 0;
    virtual const std::shared_ptr<const ExchangePattern> &pattern() const = 0;
    virtual ExchangeMember member() const = 0;
    /// Swaps the contents of two pairs of one type and mapping.
    virtual void swapData(AnyPair &other) = 0;
    /// This pair as a vector, or null.
    virtual Dof *dof() { return nullptr; }
};

template <class Pair>
class AnyPairOf final : public AnyPair {
  public:
    template <class... Arguments>
    explicit AnyPairOf(const std::string &name, const Arguments &...arguments) {
        pair_.initPair(name, arguments...);
    }
    void attach() override { pair_.transAttach(); }

    std::shared_ptr<ArrayBase> father() const override { return pair_.father; }
    std::shared_ptr<ArrayBase> son() const override { return pair_.son; }
    const GlobalMapping &numberRows() override {
        pair_.trans.createFatherGlobalMapping();
        return *pair_.father->globalMapping();
    }
    void pullRows(std::span<const index> globalRows) override { pair_.trans.createGhostMapping(globalRows); }
    void usePattern(std::shared_ptr<const ExchangePattern> pattern) override {
        pair_.trans.usePattern(std::move(pattern));
    }
    void sizeSon() override { pair_.trans.createMPITypes(); }
    const std::shared_ptr<const ExchangePattern> &pattern() const override { return pair_.trans.pattern(); }
    ExchangeMember member() const override { return pair_.trans.member(); }
    void swapData(AnyPair &other) override {
        auto *same = dynamic_cast<AnyPairOf *>(&other);
        DNDS_CHECK(same != nullptr, LayoutError, "'{}' and '{}' cannot be swapped: their types or layouts differ",
                   father()->label(), other.father()->label());
        pair_.swapData(same->pair_);
    }
    Dof *dof() override {
        if constexpr (std::is_same_v<Pair, Dof>)
            return &pair_;
        return nullptr;
    }

  private:
    Pair pair_;
};

/// A pair without rows, not yet attached; `width` is for fixed rows. Local.
std::unique_ptr<AnyPair> makePair(const std::string &name, CommunicatorView comm, ElementKind kind, RowKind rows,
                                  rowsize width);

} // namespace DNDS::Python
