#include "DNDS/Sparse/SparsePattern.hpp"

#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

namespace DNDS {

namespace {

using Loops = std::array<index, RowBox::loops>;

/// Turns links between boxes, whose rows are numbered as in a dense field, into links between blocks with memory of
/// their own, whose rows begin at 0. Most blocks then have the same few shapes, found by value here: O(links
/// log(shapes)).
/// Order is kept: link k of a peer stays link k, which makes channel numbers agree between the two ranks.
SparseLinks boxesOf(const BlockLinks &links) {
    SparseLinks boxes;
    std::map<int, std::pair<int, index>> places; // by block: its place and first row
    for (const BlockMemory &block : links.blocks) {
        places[block.block] = {static_cast<int>(boxes.blocks.size()), block.firstRow};
        boxes.blocks.push_back(block);
        boxes.blocks.back().firstRow = 0;
    }
    std::map<std::tuple<index, Loops, Loops>, RowList> shapes;
    const auto linkOf = [&](const BlockLink &link) -> SparseLinks::Link {
        const auto [place, firstRow] = places.at(link.block);
        RowBox rows = link.rows;
        rows.first -= firstRow;
        const std::tuple key(rows.first, rows.counts, rows.strides);
        auto found = shapes.find(key);
        if (found == shapes.end())
            found = shapes.emplace(key, RowList::boxes({&rows, 1})).first;
        return {place, found->second};
    };
    for (const auto &[rank, given] : links.given)
        std::ranges::transform(given, std::back_inserter(boxes.peers[rank].given), linkOf);
    for (const auto &[rank, received] : links.received)
        std::ranges::transform(received, std::back_inserter(boxes.peers[rank].received), linkOf);
    return boxes;
}

} // namespace

/// Builds a pattern from its links: numbers the shapes, and sorts channels by peer and by block. O(channels
/// log(shapes)), plus O(rows of all blocks) to find the rows that stand for cells.
class SparsePattern::Builder {
  public:
    Builder(SparsePattern &made, SparseLinks links) : made_(made) {
        made_.blocks_ = std::move(links.blocks);
        made_.ranks_ = std::move(links.ranks);
        made_.signature_ = links.signature;
        made_.kept_ = std::move(links.kept);
        const int rank = made_.context_->comm().rank();
        for (auto &[peer, channels] : links.peers)
            if (peer == rank)
                for (std::size_t k = 0; k < channels.given.size(); ++k)
                    made_.local_.push_back({endOf(channels.given[k]), receivedEndOf(channels.received[k])});
            else
                addPeer(peer, channels);
        sortByBlock();
        findCellRows();
    }

  private:
    /// The shape is found by the address of its list, not by its rows: equal shapes share one list since `boxesOf`.
    ChannelEnd endOf(const SparseLinks::Link &link) {
        // Copies of one RowList share their boxes.
        const void *kind = link.rows.boxes() != nullptr ? static_cast<const void *>(link.rows.boxes().get()) : nullptr;
        const auto key = std::tuple(kind, link.rows.first(), link.rows.count(), link.rows.list().data());
        const auto [shape, isNew] = numbers_.try_emplace(key, static_cast<std::int32_t>(made_.shapes_.size()));
        if (isNew)
            made_.shapes_.push_back(link.rows);
        return {link.block, shape->second};
    }
    /// Scatters need strides; lists of rows can be gathered from only.
    ChannelEnd receivedEndOf(const SparseLinks::Link &link) {
        DNDS_CHECK(!link.rows.isList(), ArgumentError, "block {} receives a list of rows: give ranges or boxes",
                   made_.blocks_[toSize(link.block)].block);
        return endOf(link);
    }
    void addPeer(int rank, const SparseLinks::Peer &links) {
        PeerChannels &channels = made_.peers_.emplace_back(PeerChannels{rank, {}, {}});
        for (const SparseLinks::Link &link : links.given)
            channels.given.push_back(endOf(link));
        for (const SparseLinks::Link &link : links.received)
            channels.received.push_back(receivedEndOf(link));
    }

    /// Counting sort of (block, item) by block, stable: O(items + blocks).
    template <class T>
    ByBlock<T> sorted(const std::vector<std::pair<std::int32_t, T>> &items) const {
        ByBlock<T> by;
        by.starts.assign(made_.blocks_.size() + 1, 0);
        for (const auto &[block, item] : items)
            ++by.starts[toSize(block) + 1];
        for (std::size_t b = 1; b < by.starts.size(); ++b)
            by.starts[b] += by.starts[b - 1];
        by.items.resize(items.size());
        std::vector<std::int32_t> next(by.starts.begin(), by.starts.end() - 1);
        for (const auto &[block, item] : items)
            by.items[toSize(next[toSize(block)]++)] = item;
        return by;
    }

