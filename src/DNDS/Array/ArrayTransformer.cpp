#include "DNDS/Array/ArrayTransformer.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <typeinfo>
#include <utility>

namespace DNDS {

namespace {

// The name of a type as in source text, for messages.
std::string readable(const std::type_info &type) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                           std::free);
    return status == 0 ? std::string(name.get()) : std::string(type.name());
}

const std::type_info &typeOf(const ParRows &rows) { return typeid(rows); }

} // namespace

// Null pointers are agreed on by the communicator of whichever array exists. Types are compared with other ranks,
// too, since rows of other types have other sizes.
// Collective: one agreement and one reduction. Everything that may throw comes before the first assignment.
void ArrayTransformerBase::setFatherSon(const std::shared_ptr<ParRows> &father, const std::shared_ptr<ParRows> &son,
                                        bool reports) {
    DNDS_CHECK(father != nullptr || son != nullptr, ArgumentError, "father and son are null: create the arrays first");
    std::shared_ptr<const ExchangePattern *> current;
    std::shared_ptr<GhostWatch> watch = watch_;
    (father ? father : son)->comm().guarded([&] {
        DNDS_CHECK(father != nullptr, ArgumentError, "the father of '{}' is null", son->localRows().label());
        DNDS_CHECK(son != nullptr, ArgumentError, "the son of '{}' is null", father->localRows().label());
        const ArrayBase &owned = father->localRows();
        const ArrayBase &ghosts = son->localRows();
        DNDS_CHECK(father != son, ArgumentError, "'{}' cannot be father and son at once", owned.label());
        const std::type_info &type = typeOf(*father), &typeOfSon = typeOf(*son);
        DNDS_CHECK(type == typeOfSon, LayoutError,
                   "the father '{}' is of type {}, its son '{}' of type {}: make both of one type", owned.label(),
                   readable(type), ghosts.label(), readable(typeOfSon));
        current = std::make_shared<const ExchangePattern *>(nullptr);
        if (!watch || !watch->watches(&owned, &ghosts))
            watch = std::make_shared<GhostWatch>(owned, ghosts);
    });
    const std::type_info &type = typeOf(*father);
    // Hashes of types agree on all ranks of one program.
    DNDS_CHECK(isSameOnAll(father->comm(), type.hash_code()), LayoutError,
               "'{}' is of type {} on rank {} and of another type on some rank: ranks must give arrays of one type",
               father->localRows().label(), readable(type), father->comm().rank());
    if (current_)
        *current_ = nullptr; // for the groups that contain this
    forget();
    pattern_ = nullptr;
    current_ = std::move(current);
    // Pointers to the array inside keep the whole object alive.
    father_ = {father, &father->localRows()};
    son_ = {son, &son->localRows()};
    rows_ = father.get();
    watch_ = std::move(watch);
    watch_->forget();
    reports_ = reports;
}

// Activities name this rank's call in the roll call, should it keep the others waiting.
void ArrayTransformerBase::createFatherGlobalMapping() {
    const ActivityScope activity("createFatherGlobalMapping of", requireArrays().father_->label());
    rows_->createGlobalMapping();
}

void ArrayTransformerBase::createGhostMapping(std::span<const index> pullRows, PeerDiscovery discovery) {
    const ActivityScope activity("createGhostMapping of", requireArrays().father_->label());
    // The request is made within the mapping's own agreement on failures.
    const auto ranks = CommunicatorContext::of(rows_->comm());
    setPattern(std::make_shared<const ExchangePattern>(GhostMapping::fromPullList(
        *ranks,
        [&] {
            requireGlobalMapping();
            return GhostMapping::PullRequest{rows_->globalMapping(), pullRows, father_->label()};
        },
        discovery)));
}

// By owners, who list the rows that each rank is to copy.
void ArrayTransformerBase::createGhostMapping(std::span<const index> localRows, std::span<const index> starts,
                                              PeerDiscovery discovery) {
    const ActivityScope activity("createGhostMapping of", requireArrays().father_->label());
    rows_->comm().guarded([&] { requireGlobalMapping(); });
    setPattern(std::make_shared<const ExchangePattern>(
        GhostMapping::fromPushList(rows_->globalMapping(), localRows, starts, discovery, father_->label())));
}

