#include "DNDS/Array/TransformerCore.hpp"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <utility>

namespace DNDS {

namespace {

std::string readable(const std::type_info &type) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                           std::free);
    return status == 0 ? std::string(name.get()) : std::string(type.name());
}

} // namespace

void TransformerCore::requireOneType(const ArrayBase &father, const std::type_info &fatherType, const ArrayBase &son,
                                     const std::type_info &sonType) {
    DNDS_CHECK(fatherType == sonType, LayoutError,
               "the father '{}' is of type {}, its son '{}' of type {}: make both of one type", father.label(),
               readable(fatherType), son.label(), readable(sonType));
}

void TransformerCore::agreeOnType(const CommunicatorView &comm, const ArrayBase &father, const std::type_info &type) {
    const auto hash = static_cast<index>(type.hash_code());
    std::array<index, 2> extremes{hash, ~hash};
    comm.allReduce(extremes.data(), 2, MPI_MAX);
    DNDS_CHECK(extremes[0] == ~extremes[1], LayoutError,
               "'{}' is of type {} on rank {} and of another type on some rank: ranks must give arrays of one type",
               father.label(), readable(type), comm.rank());
}

void TransformerCore::setMapping(std::shared_ptr<const GhostMapping> mapping) {
    pattern_ = std::make_shared<const ExchangePattern>(mapping);
    mapping_ = std::move(mapping);
}

void TransformerCore::setPattern(std::shared_ptr<const ExchangePattern> pattern) {
    mapping_ = pattern->mapping();
    pattern_ = std::move(pattern);
}

void TransformerCore::sharePattern(const TransformerCore &other) {
    pattern_ = other.pattern_;
    mapping_ = other.mapping_;
}

void TransformerCore::requireMapping(const char *what) const {
    DNDS_CHECK(pattern_ != nullptr, StateError,
               "{} needs a ghost mapping: call createGhostMapping or borrowGGIndexing first", what);
}

void TransformerCore::initPull(ExchangeMember member, const ExchangeOptions &options) {
    if (pull_)
        clear(pull_, "Pull");
    pull_ =
        std::make_unique<Exchange>(pattern_, Direction::Pull, std::vector<ExchangeMember>{std::move(member)}, options);
}

void TransformerCore::initPush(ExchangeMember member, const ExchangeOptions &options, PushOp op) {
    if (push_)
        clear(push_, "Push");
    push_ = std::make_unique<Exchange>(pattern_, Direction::Push, std::vector<ExchangeMember>{std::move(member)},
                                       options, op);
}

Exchange &TransformerCore::bound(const std::unique_ptr<Exchange> &exchange, const char *kind) {
    DNDS_CHECK(exchange != nullptr, StateError, "there is no persistent {0}: call initPersistent{0} first", kind);
    return *exchange;
}

Exchange &TransformerCore::current(const std::unique_ptr<Exchange> &exchange, const char *kind) const {
    Exchange &found = bound(exchange, kind);
    DNDS_CHECK(
        found.pattern() == pattern_, StateError,
        "the ghost mapping was replaced since initPersistent{0}: call createMPITypes and initPersistent{0} again",
        kind);
    return found;
}

void TransformerCore::clear(std::unique_ptr<Exchange> &exchange, const char *kind) {
    DNDS_CHECK(!exchange || !exchange->inFlight(), StateError,
               "the persistent {0} is in flight: call waitPersistent{0} before clearing or initialising it", kind);
    exchange.reset();
}

HostMemoryResource TransformerCore::sonMemory() const {
    const CommunicatorContext &context = pattern_->context();
    for (const int owner : pattern_->owners().ranks)
        if (owner != context.comm().rank() && context.node().sameNode(owner))
            return context.node().arena;
    return nullptr;
}

std::vector<rowsize> TransformerCore::pullRowSizes(std::vector<rowsize> fatherSizes) const {
    std::vector<rowsize> sonSizes(static_cast<std::size_t>(pattern_->sonSize()));
    const auto describe = [](std::vector<rowsize> &sizes, RowLayout &layout) { // on the host in any case
        layout.rows = static_cast<index>(sizes.size());
        layout.partCount = 1;
        layout.parts[0].base = reinterpret_cast<std::byte *>(sizes.data());
        layout.parts[0].stride = sizeof(rowsize);
        layout.parts[0].elementBytes = sizeof(rowsize);
        layout.parts[0].kind = ElementKind::Int32;
    };
    Exchange exchange(
        pattern_, Direction::Pull,
        {ExchangeMember{"row sizes", [&](auto, auto, RowLayout &into) { describe(fatherSizes, into); },
                        [&](auto, auto, RowLayout &into) { describe(sonSizes, into); }, nullptr, nullptr}},
        {.space = ExchangeSpace::Host});
    exchange.start();
    exchange.wait();
    return sonSizes;
}

void TransformerCore::pullRowShapes(const ExchangeMember &member) const {
    using Describe = std::function<void(MemorySpace, Access, RowLayout &)>;
    const auto lastPart = [](const Describe &all) {
        return [&all](MemorySpace space, Access access, RowLayout &layout) {
            all(space, access, layout);
            std::swap(layout.parts.front(), layout.parts.at(static_cast<std::size_t>(layout.partCount - 1)));
            layout.partCount = 1;
        };
    };
    Exchange exchange(
        pattern_, Direction::Pull,
        {ExchangeMember{member.name, lastPart(member.father), lastPart(member.son), member.rehostSon, nullptr}},
        {.space = ExchangeSpace::Host});
    exchange.start();
    exchange.wait();
}

} // namespace DNDS
