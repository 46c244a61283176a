#include "DNDS/Transport/BoxToBox.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Transport/StreamWriter.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace DNDS {

namespace {

static_assert(std::is_trivially_copyable_v<PlacedBox>, "writers copy it from the reader's memory");

/// One loop of a nest: `count` steps of `stride` bytes.
struct ByteLoop {
    index count;
    index stride;
};

/// The loops of a box, innermost first, with the bytes of a run as the innermost loop.
std::array<ByteLoop, RowBox::loops + 1> loopsOf(const ByteBox &box) {
    std::array<ByteLoop, RowBox::loops + 1> loops{};
    loops[0] = {static_cast<index>(box.bytes), 1};
    for (std::size_t d = 0; d < RowBox::loops; ++d)
        loops[RowBox::loops - d] = {box.runs.counts[d], box.runs.strides[d]};
    return loops;
}

/// Common loops over all bytes of both boxes, of equal size; nothing if counts do not divide each other. Both nests
/// are read from the innermost loop outwards, as digits of mixed radix: the smaller of two counts becomes a loop of
/// the piece, and the rest of the larger one, if it divides, waits for the next loop of the other side. O(loops).
/// Example: 4 runs of 40 bytes, 100 apart, against 2 runs of 80 bytes, 200 apart, make runs of 40 bytes in two loops
/// of 2, with strides of 200 and 100 in the source and of 200 and 40 in the destination.
std::optional<BoxToBox::Piece> commonLoops(const ByteBox &from, const ByteBox &to) {
    auto source = loopsOf(from);
    auto destination = loopsOf(to);
    BoxToBox::Piece piece;
    piece.from = from.runs.first;
    piece.to = to.runs.first;
    std::size_t made = 0; // the run is the first of them
    for (std::size_t s = 0, d = 0; s < source.size() && d < destination.size();) {
        ByteLoop &a = source[s];
        ByteLoop &b = destination[d];
        const index count = std::min(a.count, b.count);
        if (a.count % count != 0 || b.count % count != 0 || (count > 1 && made > RowBox::loops))
            return std::nullopt;
        if (made == 0) {
            piece.bytes = static_cast<std::size_t>(count);
            ++made;
        } else if (count > 1) {
            const std::size_t loop = RowBox::loops - made++;
            piece.counts[loop] = count;
            piece.fromStrides[loop] = a.stride;
            piece.toStrides[loop] = b.stride;
        }
        a = {a.count / count, a.stride * count};
        b = {b.count / count, b.stride * count};
        s += a.count == 1 ? 1 : 0;
        d += b.count == 1 ? 1 : 0;
    }
    return piece;
}

/// The boxes of one side in order, the first of which may have been split.
class BoxFeed {
  public:
    explicit BoxFeed(std::span<const ByteBox> boxes) : boxes_(boxes) {}

    bool empty() const noexcept { return cut_.empty() && boxes_.empty(); }
    const ByteBox &front() const noexcept { return cut_.empty() ? boxes_.front() : cut_.back(); }
    ByteBox take() {
        const ByteBox box = front();
        if (cut_.empty())
            boxes_ = boxes_.subspan(1);
        else
            cut_.pop_back();
        return box;
    }
    /// Splits the first box: one run after `bytes` bytes, more runs along the outermost loop.
    /// Splitting off steps of the outermost loop keeps inner loops whole, which are the ones that match the other
    /// side.
    void cut(std::size_t bytes) {
        // Each cut leaves less to match: in the end single runs, whose bytes always match.
        const ByteBox box = take();
        const auto loop = std::ranges::find_if(box.runs.counts, [](index count) { return count > 1; });
        ByteBox part = box;
        if (loop == box.runs.counts.end()) {
            part.runs.first += static_cast<index>(bytes);
            part.bytes -= bytes;
            cut_.push_back(part);
            part = box;
            part.bytes = bytes;
            cut_.push_back(part);
            return;
        }
        const auto d = static_cast<std::size_t>(loop - box.runs.counts.begin());
        part.runs.counts[d] = 1;
        for (index k = box.runs.counts[d]; k-- > 0;) {
            part.runs.first = box.runs.first + k * box.runs.strides[d];
            cut_.push_back(part);
        }
    }

