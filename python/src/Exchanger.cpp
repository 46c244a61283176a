#include "Exchanger.hpp"

#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

PushOp pushOpOf(std::string_view word) {
    constexpr std::array<std::pair<std::string_view, PushOp>, 4> words{
        {{"replace", PushOp::Replace}, {"sum", PushOp::Sum}, {"min", PushOp::Min}, {"max", PushOp::Max}}};
    for (const auto &[name, op] : words)
        if (name == word)
            return op;
    throw ArgumentError(fmt::format("there is no push operation '{}': it is replace, sum, min or max", word));
}

void Exchanger::reset(std::shared_ptr<const ExchangePattern> pattern, std::vector<Member> members) {
    pattern_ = std::move(pattern);
    members_ = std::move(members);
    pull_.reset();
    for (auto &push : pushes_)
        push.reset();
}

void Exchanger::requirePattern() const {
    DNDS_CHECK(pattern_ != nullptr, StateError, "'{}' has no ghosts yet: call set_ghosts or share_ghosts first",
               members_.empty() ? "an empty group" : members_.front().rows.name);
}

std::unique_ptr<Exchange> Exchanger::make(Direction direction, TransportKind transport, PushOp op) const {
    requirePattern();
    std::vector<ExchangeMember> rows;
    for (const Member &member : members_)
        rows.push_back(member.rows);
    return std::make_unique<Exchange>(pattern_, direction, std::move(rows), ExchangeOptions{transport}, op);
}

void Exchanger::preparePull(TransportKind transport, bool again) {
    if (pull_ && !again)
        return;
    DNDS_CHECK(!pull_ || !pull_->inFlight(), StateError, "a pull is in flight: wait for it first");
    pull_.reset();
    pull_ = make(Direction::Pull, transport, PushOp::Replace);
}

void Exchanger::startPull() {
    preparePull(TransportKind::Auto, false);
    pull_->start();
    for (const Member &member : members_)
        member.flight->pulls++;
}

void Exchanger::waitPull() {
    DNDS_CHECK(pull_ != nullptr, StateError, "no pull was started");
    // Whatever comes of it, it is over.
    if (pull_->inFlight())
        for (const Member &member : members_)
            member.flight->pulls--;
    pull_->wait();
}

void Exchanger::startPush(PushOp op) {
    auto &push = pushes_.at(static_cast<std::size_t>(op));
    if (!push)
        push = make(Direction::Push, TransportKind::Auto, op);
    push->start();
    for (const Member &member : members_)
        member.flight->pushes++;
}

void Exchanger::waitPush(PushOp op) {
    auto &push = pushes_.at(static_cast<std::size_t>(op));
    DNDS_CHECK(push != nullptr, StateError, "no push was started");
    if (push->inFlight())
        for (const Member &member : members_)
            member.flight->pushes--;
    push->wait();
}

const Exchange &Exchanger::pullExchange() {
    preparePull(TransportKind::Auto, false);
    return *pull_;
}

void Pending::wait() {
    if (std::exchange(done_, true))
        return;
    if (isPull_)
        exchanger_->waitPull();
    else
        exchanger_->waitPush(op_);
}

void bindPending(nb::module_ &module) {
    using Release = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<Pending>(module, "Pending", R"(A pull or push on its way, from `start_pull` or `start_push`.

    with u.start_pull():
        ...             # compute what needs no ghosts
    ...                 # the ghosts are there

The end of the block waits, also where an exception leaves it, so that no other rank is left waiting.)")
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
