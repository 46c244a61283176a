#include "DNDS/Blocks/BlockField.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

const char *sideName(const BlockFieldCore &field) { return field.side() == MemorySpace::Device ? "device" : "host"; }

/// The map from cells of `from` to cells of `to`. Throws ArgumentError unless it maps index spaces to equal ones.
IndexTransform transformBetween(const BlockFieldCore &from, const BlockFieldCore &to, const std::vector<int> &axes) {
    const std::vector<IndexSpace> &mine = from.grid()->spaces();
    const std::vector<IndexSpace> &others = to.grid()->spaces();
    const int dims = from.grid()->dims();
    DNDS_CHECK(mine.size() == others.size() && dims == to.grid()->dims(), ArgumentError,
               "'{}' has {} index spaces of {} dimensions, '{}' has {} of {}: cells are copied between equal index "
               "spaces",
               from.name(), mine.size(), dims, to.name(), others.size(), to.grid()->dims());
    IndexTransform transform = IndexTransform::translation(dims, {});
    std::vector<int> all(toSize(dims));
    std::iota(all.begin(), all.end(), 0);
    DNDS_CHECK(axes.empty() || std::ranges::is_permutation(axes, all), ArgumentError,
               "the axes of the copy from '{}' to '{}' are [{}]: name each dimension from 0 to {} once", from.name(),
               to.name(), fmt::join(axes, ", "), dims - 1);
    std::ranges::copy(axes, transform.axis.begin());
    for (int d = 0; d < dims; ++d)
        DNDS_CHECK(
            from.blockPattern()->centring().nodal[toSize(d)] ==
                to.blockPattern()->centring().nodal[toSize(transform.axis[toSize(d)])],
            ArgumentError,
            "'{}' and '{}' have values at different points of cells along dimension {} of the former: copies are "
            "between fields of one centring",
            from.name(), to.name(), d);
    for (std::size_t s = 0; s < mine.size(); ++s) {
        const Box image = transform(mine[s].cells);
        DNDS_CHECK(image == others[s].cells, ArgumentError,
                   "index space '{}' of '{}' has the cells {}{}, '{}' of '{}' has {}: cells are copied between equal "
                   "index spaces",
                   mine[s].name, from.name(), toString(image), axes.empty() ? "" : " after its axes are permuted",
                   others[s].name, to.name(), toString(others[s].cells));
    }
    return transform;
}

/// Throws ArgumentError if nodes of `from` are combined with several of `to`: a push sends each ghost to one owner.
void requireSamePeriods(const BlockFieldCore &from, const BlockFieldCore &to, const IndexTransform &transform) {
    for (std::size_t s = 0; s < from.grid()->spaces().size(); ++s)
        for (std::size_t d = 0; d < toSize(transform.dims); ++d)
            DNDS_CHECK(!from.blockPattern()->centring().nodal[d] || !from.grid()->spaces()[s].periodic[d] ||
                           to.grid()->spaces()[s].periodic[toSize(transform.axis[d])],
                       ArgumentError,
                       "dimension {} of '{}' is periodic, and its nodes cannot be combined with those of '{}', which "
                       "has the first and the last one twice: make both periodic",
                       d, from.name(), to.name());
}

/// Throws LayoutError unless both have values of one type.
void requireSameType(const BlockFieldCore &from, const BlockFieldCore &to) {
    RowLayout source;
    RowLayout target;
    from.member().father(from.side(), Access::Read, source);
    to.member().father(to.side(), Access::Read, target);
    const RowPart &a = source.parts[0];
    const RowPart &b = target.parts[0];
    DNDS_CHECK(a.kind == b.kind && a.elementBytes == b.elementBytes, LayoutError,
               "the values of '{}' are {} of {} bytes, those of '{}' are {} of {}: cells are copied between fields of "
               "one type",
               from.name(), elementKindName(a.kind), a.elementBytes, to.name(), elementKindName(b.kind),
               b.elementBytes);
}

/// Checks what does not need other ranks, and then that all pass the same: fields by the serial numbers of their
/// patterns, which all ranks count alike. Collective, within `failTogether`. One reduction.
/// The hash stands for all arguments: ranks that copy different fields would otherwise match each other's messages.
IndexTransform agreeOnCopy(const CommunicatorView &comm, const BlockFieldCore &from, const BlockFieldCore &to,
                           const BlockCopyOptions &options) {
    DNDS_CHECK(&from != &to, ArgumentError, "'{}' is to be copied to itself: copy to another field", to.name());
    DNDS_CHECK(&from.pattern()->context() == &to.pattern()->context(), ArgumentError,
               "'{}' and '{}' are on different communicators: cells are copied within one", from.name(), to.name());
    requireSameType(from, to);
    DNDS_CHECK(from.components() == to.components(), ArgumentError,
               "'{}' has {} components a cell, '{}' has {}: cells are copied between fields of as many", from.name(),
               from.components(), to.name(), to.components());
    DNDS_CHECK(from.side() == to.side(), StateError,
               "'{}' is on the {}, '{}' on the {}: bring both to one side (toDevice, toHost) before making the copy",
               from.name(), sideName(from), to.name(), sideName(to));
    DNDS_CHECK(!options.ghosts || options.op == PushOp::Replace, ArgumentError,
               "ghosts of '{}' can only be replaced by a copy: combine its cells, then call exchangeGhosts", to.name());
    const IndexTransform transform = transformBetween(from, to, options.axes);
    if (options.op != PushOp::Replace)
        requireSamePeriods(from, to, transform);
    ContentHash key;
    for (const BlockFieldCore *field : {&from, &to}) {
        key.add(field->pattern()->serial());
        key.add(static_cast<std::uint64_t>(field->components()));
    }
    key.addBytes(&transform.axis, sizeof transform.axis);
    for (const int number : {static_cast<int>(from.side()), static_cast<int>(options.ghosts),
                             static_cast<int>(options.op), static_cast<int>(options.transport)})
        key.add(static_cast<std::uint64_t>(number));
    DNDS_CHECK(isSameOnAll(comm, key.value()), StateError,
               "ranks copy from '{}' to '{}' with different fields or options: all have to pass the same", from.name(),
               to.name());
    return transform;
}

