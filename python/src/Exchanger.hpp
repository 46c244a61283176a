/// @file Exchanger.hpp
/// @brief Pulls and pushes of one field or of several together, made on first use and kept.
#pragma once

#include "Arguments.hpp"
#include "FlightCounts.hpp"

#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace DNDS::Python {

/// The words for operations of pushes.
inline constexpr Words<PushOp, 4> pushOps{
    {{"replace", PushOp::Replace}, {"sum", PushOp::Sum}, {"min", PushOp::Min}, {"max", PushOp::Max}}};

/// The operation of a push.
struct PushMode {
    PushOp op = PushOp::Replace;
    GhostsAfterPush ghosts = GhostsAfterPush::Keep;
};

/// The exchanges of some arrays on one pattern.
class Exchanger {
  public:
    struct Member {
        ExchangeMember rows;
        std::shared_ptr<FlightCounts> flight;
    };

    void reset(std::shared_ptr<const ExchangePattern> pattern, std::vector<Member> members);
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_; }
    std::size_t size() const noexcept { return members_.size(); }

    /// Collective for the first pull; Local afterwards.
    void preparePull();
    /// Makes the pull again. Collective; `transport` is the name of a kind.
    void preparePullBy(std::string_view transport);
    /// Throws StateError, also in the waits of peers, while another exchange of a member is in flight.
    void startPull();
    void waitPull();
    /// Of "replace", "sum", "min", "max" and of "keep", "zero"; throws ArgumentError that lists them. Collective before
    /// the first push, so that a wrong word throws on all ranks; Local afterwards.
    PushMode pushModeOf(std::string_view op, std::string_view ghosts) const;
    /// Collective for the first such push; Local afterwards. Throws as `startPull`.
    void startPush(PushMode mode);
    void waitPush(PushMode mode);
    bool pullInFlight() const noexcept { return pull_.inFlight(); }

    const Exchange &pullExchange();

  private:
    struct Push : PersistentExchange {
        Push() : PersistentExchange(Direction::Push) {}
    };

    void start(const PersistentExchange &exchange);
    /// Waits, unless it is in flight no more.
    void waitFor(const PersistentExchange &exchange);
    /// Collective.
    void init(PersistentExchange &exchange, Direction direction, TransportKind transport, PushMode mode = {}) const;
    PersistentExchange &pushOf(PushMode mode) {
        return pushes_.at(static_cast<std::size_t>(mode.op)).at(static_cast<std::size_t>(mode.ghosts));
    }
    void requirePattern() const;
    std::string_view name() const noexcept {
        return members_.empty() ? std::string_view("an empty group") : std::string_view(members_.front().rows.name);
    }

    std::shared_ptr<const ExchangePattern> pattern_;
    std::vector<Member> members_;
    PersistentExchange pull_{Direction::Pull};
    std::array<std::array<Push, 2>, 4> pushes_; ///< one for each PushOp and GhostsAfterPush
};

/// An exchange in flight as a context manager: leaving the block waits for it.
class Pending {
  public:
    /// A pull, or a push.
    Pending(Exchanger &exchanger, const PushMode *push)
        : exchanger_(&exchanger), push_(push != nullptr ? *push : PushMode{}), isPull_(push == nullptr) {}

    /// Waits, once.
    void wait();
    bool done() const noexcept { return done_; }

  private:
    Exchanger *exchanger_; ///< kept alive by the Python object of the field
    PushMode push_;
    bool isPull_;
    bool done_ = false;
};

void bindPending(nanobind::module_ &module);

} // namespace DNDS::Python