  private:
    std::span<const ByteBox> boxes_;
    std::vector<ByteBox> cut_; ///< parts to take before them, the first one last
};

/// Takes the first bytes of both sides, up to the most that one piece can have.
/// Terminates: each cut makes a box smaller, down to single runs, and runs of equal length always match.
BoxToBox::Piece takePiece(BoxFeed &from, BoxFeed &to) {
    for (;;) {
        const ByteBox &a = from.front();
        const ByteBox &b = to.front();
        if (a.size() == b.size()) {
            if (const auto piece = commonLoops(a, b)) {
                from.take();
                to.take();
                return *piece;
            }
        }
        // The larger one; of two that do not match the one with several runs.
        if (a.size() > b.size() || (a.size() == b.size() && a.runs.size() > 1))
            from.cut(b.size());
        else
            to.cut(a.size());
    }
}

std::vector<PlacedBox> allInPlace(const BoxCopy &rows) {
    std::vector<PlacedBox> boxes;
    for (const ByteBox &box : rows.boxes())
        boxes.push_back({box, 0});
    return boxes;
}

/// The tile of a transpose: where the next loop is faster in the source than that over runs, this many runs are copied
/// for each of its steps. As many lines of the source stay in the nearest cache until they are used up.
constexpr index runsPerTile = 16;

/// Calls `copyRun(to, from)` for each run.
/// Loop tiling, as for the transpose of a matrix: without it a source whose fast loop is outside would use one run of
/// each cache line that it loads.
template <class CopyRun>
void forEachRun(const BoxToBox::Piece &piece, const std::byte *from, std::byte *to, CopyRun &&copyRun) {
    // Loops outermost first; the innermost but one is exchanged with a tile of the innermost if it steps through
    // the source in smaller strides.
    const auto &[c0, c1, c2, c3, runs] = piece.counts;
    const auto &f = piece.fromStrides;
    const auto &t = piece.toStrides;
    const index tile = std::abs(f[3]) < std::abs(f[4]) && c3 > 1 ? runsPerTile : runs;
    for (index i = 0; i < c0; ++i)
        for (index j = 0; j < c1; ++j)
            for (index k = 0; k < c2; ++k)
                for (index begin = 0; begin < runs; begin += tile)
                    for (index l = 0; l < c3; ++l) {
                        const std::byte *read = from + i * f[0] + j * f[1] + k * f[2] + l * f[3];
                        std::byte *write = to + i * t[0] + j * t[1] + k * t[2] + l * t[3];
                        for (index run = begin; run < std::min(begin + tile, runs); ++run)
                            copyRun(write + run * t[4], read + run * f[4]);
                    }
}

// O(bytes). One loop nest a piece; run lengths of a few doubles have loops compiled for them (`withRunLength`).
void copyPiece(const BoxToBox::Piece &piece, const std::byte *from, std::byte *to) {
    // Large pieces of long runs go past the caches, whose contents they would only push out; a slot is read soon
    // and stays in them.
    std::size_t all = piece.bytes;
    for (const index count : piece.counts)
        all *= toSize(count);
    if (!piece.inSlot && isStreamed(piece.bytes, all)) {
        forEachRun(piece, from, to,
                   [&](std::byte *write, const std::byte *read) { streamRun(write, read, piece.bytes); });
        endStreaming();
        return;
    }
    withRunLength(piece.bytes, [&]<std::size_t Bytes>() {
        const std::size_t bytes = Bytes > 0 ? Bytes : piece.bytes;
        forEachRun(piece, from, to, [=](std::byte *write, const std::byte *read) { std::memcpy(write, read, bytes); });
    });
}

} // namespace

PlacedRows placeByRunLength(const BoxCopy &rows) {
    PlacedRows placed;
    std::vector<ByteBox> packed;
    for (const ByteBox &box : rows.boxes()) {
        const bool inSlot = box.bytes < shortestRunInPlace;
        placed.boxes.push_back({box, inSlot ? 1U : 0U});
        if (inSlot)
            packed.push_back(box);
    }
    placed.slot = BoxCopy(std::move(packed));
    return placed;
}

BoxToBox::BoxToBox(std::span<const ByteBox> from, const BoxCopy &to) : BoxToBox(from, allInPlace(to)) {}

BoxToBox::BoxToBox(std::span<const ByteBox> from, std::span<const PlacedBox> to) {
    // Takes piece after piece from both sides, in the order of bytes, until the destinations are full. O(boxes)
    // where loops match; a box whose loops do not divide the other side's is cut into its runs.
    std::size_t given = 0;
    for (const ByteBox &box : from)
        given += box.size();
    std::size_t taken = 0;
    for (const PlacedBox &placed : to)
        taken += placed.box.size();
    DNDS_CHECK(given == taken, ArgumentError, "boxes of {} bytes cannot be copied to boxes of {} bytes", given, taken);
    BoxFeed source(from);
    std::size_t packed = 0;
    for (const PlacedBox &placed : to) {
        const bool inSlot = placed.inSlot != 0;
        // In the slot the bytes of a box are contiguous: one run.
        const ByteBox box = inSlot ? ByteBox{RowBox{static_cast<index>(packed)}, placed.box.size()} : placed.box;
        packed += inSlot ? box.bytes : 0;
        BoxFeed destination({&box, 1});
        while (!destination.empty()) {
            pieces_.push_back(takePiece(source, destination));
            pieces_.back().inSlot = inSlot;
        }
    }
}

void BoxToBox::copy(const std::byte *from, std::byte *to, std::byte *slot) const {
    for (const Piece &piece : pieces_)
        copyPiece(piece, from + piece.from, (piece.inSlot ? slot : to) + piece.to);
}

} // namespace DNDS
