#include "Exchanger.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr Words<GhostsAfterPush, 2> ghostsAfterPush{{{"keep", GhostsAfterPush::Keep}, {"zero", GhostsAfterPush::Zero}}};

/// A member that refuses while it is in flight in another exchange. Exchanges ask for its rows at each start and tell
/// their peers if that fails.
ExchangeMember notInFlight(const Exchanger::Member &member, Direction direction) {
    ExchangeMember rows = member.rows;
    rows.father = [flight = member.flight, name = rows.name, father = rows.father,
                   direction](MemorySpace space, Access access, RowLayout &into) {
        flight->requireLanded(name, direction == Direction::Pull ? "be pulled" : "be pushed");
        father(space, access, into);
    };
    return rows;
}

} // namespace

void Exchanger::reset(std::shared_ptr<const ExchangePattern> pattern, std::vector<Member> members) {
    pattern_ = std::move(pattern);
    members_ = std::move(members);
    pull_ = PersistentExchange(Direction::Pull);
    pushes_ = {};
}

void Exchanger::requirePattern() const {
    DNDS_CHECK(pattern_ != nullptr, StateError, "'{}' has no ghosts yet: call set_ghosts or share_ghosts first",
               name());
}

void Exchanger::init(PersistentExchange &exchange, Direction direction, TransportKind transport, PushMode mode) const {
    requirePattern();
    const auto request = [&] {
        ExchangeRequest all{pattern_, {}};
        for (const Member &member : members_)
            all.members.push_back(notInFlight(member, direction));
        return all;
    };
    exchange.init(pattern_->context(), name(), std::ref(request), {.transport = transport, .ghosts = mode.ghosts},
                  mode.op);
}

void Exchanger::preparePull() {
    if (!pull_.made())
        init(pull_, Direction::Pull, TransportKind::Auto);
}

void Exchanger::preparePullBy(std::string_view transport) {
    requirePattern();
    TransportKind kind{};
    pattern_->context().comm().guarded([&] {
        kind = transportFromName(transport);
        DNDS_CHECK(!pullInFlight(), StateError, "a pull is in flight: wait for it first");
    });
    pull_.clear(name());
    init(pull_, Direction::Pull, kind);
}

void Exchanger::startPull() {
    preparePull();
    start(pull_);
}

void Exchanger::start(const PersistentExchange &exchange) {
    const std::shared_ptr<Exchange> &bound = exchange.get(name());
    bound->start();
    for (const Member &member : members_)
        member.flight->begin(bound);
}

void Exchanger::waitFor(const PersistentExchange &exchange) {
    const std::shared_ptr<Exchange> &bound = exchange.get(name());
    if (!bound->inFlight()) // `recover` has given it up
        return;
    for (const Member &member : members_) // before: arrays in flight do not describe themselves to exchanges
        member.flight->end(bound);
    try {
        bound->wait();
    } catch (const Error &) { // without its communicator it stays in flight; otherwise it has ended
        for (const Member &member : members_)
            member.flight->begin(bound);
        throw;
    }
}

void Exchanger::waitPull() {
    DNDS_CHECK(pull_.made(), StateError, "no pull of '{}' was started: call start_pull first", name());
    waitFor(pull_);
}

PushMode Exchanger::pushModeOf(std::string_view op, std::string_view ghosts) const {
    const auto mode = [&] {
        return PushMode{chosen(op, "push operation", pushOps),
                        chosen(ghosts, "choice for ghosts after a push", ghostsAfterPush)};
    };
    const auto made = [](const auto &push) { return push.made(); };
    if (pattern_ == nullptr ||
        std::ranges::any_of(pushes_, [&](const auto &ofOp) { return std::ranges::any_of(ofOp, made); }))
        return mode();
    PushMode first;
    pattern_->context().comm().guarded([&] { first = mode(); });
    return first;
}

void Exchanger::startPush(PushMode mode) {
    auto &push = pushOf(mode);
    if (!push.made())
        init(push, Direction::Push, TransportKind::Auto, mode);
    start(push);
}

void Exchanger::waitPush(PushMode mode) {
    auto &push = pushOf(mode);
    DNDS_CHECK(push.made(), StateError, "no push of '{}' was started: call start_push first", name());
    waitFor(push);
}

const Exchange &Exchanger::pullExchange() {
    preparePull();
    return *pull_.get(name());
}

void Pending::wait() {
    if (std::exchange(done_, true))
        return;
    if (isPull_)
        exchanger_->waitPull();
    else
        exchanger_->waitPush(push_);
}

void bindPending(nb::module_ &module) {
    using Release = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<Pending>(module, "Pending", R"(A pull or push in flight, from `start_pull` or `start_push`.

    with u.start_pull():
        ...             # compute without ghosts
    ...                 # ghosts are current

The end of the block waits, also for an exception, so that no other rank is left waiting.)")
        .def("wait", &Pending::wait, Release(), "Completes the exchange; does nothing the second time. Local.")
        .def_prop_ro("done", &Pending::done, "Whether it was waited for.")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Pending"))
        .def(
            "__exit__",
            [](Pending &self, nb::handle, nb::handle, nb::handle) {
                const nb::gil_scoped_release others;
                self.wait();
            },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none(),
            nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> None"));
}

} // namespace DNDS::Python
