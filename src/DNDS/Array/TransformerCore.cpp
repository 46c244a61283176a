#include "DNDS/Array/TransformerCore.hpp"

#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/RequireSame.hpp"

#include <cxxabi.h>

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
    DNDS_CHECK(isSameOnAll(comm, type.hash_code()), LayoutError,
               "'{}' is of type {} on rank {} and of another type on some rank: ranks must give arrays of one type",
               father.label(), readable(type), comm.rank());
}

const std::shared_ptr<const GhostMapping> &TransformerCore::ghostMapping() const noexcept {
    static const std::shared_ptr<const GhostMapping> none;
    return pattern_ ? pattern_->mapping() : none;
}

void TransformerCore::begin(std::shared_ptr<const ExchangePattern *> current) {
    if (current_)
        *current_ = nullptr;
    forget();
    pattern_ = nullptr;
    current_ = std::move(current);
}

void TransformerCore::setMapping(std::shared_ptr<const GhostMapping> mapping) {
    setPattern(std::make_shared<const ExchangePattern>(std::move(mapping)));
}

void TransformerCore::setPattern(std::shared_ptr<const ExchangePattern> pattern) {
    pattern_ = std::move(pattern);
    *current_ = pattern_.get();
}

std::function<const ExchangePattern *()> TransformerCore::currentPattern() const {
    return [current = current_] { return *current; };
}

std::shared_ptr<CommunicatorContext> TransformerCore::contextFor(const CommunicatorView &comm) const {
    return pattern_ ? pattern_->sharedContext() : CommunicatorContext::of(comm);
}

void TransformerCore::requireMapping(const char *what) const {
    DNDS_CHECK(pattern_ != nullptr, StateError,
               "{} of '{}' needs a ghost mapping: call createGhostMapping or borrowGGIndexing first", what,
               exchanged());
}

HostMemoryResource TransformerCore::sonMemory() const {
    const CommunicatorContext &context = pattern_->context();
    for (const int owner : pattern_->owners().ranks)
        if (owner != context.comm().rank() && context.node().sameNode(owner))
            return context.node().arena;
    return nullptr;
}

std::vector<rowsize> TransformerCore::pullRowSizes(std::vector<rowsize> fatherSizes) const {
    std::vector<rowsize> sonSizes;
    const auto describe = [](std::vector<rowsize> &sizes, RowLayout &layout) { // on the host in any case
        layout.rows = static_cast<index>(sizes.size());
        layout.partCount = 1;
        layout.parts[0].base = reinterpret_cast<std::byte *>(sizes.data());
        layout.parts[0].stride = sizeof(rowsize);
        layout.parts[0].elementBytes = sizeof(rowsize);
        layout.parts[0].kind = ElementKind::Int32;
    };
    const auto request = [&] {
        sonSizes.resize(static_cast<std::size_t>(pattern_->sonSize()));
        return ExchangeRequest{
            pattern_,
            {ExchangeMember{"row sizes", [&](auto, auto, RowLayout &into) { describe(fatherSizes, into); },
                            [&](auto, auto, RowLayout &into) { describe(sonSizes, into); }, nullptr, nullptr,
                            nullptr}}};
    };
    once(pattern_->context(), Direction::Pull, std::ref(request), {.space = ExchangeSpace::Host}, PushOp::Replace,
         nullptr);
    return sonSizes;
}

void TransformerCore::pullRowShapes(const std::function<ExchangeMember()> &describe) const {
    using Describe = std::function<void(MemorySpace, Access, RowLayout &)>;
    const auto lastPart = [](Describe all) {
        return [all = std::move(all)](MemorySpace space, Access access, RowLayout &layout) {
            layout = {}; // arrays describe themselves over what they said before, which stood in another place
            all(space, access, layout);
            std::swap(layout.parts.front(), layout.parts.at(static_cast<std::size_t>(layout.partCount - 1)));
            layout.partCount = 1;
        };
    };
    const auto request = [&] {
        ExchangeMember member = describe();
        member.father = lastPart(std::move(member.father));
        member.son = lastPart(std::move(member.son));
        member.onDevice = nullptr;
        member.pulled = nullptr; // shapes alone are no contents
        return ExchangeRequest{pattern_, {std::move(member)}};
    };
    once(pattern_->context(), Direction::Pull, std::ref(request), {.space = ExchangeSpace::Host}, PushOp::Replace,
         nullptr);
}

} // namespace DNDS
