#include "DNDS/Blocks/BlockField.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <map>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// The closures own the arrays and ask for their rows at each start, so an exchange outlives its field and finds the
/// memory after swaps.
ExchangeMember memberOf(const std::shared_ptr<ArrayBase> &father, const std::shared_ptr<ArrayBase> &son) {
    const auto layoutOf = [](const std::shared_ptr<ArrayBase> &array) {
        return [array](MemorySpace space, Access access, RowLayout &into) { array->rowLayout(space, access, into); };
    };
    const auto onDevice = [father, son] {
        return father->valid(MemorySpace::Device) && son->valid(MemorySpace::Device);
    };
    return {.name = std::string(father->label()),
            .father = layoutOf(father),
            .son = layoutOf(son),
            .onDevice = onDevice,
            .pattern = nullptr};
}

/// All rows of a rank's blocks, by the ranks that these blocks have in `other`. Each list ascends with blocks' numbers,
/// so that sender and receiver list the same blocks in the same order, without messages.
/// O(blocks log ranks). Both grids number the blocks alike (`hasBlocksOf`), which makes the two orders agree.
ExchangePattern::PeerBoxes wholeBlocks(std::span<const BlockMemory> blocks, const BlockGrid &other) {
    std::map<int, std::vector<RowBox>> byRank;
    for (const BlockMemory &block : blocks) {
        RowBox &rows = byRank[other.block(block.block).rank].emplace_back();
        rows.first = block.firstRow;
        rows.counts.back() = block.rows;
        rows.strides.back() = 1;
    }
    ExchangePattern::PeerBoxes boxes;
    for (const auto &[rank, rows] : byRank)
        boxes.append(rank, RowList::boxes(rows));
    return boxes;
}

} // namespace

ExchangeMember BlockFieldCore::member() const {
    requireMade();
    return memberOf(data_, data_); // cells and ghosts are rows of one array
}

// A pull from this field's rows to those of `into`, once. The checks are within the pattern's agreement, so that a
// failure on one rank ends it on all. Ghosts are moved as well: no exchange could refresh those at walls.
// Cost: one message for each pair of ranks that share blocks, O(bytes of all blocks). Both fields have memory at the
// same time.
void BlockFieldCore::copyTo(BlockFieldCore &into) const {
    const std::shared_ptr<const BlockPattern> &from = pattern_;
    const std::shared_ptr<const BlockPattern> &to = into.pattern_;
    const auto rows = ExchangePattern::fromBoxes(from->exchange()->sharedContext(), [&] {
        DNDS_CHECK(from->grid()->hasBlocksOf(*to->grid()), ArgumentError,
                   "'{}' cannot move to a grid of other blocks: make it by `rebalanced`", data_->label());
        DNDS_CHECK(!pulls_[0].inFlight() && !pulls_[1].inFlight() && !pushInFlight(), StateError,
                   "an exchange of '{}' is under way: finish it before the field moves", data_->label());
        if (side_ == MemorySpace::Device)
            into.toDevice();
        return ExchangePattern::Boxes{from->rows(), to->rows(), wholeBlocks(from->blocks(), *to->grid()),
                                      wholeBlocks(to->blocks(), *from->grid())};
    });
    PersistentExchange move(Direction::Pull);
    move.init(rows->context(), data_->label(),
              [&] {
                  return ExchangeRequest{rows, {memberOf(data_, into.data_)}};
              },
              {.space = side_ == MemorySpace::Device ? ExchangeSpace::Device : ExchangeSpace::Host});
    move.get(data_->label())->start();
    move.get(data_->label())->wait();
}

void BlockFieldCore::bind(std::shared_ptr<const BlockPattern> pattern, std::shared_ptr<ArrayBase> data,
                          rowsize components) {
    pattern_ = std::move(pattern);
    data_ = std::move(data);
    components_ = components;
}

// A rank alone on its node shares with no other: ordinary memory.
HostMemoryResource BlockFieldCore::memoryFor(const BlockPattern &pattern) {
    const NodeTopology &node = pattern.exchange()->context().node();
    return node.members.size() > 1 ? HostMemoryResource(node.arena) : nullptr;
}