// The father takes over the pattern's numbering, so that both agree from here on.
void ArrayTransformerBase::usePattern(std::shared_ptr<const ExchangePattern> pattern) {
    requireArrays().rows_->comm().guarded([&] {
        DNDS_CHECK(pattern != nullptr, ArgumentError, "'{}' is given a null pattern", father_->label());
        takeNumbering(*pattern);
    });
    setPattern(std::move(pattern));
}

// Both share one pattern, so that their pulls can go in one exchange.
void ArrayTransformerBase::borrowGGIndexing(const ArrayTransformerBase &other) {
    requireArrays().rows_->comm().guarded([&] {
        DNDS_CHECK(other.pattern() != nullptr, StateError, "the mapping that '{}' is to borrow does not exist yet",
                   father_->label());
        takeNumbering(*other.pattern());
    });
    setPattern(other.pattern());
}

// The son starts without rows: it may have other widths than before, and moves to its memory at no cost. Sizes that
// differ between rows are pulled by an exchange of their own. Collective steps, the same on all ranks since they depend
// on the type only: widths, an agreement, the pull of sizes (not for fixed widths), the pull of shapes.
void ArrayTransformerBase::createMPITypes() {
    const CommunicatorView comm = requireArrays().rows_->comm();
    rows_->agreeShape();
    const bool fixed = isFixedLayout(father_->shape().layout);
    std::vector<rowsize> sizes;
    comm.guarded([&] {
        requireMapping("createMPITypes");
        DNDS_CHECK(father_->size() == pattern_->fatherSize(), StateError,
                   "the father of '{}' has {} rows, but its mapping was made for {}: make the mapping again",
                   father_->label(), father_->size(), pattern_->fatherSize());
        son_->resize(0);
        son_->compress();
        son_->rehost(sonMemory()); // while it is empty, so that nothing is copied
        son_->adoptShape(*father_);
        if (fixed) {
            son_->resize(pattern_->sonSize());
        } else {
            sizes.resize(static_cast<std::size_t>(father_->size()));
            // Decompressed rows are refused here, on all ranks together.
            (void)father_->rowLayout(MemorySpace::Host, Access::Read); // throws unless rows can be exchanged
            for (index i = 0; i < father_->size(); ++i)
                sizes[static_cast<std::size_t>(i)] = father_->rowSize(i);
        }
    });
    if (!fixed) {
        sizes = pullRowSizes(std::move(sizes));
        comm.guarded(
            [&] { son_->resize(pattern_->sonSize(), [&](index i) { return sizes[static_cast<std::size_t>(i)]; }); });
    }
    if (father_->shape().shapePerRow())
        pullRowShapes();
    if (reports_)
        watch_->created();
}

// Functions capture shared pointers, never `this`: exchanges may outlive the transformer. The version sent is that at
// the start of the pull; the father may be written while it is in flight.
ExchangeMember ArrayTransformerBase::member() const {
    requireArrays();
    return {std::string(father_->label()),
            [father = father_](MemorySpace space, Access access, RowLayout &into) {
                father->rowLayout(space, access, into);
            },
            [son = son_, watch = watch_, reports = reports_](MemorySpace space, Access access, RowLayout &into) {
                const bool unwritten = reports && watch->unwritten();
                son->rowLayout(space, access, into);
                if (unwritten) // set-up takes them for writing; pulls report themselves
                    watch->keep();
            },
            [father = father_, son = son_] {
                return father->valid(MemorySpace::Device) && son->valid(MemorySpace::Device);
            },
            [current = current_] { return *current; },
            [father = father_, son = son_, watch = watch_, reports = reports_,
             sent = std::uint64_t{0}](bool arrived, bool all) mutable {
                if (!arrived) // after a pull of some ghosts the others may be older: the whole is unknown
                    sent = all ? father->version() : 0;
                son->setPulledFrom(arrived ? sent : 0);
                if (!all || !reports)
                    watch->forget();
                else if (arrived)
                    watch->arrived();
                else
                    watch->started();
            },
            reports_};
}

const std::shared_ptr<const GhostMapping> &ArrayTransformerBase::ghostMapping() const noexcept {
    static const std::shared_ptr<const GhostMapping> none;
    return pattern_ ? pattern_->mapping() : none;
}

