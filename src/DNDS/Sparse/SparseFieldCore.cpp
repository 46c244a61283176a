#include "DNDS/Sparse/SparseField.hpp"

#include "DNDS/Mpi/Rendezvous.hpp"
#include "DNDS/Sparse/SparseFieldState.hpp"
#include "DNDS/Sparse/SparseFields.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

namespace DNDS {

/// One counter for all fields of the process, so that equal numbers mean the same field in the same state: a boolean
/// "has changed" would miss a block that was freed and allocated again between two looks.
std::uint64_t SparseFieldState::nextGeneration() noexcept {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Recycled memory is current where its last user had it: if that was the other space its old contents are copied,
/// unread; `write` then makes this space the only current one.
BlockPool::Owner SparseFieldState::reserve(int block) const {
    BlockPool::Owner memory = pattern->pool().get(pooledBytes(block));
    if (space == MemorySpace::Host) // it may have been used on the other side
        memory->toHost();
    else
        memory->toDevice();
    (void)memory->write(space, name);
    return memory;
}

/// Copies all blocks before any becomes current on the other side, so that an error leaves all of them where they were.
/// O(bytes).
/// A new generation for the whole field: cached views of any block are made again.
void SparseFieldState::moveTo(MemorySpace to) {
    const auto keepIn = [&](MemorySpace kept) {
        space = kept;
        generation = nextGeneration();
        allocated.forEach([&](int block) {
            Memory &mine = blocks[toSize(block)];
            mine.bytes = mine.owner->write(kept, name); // the other side is stale from now on
            mine.witness = firstWitness(block);
        });
    };
    try {
        allocated.forEach([&](int block) {
            HostDeviceBuffer &memory = *blocks[toSize(block)].owner;
            to == MemorySpace::Host ? memory.toHost() : memory.toDevice();
        });
    } catch (const std::exception &) {
        keepIn(space);
        throw;
    }
    keepIn(to);
}

/// Cannot fail, which `allocateWanted` relies on: all memory is reserved before the first block is taken.
void SparseFieldState::take(int block, BlockPool::Owner memory) noexcept {
    Memory &mine = blocks[toSize(block)];
    mine.owner = std::move(memory);
    mine.bytes = mine.owner->write(space, name); // `reserve` has checked that it can be
    mine.stageBytes = stageBytes(block);
    mine.witness = firstWitness(block);
    mine.below = 0;
    if (space == MemorySpace::Host)
        elements->fill(mine.bytes, totalBytes(block) / elements->bytes());
    allocated.set(block);
    generation = nextGeneration();
}

void SparseFieldState::copyToHost(std::byte *to, const std::byte *from, std::size_t bytes) const {
    if (space == MemorySpace::Host)
        return static_cast<void>(std::memcpy(to, from, bytes));
    Device::copy(to, MemorySpace::Host, from, MemorySpace::Device, bytes, nullptr);
    Device::synchronize(nullptr);
}

void SparseFieldState::drop(int block) noexcept {
    blocks[toSize(block)] = {};
    allocated.unset(block);
    generation = nextGeneration();
}

/// Frees a block that an exchange found empty. The program's function may read stage 0 on the host, before.
void SparseFieldState::dropEmpty(int block) {
    if (freeing) {
        HostDeviceBuffer &owned = *blocks[toSize(block)].owner;
        const std::ptrdiff_t stage = memory(block) - blocks[toSize(block)].bytes;
        owned.toHost(); // the side that the program reads
        freeing(block, owned.read(MemorySpace::Host, name) + stage);
    }
    drop(block);
}

std::size_t SparseFieldState::firstWitness(int block) const {
    return toSize(pattern->cellRows(block).front().begin * options.components);
}

/// The witness is the last element found above the threshold. Blobs move slowly compared with blocks, so it mostly
/// stays above it and the test costs O(1); the scan after a miss is O(cells of the block).
bool SparseFieldState::isBelow(int block) noexcept {
    Memory &mine = blocks[toSize(block)];
    const std::byte *const at = memory(block);
    const std::size_t bytes = elements->bytes();
    const real threshold = options.deallocationThreshold;
    // The witness: in a block in use it is still above, and the scan ends here.
    if (elements->firstAbove(at + mine.witness * bytes, 1, threshold) == 0)
        return false;
    for (const IndexRange &rows : pattern->cellRows(block)) {
        const std::size_t first = toSize(rows.begin * options.components);
        const std::size_t count = toSize(rows.size() * options.components);
        const std::size_t above = elements->firstAbove(at + first * bytes, count, threshold);
        if (above < count) {
            mine.witness = first + above;
            return false;
        }
    }
    mine.witness = firstWitness(block);
    return true;
}

void SparseFieldState::requireNoFlight(std::string_view what) const {
    DNDS_CHECK(inFlight == 0, StateError, "blocks of '{}' cannot be {} during an exchange: finish it first", name,
               what);
}

/// Everything that changes decisions or messages: compared as text between ranks, so that an error can show both.
std::string SparseFieldState::describe() const {
    return fmt::format("{}: {}, {} components, {} stages, thresholds {} and {}, freed after {}, {}", name,
                       elements->describe(), options.components, options.stages, options.allocationThreshold,
                       options.deallocationThreshold, options.deallocationCount,
                       options.sendBelowThreshold ? "rims below the threshold sent"
                                                  : "rims below the threshold not sent");
}

/// Local: agreement between ranks is checked when an exchange is made. No block has memory yet.
SparseFieldCore::SparseFieldCore(std::string name, std::shared_ptr<const SparsePattern> pattern,
                                 const SparseFieldOptions &options, std::unique_ptr<const SparseElements> elements) {
    DNDS_CHECK(pattern != nullptr, ArgumentError, "the sparse field '{}' is given no pattern", name);
    DNDS_CHECK(options.components >= 1 && options.stages >= 1, ArgumentError,
               "'{}' is to have {} components and {} stages: give 1 or more", name, options.components, options.stages);
    const real allocation = options.allocationThreshold;
    const real deallocation = options.deallocationThreshold;
    DNDS_CHECK(
        deallocation >= 0 && allocation >= deallocation && allocation < std::numeric_limits<real>::infinity(),
        ArgumentError,
        "'{}' has the thresholds {} for allocation and {} for deallocation: give 0 <= deallocation <= allocation, "
        "or blocks come and go in turn",
        name, allocation, deallocation);
    DNDS_CHECK(allocation == 0 || elements->finiteDefault(), ArgumentError,
               "the default value of '{}' is not finite: nothing is near it, so its thresholds must be 0", name);
    DNDS_CHECK(options.deallocationCount >= 0, ArgumentError,
               "'{}' is to free blocks after {} exchanges: give 1 or more, or 0 for never", name,
               options.deallocationCount);
    constexpr std::size_t most = std::size_t{1} << 46U; // limit in bytes of a block and of all products for it
    std::size_t rows = 1;
    for (const BlockMemory &block : pattern->blocks())
        rows = std::max(rows, toSize(block.rows));
    DNDS_CHECK(toSize(options.components) <= most / elements->bytes() / toSize(options.stages) / rows, ArgumentError,
               "a block of '{}' has {} cells with ghosts, {} components and {} stages: too many bytes", name, rows,
               options.components, options.stages);
    state_ = std::make_shared<SparseFieldState>();
    SparseFieldState &state = *state_;
    state.name = std::move(name);
    state.pattern = std::move(pattern);
    state.options = options;
    state.cellBytes = elements->bytes() * toSize(options.components);
    state.elements = std::move(elements);
    state.blocks.resize(state.pattern->blocks().size());
    state.allocated.resize(state.blocks.size());
    state.taskRows.setName(state.name);
    state.taskRows.resize(static_cast<index>(state.blocks.size()));
    state.places.resize(toSize(options.stages));
    std::iota(state.places.begin(), state.places.end(), 0);
}

SparseFieldCore::SparseFieldCore(SparseFieldCore &&) noexcept = default;
SparseFieldCore &SparseFieldCore::operator=(SparseFieldCore &&) noexcept = default;
SparseFieldCore::~SparseFieldCore() = default;

SparseFieldState &SparseFieldCore::state() const {
    DNDS_CHECK(state_ != nullptr, StateError, "this SparseField was moved from");
    return *state_;
}

const std::string &SparseFieldCore::name() const { return state().name; }
const std::shared_ptr<const SparsePattern> &SparseFieldCore::pattern() const { return state().pattern; }
const SparseFieldOptions &SparseFieldCore::options() const { return state().options; }
const SparseElements &SparseFieldCore::elements() const { return *state().elements; }

const BlockMemory &SparseFieldCore::block(int local) const {
    DNDS_CHECK(local >= 0 && local < blocks(), IndexError, "'{}' has {} blocks on this rank, none {}", name(), blocks(),
               local);
    return pattern()->blocks()[toSize(local)];
}

bool SparseFieldCore::isAllocated(int local) const {
    (void)block(local);
    return state().allocated.test(local);
}

std::vector<int> SparseFieldCore::allocatedBlocks() const {
    std::vector<int> there;
    state().allocated.forEach([&](int block) { there.push_back(block); });
    return there;
}

bool SparseFieldCore::allocate(int local) {
    SparseFieldState &state = this->state();
    state.requireNoFlight("allocated");
    if (isAllocated(local))
        return false;
    BlockPool::Owner memory = state.reserve(local);
    if (state.space == MemorySpace::Device) { // one block: filled here and copied
        memory->toHost();
        state.elements->fill(memory->write(MemorySpace::Host, name()),
                             state.totalBytes(local) / state.elements->bytes());
        memory->toDevice();
    }
    state.take(local, std::move(memory));
    return true;
}

void SparseFieldCore::toDevice() {
    // Checked even without blocks, so that ranks fail alike.
    Device::requireDevice("move the blocks of '" + name() + "' there");
    state().requireNoFlight("moved");
    state().moveTo(MemorySpace::Device);
}

void SparseFieldCore::toHost() {
    state().requireNoFlight("moved");
    state().moveTo(MemorySpace::Host);
}

MemorySpace SparseFieldCore::space() const { return state().space; }

bool SparseFieldCore::free(int local) {
    state().requireNoFlight("freed");
    if (!isAllocated(local))
        return false;
    state().drop(local);
    return true;
}

std::uint64_t SparseFieldCore::generation() const { return state().generation; }

int SparseFieldCore::place(int stage) const {
    DNDS_CHECK(stage >= 0 && stage < options().stages, IndexError, "'{}' has {} stages, none {}", name(),
               options().stages, stage);
    return state().places[toSize(stage)];
}

int SparseFieldCore::emptyExchanges(int local) const {
    (void)block(local);
    return state().blocks[toSize(local)].below;
}

void SparseFieldCore::setEmptyExchanges(int local, int count) {
    DNDS_CHECK(isAllocated(local), StateError, "block {} of '{}' is not allocated", block(local).block, name());
    DNDS_CHECK(count >= 0, ArgumentError, "block {} of '{}' was empty in {} exchanges: give 0 or more",
               block(local).block, name(), count);
    state().blocks[toSize(local)].below = count;
}

/// Only places move. Messages carry a hash of them, as ranks that swap differently would exchange different stages.
/// O(1): a stage's offset in every block is its place times the size of a stage.
void SparseFieldCore::swapStages(int a, int b) {
    for (const int stage : {a, b})
        (void)place(stage);
    state().requireNoFlight("swapped");
    std::swap(state().places[toSize(a)], state().places[toSize(b)]);
}

std::byte *SparseFieldCore::memoryOf(int local, int stage, MemorySpace space) const {
    DNDS_CHECK(space == state().space, StaleError, "the blocks of '{}' are {}", name(),
               space == MemorySpace::Host ? "on the device: call toHost() first"
                                          : "on the host: call toDevice() first");
    DNDS_CHECK(isAllocated(local), StateError,
               "block {} of '{}' (number {} in the grid) is not allocated: ask isAllocated, or call allocate", local,
               name(), block(local).block);
    (void)place(stage);
    return state().memory(local, stage);
}

/// Owners of a block are counted: freed or not, its memory returns to the pool when the last one ends.
std::shared_ptr<const void> SparseFieldCore::keep(int local) const {
    (void)memoryOf(local, 0, state().space);
    return std::make_shared<BlockPool::Owner>(state().blocks[toSize(local)].owner);
}

/// The copy costs a transfer of one stage; on the host there is no copy.
const std::byte *SparseFieldCore::stageOnHost(int local, std::vector<std::byte> &memory) const {
    const std::byte *const at = memoryOf(local, 0, space());
    if (space() == MemorySpace::Host)
        return at;
    memory.resize(std::max(memory.size(), state().stageBytes(local)));
    state().copyToHost(memory.data(), at, state().stageBytes(local));
    return memory.data();
}

/// Moves allocated blocks to the ranks that own them in the other pattern, by one sparse exchange: each rank sends to
/// the new owners, and none has to know beforehand which blocks it will receive. A block in a message: its number, the
/// exchanges in which it was empty, the bytes of all stages as they lie in memory. The order of stages is the same on
/// all ranks, and copied.
/// Cost: one message to each new owner with all of its blocks, O(bytes of allocated blocks) memory for messages on both
/// ends.
void SparseFieldCore::copyTo(SparseFieldCore &into) const {
    const SparseFieldState &from = state();
    SparseFieldState &to = into.state();
    from.requireNoFlight("moved to other ranks");
    DNDS_CHECK(pattern()->hasBlocksOf(*into.pattern()), ArgumentError,
               "'{}' cannot move to a pattern of other blocks or ghosts: make it of a `rebalanced` grid, or of the "
               "repartitioned mesh and the same clusters",
               name());
    const std::vector<int> there = allocatedBlocks();
    const auto wordsOf = [](std::size_t bytes) { return static_cast<index>(alignTo8(bytes) / sizeof(index)); };
    const RankLists arrived = sparseExchange(
        *pattern()->context(),
        packByRank(
            pattern()->context()->comm().size(), there.size(),
            [&](std::size_t k) { return into.pattern()->ranks()[toSize(block(there[k]).block)]; },
            [&](std::size_t k) { return 2 + wordsOf(from.totalBytes(there[k])); },
            [&](std::size_t k, index *words) {
                const SparseFieldState::Memory &memory = from.blocks[toSize(there[k])];
                words[0] = block(there[k]).block;
                words[1] = memory.below;
                from.copyToHost(reinterpret_cast<std::byte *>(words + 2), memory.bytes, from.totalBytes(there[k]));
            }));
    for (RecordReader words(arrived.values); !words.atEnd();) {
        const int local = into.pattern()->localOf(static_cast<int>(words.next()));
        into.allocate(local);
        to.blocks[toSize(local)].below = static_cast<int>(words.next());
        const std::size_t bytes = to.totalBytes(local);
        std::memcpy(to.blocks[toSize(local)].bytes, words.next(wordsOf(bytes)).data(), bytes);
    }
    to.places = from.places;
    // Blocks are unpacked on the host, and moved at the end.
    to.moveTo(from.space);
}

void SparseFieldCore::onFree(std::function<void(int, const std::byte *)> visit) {
    state().requireNoFlight("watched");
    state().freeing = std::move(visit);
}

Array<std::uint8_t, 0> &SparseFieldCore::rows() const { return state().taskRows; }
void SparseFieldCore::markWritten() { state().taskRows.markWritten(); }

/// Made at the first use: fields that are exchanged in groups need no exchange of their own.
SparseFields &SparseFieldCore::exchange() {
    if (alone_ == nullptr)
        alone_ = std::make_unique<SparseFields>(*this);
    return *alone_;
}

void SparseFieldCore::exchangeGhosts(Device::StreamHandle producer) { exchange().exchangeGhosts(producer); }
void SparseFieldCore::pushGhosts(PushOp op, Device::StreamHandle producer) { exchange().pushGhosts(op, producer); }

std::size_t SparseFieldCore::memoryBytes() const {
    std::size_t bytes = 0;
    state().allocated.forEach([&](int block) { bytes += state().pooledBytes(block); });
    return bytes;
}

} // namespace DNDS