const BlockMemory &BlockFieldCore::memoryOf(int local) const {
    requireMade();
    const auto blocks = pattern_->blocks();
    DNDS_CHECK(local >= 0 && toSize(local) < blocks.size(), IndexError, "'{}' has {} blocks on this rank, none {}",
               data_->label(), blocks.size(), local);
    return blocks[toSize(local)];
}

void BlockFieldCore::requireMade(SourceLocation where) const {
    if (!made()) [[unlikely]]
        throw StateError("this field on blocks was declared only, or moved from: make it with a grid first", where);
}

const std::shared_ptr<Exchange> &BlockFieldCore::ready() {
    requireMade();
    if (!pulls_[sideNumber()].made())
        initExchangeGhosts();
    return pulls_[sideNumber()].get(data_->label());
}

// Only sums clear ghosts: after a minimum or maximum, zero would be a wrong contribution to the next one. Pulls ignore
// it.
void BlockFieldCore::init(OfSides &exchanges, ExchangeOptions options, PushOp op) {
    requireMade();
    options.space = side_ == MemorySpace::Device ? ExchangeSpace::Device : ExchangeSpace::Host;
    options.ghosts = op == PushOp::Sum ? GhostsAfterPush::Zero : GhostsAfterPush::Keep;
    const auto describe = [this] { return ExchangeRequest{pattern_->exchange(), {member()}}; };
    exchanges[sideNumber()].init(pattern_->exchange()->context(), data_->label(), describe, options, op);
}

void BlockFieldCore::initExchangeGhosts(const ExchangeOptions &options) { init(pulls_, options, PushOp::Replace); }

void BlockFieldCore::initPushGhosts(PushOp op, const ExchangeOptions &options) {
    init(pushes_, options, op);
    pushOps_[sideNumber()] = op;
}

// An operation is part of an exchange's set-up; programs that alternate two operations pay for it each time.
void BlockFieldCore::startPushGhosts(PushOp op, Device::StreamHandle producer) {
    requireMade();
    if (!pushes_[sideNumber()].made() || pushOps_[sideNumber()] != op)
        initPushGhosts(op);
    pushes_[sideNumber()].get(data_->label())->start(producer);
}

// Host and device have an exchange each, bound to their memory. The field may change sides before the finish, so the
// started exchange is looked up rather than taken from the present side.
Exchange &BlockFieldCore::inFlight(const OfSides &exchanges, const char *what) const {
    requireMade();
    const PersistentExchange &started = exchanges[exchanges[1].inFlight() ? 1 : 0]; // the side it is on now
    DNDS_CHECK(started.inFlight(), StateError, "no {} of the ghosts of '{}' is under way: start one first", what,
               data_->label());
    return *started.get(data_->label());
}

const Exchange &BlockFieldCore::bound() const {
    requireMade();
    const PersistentExchange &pull = pulls_[sideNumber()];
    DNDS_CHECK(pull.made(), StateError,
               "the ghosts of '{}' were never exchanged on the {}: call initExchangeGhosts or exchangeGhosts first",
               data_->label(), side_ == MemorySpace::Device ? "device" : "host");
    return *pull.get(data_->label());
}

std::string BlockFieldCore::describeExchange() const { return bound().describe(); }

std::vector<PeerPath> BlockFieldCore::ghostPaths() const { return bound().paths(); }

void BlockFieldCore::toDevice() {
    requireMade();
    data_->toDevice();
    side_ = MemorySpace::Device;
}

void BlockFieldCore::toDevice(Device::StreamHandle stream) {
    requireMade();
    data_->toDevice(stream);
    side_ = MemorySpace::Device;
}

void BlockFieldCore::toHost() {
    requireMade();
    data_->toHost();
    side_ = MemorySpace::Host;
}

void BlockFieldCore::toHost(Device::StreamHandle stream) {
    requireMade();
    data_->toHost(stream);
    side_ = MemorySpace::Host;
}

} // namespace DNDS