    /// The channels of each block, so that exchanges visit only channels of allocated blocks.
    void sortByBlock() {
        const auto places = [&](std::vector<ChannelEnd> PeerChannels::*ends) {
            std::vector<std::pair<std::int32_t, Place>> found;
            for (std::int32_t p = 0; p < std::ssize(made_.peers_); ++p)
                for (std::int32_t k = 0; const ChannelEnd &end : made_.peers_[toSize(p)].*ends)
                    found.emplace_back(end.block, Place{p, k++});
            return sorted(found);
        };
        made_.given_ = places(&PeerChannels::given);
        made_.received_ = places(&PeerChannels::received);
        const auto numbers = [&](ChannelEnd LocalChannel::*end) {
            std::vector<std::pair<std::int32_t, std::int32_t>> found;
            for (std::int32_t k = 0; const LocalChannel &channel : made_.local_)
                found.emplace_back((channel.*end).block, k++);
            return sorted(found);
        };
        made_.localFrom_ = numbers(&LocalChannel::from);
        made_.localTo_ = numbers(&LocalChannel::to);
    }

    /// The rows of each block that stand for cells: its own, and ghosts that some channel fills. Blocks of the same
    /// kind (interior, at one wall, at one edge) share a list.
    void findCellRows() {
        std::map<std::vector<IndexRange>, std::int32_t> known; // most blocks are alike
        std::vector<char> marks;
        const auto mark = [&](const ChannelEnd &end) {
            made_.shapes_[toSize(end.shape)].forEach([&](index row) { marks[toSize(row)] = 1; });
        };
        for (std::size_t b = 0; b < made_.blocks_.size(); ++b) {
            const int block = static_cast<int>(b);
            marks.assign(toSize(made_.blocks_[b].rows), 0);
            const BlockMemory &own = made_.blocks_[b];
            const BlockView<char> view(marks.data(), own.cells, own.extent, 1, 1, 1);
            forEachLine(own.cells, [&](const IndexVector &cell, index count) {
                std::fill_n(view.addressOf(cell), count, char{1});
            });
            for (const Place &place : made_.receivedBy(block))
                mark(made_.peers_[toSize(place.peer)].received[toSize(place.channel)]);
            for (const std::int32_t k : made_.localTo(block))
                mark(made_.local_[toSize(k)].to);
            const auto [kind, isNew] =
                known.try_emplace(rangesOf(marks), static_cast<std::int32_t>(made_.cellRows_.size()));
            if (isNew)
                made_.cellRows_.push_back(kind->first);
            made_.cellRowsOf_.push_back(kind->second);
        }
    }
    /// Runs of marked rows.
    static std::vector<IndexRange> rangesOf(const std::vector<char> &marks) {
        std::vector<IndexRange> ranges;
        const auto place = [&](auto at) { return static_cast<index>(at - marks.begin()); };
        for (auto first = std::find(marks.begin(), marks.end(), 1); first != marks.end();) {
            const auto last = std::find(first, marks.end(), 0);
            ranges.push_back({place(first), place(last)});
            first = std::find(last, marks.end(), 1);
        }
        return ranges;
    }

    SparsePattern &made_;
    std::map<std::tuple<const void *, index, index, const index *>, std::int32_t> numbers_;
};

SparsePattern::SparsePattern()
    : pool_("blocks of sparse fields", [](std::size_t bytes) { return HostDeviceBuffer(bytes); }) {}

SparsePattern::~SparsePattern() = default;

/// Cost: O(channels + rows of this rank's blocks), and 4 bytes for each block of the grid.
std::shared_ptr<const SparsePattern>
SparsePattern::make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts) {
    return failTogether(comm, [&] {
        const auto context = CommunicatorContext::of(comm);
        // First all ranks agree on the arguments; then owners are told which of their cells are ghosts elsewhere, in
        // the only exchange between ranks. Everything else is local.
        const std::uint64_t signature = agreeOnBlocks(comm, grid.get(), ghosts, 0);
        const BlockLinks links = blockLinksOf(*context, *grid, ghosts, 0);
        SparseLinks boxes = boxesOf(links);
        boxes.signature = signature;
        std::ranges::transform(grid->blocks(), std::back_inserter(boxes.ranks), &Block::rank);
        const std::shared_ptr<SparsePattern> made(new SparsePattern);
        made->grid_ = std::move(grid);
        made->ghosts_ = ghosts;
        made->context_ = context;
        const Builder build(*made, std::move(boxes));
        return std::shared_ptr<const SparsePattern>(made);
    });
}

