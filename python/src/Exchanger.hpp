/// @file Exchanger.hpp
/// @brief Pulls and pushes of one field or of several together, made when they are first used and kept.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace DNDS::Python {

/// Exchanges of a field that are in flight, so that its arrays are not handed out meanwhile.
struct Flight {
    int pulls = 0;
    int pushes = 0;
};

/// The exchanges of some arrays on one pattern.
class Exchanger {
  public:
    struct Member {
        ExchangeMember rows;
        std::shared_ptr<Flight> flight;
    };

    void reset(std::shared_ptr<const ExchangePattern> pattern, std::vector<Member> members);
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    std::size_t size() const noexcept { return members_.size(); }

    /// Collective where there is no pull yet, or `again`; Local afterwards.
    void preparePull(TransportKind transport, bool again);
    void startPull();
    void waitPull();
    /// Collective where there is no push with this operation yet; Local afterwards.
    void startPush(PushOp op);
    void waitPush(PushOp op);
    bool pullInFlight() const noexcept { return pull_ && pull_->inFlight(); }

    const Exchange &pullExchange();

  private:
    std::unique_ptr<Exchange> make(Direction direction, TransportKind transport, PushOp op) const;
    void requirePattern() const;

    std::shared_ptr<const ExchangePattern> pattern_;
    std::vector<Member> members_;
    std::unique_ptr<Exchange> pull_;
    std::array<std::unique_ptr<Exchange>, 4> pushes_; ///< one for each PushOp
};

/// "replace", "sum", "min", "max". Throws ArgumentError that lists them.
PushOp pushOpOf(std::string_view word);

/// An exchange in flight as a context manager: leaving the block waits for it.
class Pending {
  public:
    /// A pull, or a push with an operation.
    Pending(Exchanger &exchanger, const PushOp *op)
        : exchanger_(&exchanger), op_(op != nullptr ? *op : PushOp::Replace), isPull_(op == nullptr) {}

    /// Waits, once.
    void wait();
    bool done() const noexcept { return done_; }

  private:
    Exchanger *exchanger_; ///< the Python object of the field is kept as long as this one
    PushOp op_;
    bool isPull_;
    bool done_ = false;
};

void bindPending(nanobind::module_ &module);

} // namespace DNDS::Python
