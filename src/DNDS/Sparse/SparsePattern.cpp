#include "DNDS/Sparse/SparsePattern.hpp"

#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Transport/BoxCopy.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace DNDS {

/// Turns links, whose rows are those of a dense field, into channels between blocks with memory of their own. Most
/// blocks are of one shape, so that few kinds of rows remain.
class SparsePattern::Builder {
  public:
    Builder(SparsePattern &made, const BlockLinks &links) : made_(made) {
        for (const BlockMemory &block : links.blocks) {
            firstRows_.push_back(block.firstRow);
            made_.blocks_.push_back(block);
            made_.blocks_.back().firstRow = 0;
        }
        const int rank = made_.context_->comm().rank();
        for (const PeerLinks &peer : links.given)
            for (const BlockLink &link : peer.links)
                (peer.rank == rank ? localFrom_ : peers_[peer.rank].given).push_back(endOf(link));
        for (const PeerLinks &peer : links.received)
            for (const BlockLink &link : peer.links)
                (peer.rank == rank ? localTo_ : peers_[peer.rank].received).push_back(endOf(link));
        for (std::size_t k = 0; k < localFrom_.size(); ++k)
            made_.local_.push_back({localFrom_[k], localTo_[k]});
        for (auto &[peer, channels] : peers_) {
            channels.rank = peer;
            made_.peers_.push_back(std::move(channels));
        }
        made_.shapes_ = std::move(shapes_);
        sortByBlock();
    }

  private:
    ChannelEnd endOf(const BlockLink &link) {
        const int block = made_.localOf(link.block);
        RowBox rows = link.rows;
        rows.first -= firstRows_[toSize(block)];
        const auto [shape, isNew] =
            numbers_.try_emplace({rows.first, rows.counts, rows.strides}, static_cast<std::int32_t>(shapes_.size()));
        if (isNew)
            shapes_.push_back(rows);
        return {block, shape->second};
    }

    /// `items` are (block, item).
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

    void sortByBlock() {
        std::vector<std::pair<std::int32_t, Place>> given;
        std::vector<std::pair<std::int32_t, Place>> received;
        for (std::size_t p = 0; p < made_.peers_.size(); ++p) {
            const auto place = [p](std::size_t k) {
                return Place{static_cast<std::int32_t>(p), static_cast<std::int32_t>(k)};
            };
            const PeerChannels &peer = made_.peers_[p];
            for (std::size_t k = 0; k < peer.given.size(); ++k)
                given.emplace_back(peer.given[k].block, place(k));
            for (std::size_t k = 0; k < peer.received.size(); ++k)
                received.emplace_back(peer.received[k].block, place(k));
        }
        made_.given_ = sorted(given);
        made_.received_ = sorted(received);
        std::vector<std::pair<std::int32_t, std::int32_t>> from;
        std::vector<std::pair<std::int32_t, std::int32_t>> to;
        for (std::size_t k = 0; k < made_.local_.size(); ++k) {
            from.emplace_back(made_.local_[k].from.block, static_cast<std::int32_t>(k));
            to.emplace_back(made_.local_[k].to.block, static_cast<std::int32_t>(k));
        }
        made_.localFrom_ = sorted(from);
        made_.localTo_ = sorted(to);
    }

    using Loops = std::array<index, RowBox::loops>;

    SparsePattern &made_;
    std::vector<index> firstRows_;
    std::map<int, PeerChannels> peers_;
    std::vector<ChannelEnd> localFrom_;
    std::vector<ChannelEnd> localTo_;
    std::vector<RowBox> shapes_;
    std::map<std::tuple<index, Loops, Loops>, std::int32_t> numbers_;
};

SparsePattern::SparsePattern()
    : pool_("blocks of sparse fields", [](std::size_t bytes) { return HostDeviceBuffer(bytes); }) {}

SparsePattern::~SparsePattern() = default;

std::shared_ptr<const SparsePattern>
SparsePattern::make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts) {
    return failTogether(comm, [&] {
        const auto context = CommunicatorContext::of(comm);
        const BlockLinks links = blockLinksOf(*context, grid.get(), ghosts, 0);
        const std::shared_ptr<SparsePattern> made(new SparsePattern);
        made->grid_ = std::move(grid);
        made->ghosts_ = ghosts;
        made->context_ = context;
        const Builder build(*made, links);
        return std::shared_ptr<const SparsePattern>(made);
    });
}

int SparsePattern::localOf(int number) const noexcept {
    const auto found = std::ranges::lower_bound(blocks_, number, {}, &BlockMemory::block);
    return found != blocks_.end() && found->block == number ? static_cast<int>(found - blocks_.begin()) : -1;
}

const std::vector<BoxCopy> &SparsePattern::copies(std::size_t cellBytes) const {
    auto &known = copies_[cellBytes];
    if (known == nullptr) {
        auto made = std::make_unique<std::vector<BoxCopy>>();
        for (const RowBox &rows : shapes_)
            made->emplace_back(RowList::boxes({&rows, 1}), cellBytes);
        known = std::move(made);
    }
    return *known;
}

index SparsePattern::mostCells() const noexcept {
    index most = 0;
    for (const RowBox &rows : shapes_)
        most = std::max(most, rows.size());
    return most;
}

} // namespace DNDS