const ArrayTransformerBase &ArrayTransformerBase::requireArrays(SourceLocation where) const {
    if (!father_ || !son_) [[unlikely]]
        throw StateError("this transformer has no father and son (never set, or moved from): call setFatherSon first",
                         where);
    return *this;
}

// A numbering of another number of rows would give ghosts wrong owners.
void ArrayTransformerBase::requireGlobalMapping() const {
    const auto &mapping = rows_->globalMapping();
    DNDS_CHECK(mapping != nullptr, StateError, "'{}' has no global mapping: call createFatherGlobalMapping first",
               father_->label());
    DNDS_CHECK(mapping->localSize() == father_->size(), StateError,
               "'{}' was resized from {} to {} rows after its global mapping was made: make it again", father_->label(),
               mapping->localSize(), father_->size());
}

void ArrayTransformerBase::takeNumbering(const ExchangePattern &pattern) {
    if (pattern.mapping())
        rows_->setGlobalMapping(pattern.mapping()->global());
    DNDS_CHECK(father_->size() == pattern.fatherSize(), StateError, "'{}' has {} rows, but the pattern has {}",
               father_->label(), father_->size(), pattern.fatherSize());
}

// Ghosts of another pattern are other rows: nothing that is known of them holds any more.
void ArrayTransformerBase::setPattern(std::shared_ptr<const ExchangePattern> pattern) {
    pattern_ = std::move(pattern);
    *current_ = pattern_.get();
    son_->setPulledFrom(0);
    watch_->forget();
}

// By value: a pattern that is replaced meanwhile may hold the last reference.
std::shared_ptr<CommunicatorContext> ArrayTransformerBase::context() const {
    const CommunicatorView &comm = requireArrays().rows_->comm();
    return pattern_ ? pattern_->sharedContext() : CommunicatorContext::of(comm);
}

ExchangeRequest ArrayTransformerBase::request(const char *what) const {
    requireMapping(what);
    return {pattern_, {member()}};
}

// Names the call that came too early.
void ArrayTransformerBase::requireMapping(const char *what) const {
    DNDS_CHECK(pattern_ != nullptr, StateError,
               "{} of '{}' needs a ghost mapping: call createGhostMapping or borrowGGIndexing first", what,
               exchanged());
}

// One owner of ghosts on this node is enough.
// The arena then holds the ghosts, and that owner writes them in place instead of through a slot.
HostMemoryResource ArrayTransformerBase::sonMemory() const {
    const CommunicatorContext &context = pattern_->context();
    for (const int owner : pattern_->owners().ranks)
        if (owner != context.comm().rank() && context.node().sameNode(owner))
            return context.node().arena;
    return nullptr;
}

// Both lists are described as arrays of one int32 a row. Collective; an exchange set up for one pull.
// O(rows) numbers of 4 bytes. Sizes have to be known before ghosts can be allocated: they are no part of the pull
// itself.
std::vector<rowsize> ArrayTransformerBase::pullRowSizes(std::vector<rowsize> fatherSizes) const {
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

// The same exchange as for all parts, reduced to the last one: sizes are known, elements follow with the pull.
void ArrayTransformerBase::pullRowShapes() const {
    using Describe = std::function<void(MemorySpace, Access, RowLayout &)>;
    const auto lastPart = [](Describe all) {
        return [all = std::move(all)](MemorySpace space, Access access, RowLayout &layout) {
            layout = {}; // arrays overwrite their earlier description, which was at another address
            all(space, access, layout);
            std::swap(layout.parts.front(), layout.parts.at(static_cast<std::size_t>(layout.partCount - 1)));
            layout.partCount = 1;
        };
    };
    const auto request = [&] {
        ExchangeMember shapes = member();
        shapes.father = lastPart(std::move(shapes.father));
        shapes.son = lastPart(std::move(shapes.son));
        shapes.onDevice = nullptr;
        shapes.pulled = nullptr; // shapes alone are no contents
        return ExchangeRequest{pattern_, {std::move(shapes)}};
    };
    once(pattern_->context(), Direction::Pull, std::ref(request), {.space = ExchangeSpace::Host}, PushOp::Replace,
         nullptr);
}

} // namespace DNDS