/// The rows of a field as single values, as patterns of copies count them: fields with components inside and outside
/// can then be copied to each other. The closure keeps the field's memory alive, not the field.
/// A cell of k components inside is k rows of one value, one outside k rows a box apart: strides differ, counts do not.
auto valuesOf(const ExchangeMember &field) {
    return [rows = field.father](MemorySpace space, Access access, RowLayout &into) {
        rows(space, access, into);
        RowPart &values = into.parts[0];
        into.rows *= static_cast<index>(values.stride / values.elementBytes);
        values.stride = values.elementBytes;
        into.signature = static_cast<std::uint64_t>(values.kind) << 32U | values.elementBytes;
    };
}

/// The number of single values in this rank's memory.
index valueCount(const BlockFieldCore &field) {
    const BlockPattern &pattern = *field.blockPattern();
    return pattern.rows() * (pattern.componentsOutside() > 0 ? 1 : field.components());
}

/// The parts of a block of `to` that a copy writes. A value is combined with the owner's copy alone, so that no value
/// is added to a shared point twice.
std::vector<Box> targetsIn(const BlockMemory &block, const BlockPattern &to, const BlockCopyOptions &options) {
    if (options.op == PushOp::Replace)
        return options.ghosts ? withGhosts(block.cells, to.ghosts()) : std::vector<Box>{block.cells};
    const auto place = std::ranges::find(to.blocks(), block.block, &BlockMemory::block) - to.blocks().begin();
    const std::span<const Box> owned = to.owned(static_cast<int>(place));
    return {owned.begin(), owned.end()};
}

/// For each part of a block of `to`, finds the sources in the grid of `from`, which knows its own periods and
/// connections, and maps them back. A pull reads `from` as the father and writes `to` as the son. A push has the roles
/// reversed: values of `from` are ghosts, whose owners are in `to`. Collective; one sparse exchange.
/// The grid of `from` is looked up, not cells: O(regions), independent of the number of cells.
std::shared_ptr<const ExchangePattern> patternOf(const std::shared_ptr<CommunicatorContext> &context,
                                                 const BlockFieldCore &from, const BlockFieldCore &to,
                                                 const IndexTransform &toTarget, const BlockCopyOptions &options) {
    const IndexTransform toSource = toTarget.inverse();
    const auto sourcesOf = [&](const BlockMemory &block) {
        const int space = to.grid()->block(block.block).space;
        std::vector<GhostRegion> regions;
        for (const Box &target : targetsIn(block, *to.blockPattern(), options))
            for (const GhostRegion &region :
                 from.grid()->sourcesOf(space, toSource(target), from.blockPattern()->centring()))
                regions.push_back({toTarget(region.ghosts), region.source, toSource.then(region.toSource)});
        return regions;
    };
    const BlockLinks links =
        valueLinksOf(*context, *from.blockPattern(), *to.blockPattern(), to.components(), sourcesOf);
    return ExchangePattern::fromBoxes(context, [&] {
        ExchangePattern::Boxes boxes{valueCount(from), valueCount(to), rowsOf(links.given), rowsOf(links.received)};
        if (options.op != PushOp::Replace) { // pushed from `from`, as ghosts, to `to`, as owned rows
            std::swap(boxes.fatherSize, boxes.sonSize);
            std::swap(boxes.given, boxes.received);
        }
        return boxes;
    });
}

} // namespace

// Agreement and pattern first, on all ranks together; then the exchange binds both fields' memory, and can be started
// any number of times without further agreement.
std::shared_ptr<Exchange> makeBlockCopy(const BlockFieldCore &from, BlockFieldCore &to,
                                        const BlockCopyOptions &options) {
    const BlockFieldCore &known = to.made() ? to : from;
    static_cast<void>(known.member()); // throws where no field tells the communicator
    ExchangeMember source, target;
    const auto context = known.pattern()->sharedContext();
    const auto pattern = failTogether(context->comm(), [&] {
        source = from.member();
        target = to.member();
        return patternOf(context, from, to, agreeOnCopy(context->comm(), from, to, options), options);
    });
    const bool replaces = options.op == PushOp::Replace;
    const auto describe = [&] {
        ExchangeMember member;
        member.name = fmt::format("{} to {}", source.name, target.name);
        member.father = valuesOf(replaces ? source : target);
        member.son = valuesOf(replaces ? target : source);
        return ExchangeRequest{pattern, {std::move(member)}};
    };
    const ExchangeSpace space = to.side() == MemorySpace::Device ? ExchangeSpace::Device : ExchangeSpace::Host;
    return Exchange::make(*context, replaces ? Direction::Pull : Direction::Push, describe,
                          {.transport = options.transport, .space = space}, options.op);
}

void copyBlocks(const BlockFieldCore &from, BlockFieldCore &to, const BlockCopyOptions &options) {
    const auto copy = makeBlockCopy(from, to, options);
    copy->start();
    copy->wait();
}

} // namespace DNDS