std::shared_ptr<const SparsePattern> SparsePattern::fromLinks(std::shared_ptr<CommunicatorContext> context,
                                                              SparseLinks links) {
    const std::shared_ptr<SparsePattern> made(new SparsePattern);
    made->context_ = std::move(context);
    const Builder build(*made, std::move(links));
    return made;
}

int SparsePattern::localOf(int number) const noexcept {
    const auto found = std::ranges::lower_bound(blocks_, number, {}, &BlockMemory::block);
    return found != blocks_.end() && found->block == number ? static_cast<int>(found - blocks_.begin()) : -1;
}

bool SparsePattern::hasBlocksOf(const SparsePattern &other) const noexcept {
    if (grid_ == nullptr || other.grid_ == nullptr)
        return grid_ == other.grid_ && signature_ == other.signature_;
    return grid_->hasBlocksOf(*other.grid_) && ghosts_ == other.ghosts_;
}

/// Made once for each width of cells: all fields of that width share them.
const SparsePattern::Copies &SparsePattern::copies(std::size_t cellBytes) const {
    auto &known = copies_[cellBytes];
    if (known == nullptr) {
        auto made = std::make_unique<Copies>();
        RowPart part;
        part.stride = cellBytes;
        for (const RowList &rows : shapes_) {
            made->gathers.emplace_back(rows, part);
            made->scatters.push_back(rows.isList() ? RowScatter() : RowScatter(rows, part)); // lists are only given
        }
        addDirect(*made);
        known = std::move(made);
    }
    return *known;
}

/// One copy plan for each pair of shapes: O(local channels log(pairs)) time, and memory for the few pairs that occur,
/// not for each channel.
void SparsePattern::addDirect(Copies &made) const {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known; // by shapes
    for (const LocalChannel &channel : local_) {
        const RowGather &from = made.gathers[toSize(channel.from.shape)];
        const RowScatter &to = made.scatters[toSize(channel.to.shape)];
        // Ghosts that are one run need no table: the cells are gathered straight into them.
        if (to.contiguous()) { // a gather does it
            made.directOf.push_back(-1);
            continue;
        }
        const auto [at, isNew] =
            known.try_emplace({channel.from.shape, channel.to.shape}, static_cast<std::int32_t>(made.direct.size()));
        if (isNew)
            made.direct.emplace_back(from.byteBoxes(), BoxCopy(made.gathers[toSize(channel.to.shape)].byteBoxes()));
        made.directOf.push_back(at->second);
    }
}

void SparsePattern::Copies::copyLocal(std::size_t k, const LocalChannel &channel, const std::byte *from,
                                      std::byte *to) const {
    if (const std::int32_t number = directOf[k]; number >= 0)
        direct[toSize(number)].copy(from, to, nullptr);
    else
        gathers[toSize(channel.from.shape)].gather(from, to + scatters[toSize(channel.to.shape)].offset());
}

const SparsePattern::DeviceRows &SparsePattern::deviceRows(std::int32_t shape) const {
    if (deviceRows_.empty())
        makeDeviceRows();
    return deviceRows_[toSize(shape)];
}

/// The lists of all shapes in one buffer, 4 bytes a cell, once for all fields; ranges need no list. Members change
/// last, so that an error leaves nothing half made.
void SparsePattern::makeDeviceRows() const {
    std::vector<std::uint32_t> all;
    std::vector<std::size_t> starts;
    for (const RowList &shape : shapes_) {
        starts.push_back(all.size());
        if (shape.isRange())
            continue;
        shape.forEach([&](index row) {
            DNDS_CHECK(row >= 0 && row <= std::numeric_limits<std::uint32_t>::max(), ArgumentError,
                       "a block has {} cells: too many for the device", row);
            all.push_back(static_cast<std::uint32_t>(row));
        });
    }
    Device::DeviceBuffer<std::uint32_t> rows(all.size());
    const Device::Stream stream;
    if (!all.empty())
        Device::copy(rows.data(), MemorySpace::Device, all.data(), MemorySpace::Host, all.size() * sizeof all[0],
                     stream);
    stream.synchronize();
    std::vector<DeviceRows> made;
    for (std::size_t k = 0; k < shapes_.size(); ++k)
        made.push_back({shapes_[k].isRange() ? nullptr : rows.data() + starts[k],
                        shapes_[k].isRange() ? shapes_[k].first() : 0, shapes_[k].count()});
    rowsOnDevice_ = std::move(rows);
    deviceRows_ = std::move(made);
}

index SparsePattern::maxCells() const noexcept {
    index most = 0;
    for (const RowList &rows : shapes_)
        most = std::max(most, rows.count());
    return most;
}

} // namespace DNDS
