/// @file Exchanger.hpp
/// @brief Pulls and pushes of one field or of several together, made when they are first used and kept.
#pragma once

#include "Flight.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace DNDS::Python {

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

    /// Collective where there is no pull yet; Local afterwards.
    void preparePull();
    /// Makes the pull anew. Collective; `transport` is a name of the kinds.
    void preparePullBy(std::string_view transport);
    /// Throws StateError, also in the waits of peers, while another exchange of a member is in flight.
    void startPull();
    void waitPull();
    /// "replace", "sum", "min", "max"; throws ArgumentError that lists them. Collective before the first push, so that
    /// a wrong word throws on all ranks; Local afterwards.
    PushOp pushOpOf(std::string_view word) const;
    /// Collective where there is no push with this operation yet; Local afterwards. Throws as `startPull`.
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
