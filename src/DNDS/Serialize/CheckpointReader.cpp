#include "DNDS/Serialize/Checkpoint.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"
#include "DNDS/Serialize/HdfDescription.hpp"
#include "DNDS/Serialize/RowBlocks.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

namespace DNDS {

namespace {

using Detail::RowSlab;

// The sizes were checked against the file: this reads within it.
template <class T>
std::vector<T> readList(const DurableFile &file, index place, index count) {
    std::vector<T> list(static_cast<std::size_t>(count));
    file.readAt(place, std::as_writable_bytes(std::span(list)));
    return list;
}

/// Compares the checksums of this rank's blocks of one dataset; `bytesOf` returns the bytes of rows.
/// O(bytes of the blocks). A damaged block is named by its rows, so that one can tell what is lost.
template <class BytesOf>
void checkBlocks(const DurableFile &file, const CheckpointArray &array, const Detail::FileRanks &files, int rank,
                 const char *dataset, const CheckpointPlace &place, BytesOf &&bytesOf) {
    const Detail::BlockSpread spread(array, files);
    const index first = spread.firstBlock(rank);
    const auto sums = readList<std::uint32_t>(file, place.checksums + first * static_cast<index>(sizeof(std::uint32_t)),
                                              spread.firstBlock(rank + 1) - first);
    Detail::forEachBlock(array, files, rank, [&](index block, index begin, index end) {
        const std::uint32_t found = Detail::crc32Of(bytesOf(begin, end));
        const std::uint32_t stored = sums[static_cast<std::size_t>(block - first)];
        DNDS_CHECK(
            found == stored, DataError,
            "{} is damaged: the {} of array {}, rows {} to {}, have checksum {:08x}, but {:08x} was written; use "
            "an older checkpoint",
            file.path(), dataset, array.name, block * array.blockRows,
            std::min(array.rows, (block + 1) * array.blockRows) - 1, found, stored);
    });
}

/// Reads and checks this rank's blocks. Local.
/// Reads the checksums of each dataset's blocks and compares before anything uses the values; offsets and ids must
/// ascend, as searches rely on that.
/// At most two reads for each dataset, of consecutive bytes. O(bytes of the blocks) memory.
RowSlab readSlab(const DurableFile &file, const CheckpointArray &array, const Detail::FileRanks &files, int rank) {
    const std::string &path = file.path();
    const Detail::BlockSpread spread(array, files);
    constexpr auto word = static_cast<index>(sizeof(index));
    RowSlab slab;
    slab.first = spread.firstRow(rank);
    const index rows = slab.rows = spread.firstRow(rank + 1) - slab.first;
    slab.rowBytes = array.width * array.elementBytes;
    // No block: this rank may not have opened the file.
    if (spread.firstBlock(rank) == spread.firstBlock(rank + 1))
        return slab;
    index before = slab.first * slab.rowBytes;
    if (array.ragged) {
        const std::vector<index> starts = readList<index>(file, array.offsets.values + slab.first * word, rows + 1);
        checkBlocks(file, array, files, rank, "offsets", array.offsets, [&](index begin, index end) {
            return std::as_bytes(
                std::span(starts).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin) + 1));
        });
        DNDS_CHECK(starts.front() >= 0 && starts.back() <= array.elements &&
                       std::is_sorted(starts.begin(), starts.end()),
                   DataError, "{} is damaged: offsets of array {} do not ascend", path, array.name);
        // Offsets of the slab count bytes from its own begin.
        before = starts.front() * array.elementBytes;
        slab.offsets.resize(starts.size());
        for (std::size_t i = 0; i < starts.size(); i++)
            slab.offsets[i] = (starts[i] - starts.front()) * array.elementBytes;
    }
    if (array.listed) {
        slab.ids = readList<index>(file, array.ids.values + slab.first * word, rows);
        checkBlocks(file, array, files, rank, "ids", array.ids, [&](index begin, index end) {
            return std::as_bytes(
                std::span(slab.ids).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
        });
        DNDS_CHECK(std::adjacent_find(slab.ids.begin(), slab.ids.end(), std::greater_equal<>()) == slab.ids.end(),
                   DataError, "{} is damaged: ids of array {} do not ascend", path, array.name);
    }
    slab.values = readList<std::byte>(file, array.values.values + before, slab.start(rows));
    checkBlocks(file, array, files, rank, "values", array.values,
                [&](index begin, index end) { return slab.bytes(begin, end); });
    return slab;
}

/// Throws if rows of the file do not fit `array`. Local.
/// In the order of certainty: type, kind of rows, width, shape of matrices.
void checkFit(const std::string &path, const CheckpointArray &stored, const ArrayBase &array) {
    const ArrayShape &shape = array.shape();
    DNDS_CHECK(stored.kind == shape.kind && stored.elementBytes == static_cast<index>(shape.elementBytes), LayoutError,
               "{}: elements of {} are {}[{}], those of {} are {}[{}]", path, stored.name, elementKindName(stored.kind),
               stored.elementBytes, array.label(), elementKindName(shape.kind), shape.elementBytes);
    const bool fixed = isFixedLayout(shape.layout);
    DNDS_CHECK(fixed == !stored.ragged, LayoutError, "{}: rows of {} have {}, those of {} have {}", path, stored.name,
               stored.ragged ? "differing sizes" : "one size", array.label(), fixed ? "one size" : "differing sizes");
    DNDS_CHECK(!fixed || stored.rows == 0 || array.width() == DynamicSize || array.width() == stored.width, LayoutError,
               "{}: rows of {} have {} elements, those of {} have {}", path, stored.name, stored.width, array.label(),
               array.width());
    const MatrixShape matrix = array.shapeOfWidth(fixed ? static_cast<rowsize>(stored.width) : 0);
    const bool whole = !fixed || shape.declared == MatrixShape{} || matrix.size() == stored.width;
    DNDS_CHECK(
        stored.rows == 0 || (matrix.chosen() && whole), LayoutError,
        "{}: the shape of the matrices of {} was not chosen, and does not follow from rows of {} of {} elements: "
        "choose it first, by resize(0, rows, columns)",
        path, array.label(), stored.name, stored.ragged ? "different numbers of" : fmt::format("{}", stored.width));
}

/// Gives `array` rows of the sizes of `rows`.
/// Widths that the array has not chosen come from the file.
void fitRows(ArrayBase &array, const CheckpointArray &stored, std::span<const std::span<const std::byte>> rows,
             index longest) {
    const auto count = static_cast<index>(rows.size());
    const auto sizeOf = [&](index i) { return static_cast<index>(rows[toSize(i)].size()) / stored.elementBytes; };
    if (isFixedLayout(array.shape().layout) && !array.valid(MemorySpace::Host))
        array.resize(0); // what a device computed is replaced
    if (!isFixedLayout(array.shape().layout) && array.width() == DynamicSize)
        array.resize(count, static_cast<rowsize>(longest), sizeOf);
    else if (!isFixedLayout(array.shape().layout))
        array.resize(count, sizeOf);
    else if (array.width() == DynamicSize)
        array.resize(count, static_cast<rowsize>(stored.width));
    else
        array.resize(count);
}

// A wrong type names the function that reads the value.
template <class T>
const T &valueOf(const CheckpointContent &content, const std::string &path, std::string_view name, const char *kind) {
    const auto found = content.values.find(name);
    DNDS_CHECK(found != content.values.end(), ArgumentError, "{} has no value {}; it has:\n{}", path, name,
               content.manifest());
    const T *value = std::get_if<T>(&found->second);
    constexpr std::array readers{"integer", "number", "text"}; // as the types of CheckpointValue
    DNDS_CHECK(value != nullptr, LayoutError, "{}: value {} is no {}: read it by {}(\"{}\")", path, name, kind,
               readers.at(found->second.index()), name);
    return *value;
}

// Single values are stored as lists of one.
template <class T>
T single(const std::vector<T> &list, const std::string &path, std::string_view name) {
    DNDS_CHECK(list.size() == 1, LayoutError, "{}: value {} is a list of {}", path, name, list.size());
    return list.front();
}

} // namespace

CheckpointReader::CheckpointReader(CommunicatorView comm, std::string path, const CheckpointReadOptions &options)
    : comm_(comm), path_(std::move(path)), readers_(options.readers), meshKnown_(options.anyMesh || options.mesh) {
    failTogether(comm_, [&] {
        DNDS_CHECK(readers_ >= 0, ArgumentError, "{} ranks cannot read a checkpoint: 0 leaves it to DNDS", readers_);
        DNDS_CHECK(isSameOnAll(comm_, static_cast<std::uint64_t>(readers_)), ArgumentError,
                   "{}: the option readers differs between ranks: give the same on all ranks", path_);
        constexpr int attempts = 10; // a file may be replaced while ranks open it, but not this often
        bool same = false;
        for (int attempt = 0; !same && attempt < attempts; attempt++)
            same = open();
        DNDS_CHECK(same, DataError,
                   "ranks find different files at {}: give a path that is the same file on all, and one that is not "
                   "written meanwhile",
                   path_);
        if (options.mesh && !options.anyMesh)
            requireMesh(*options.mesh);
    });
}

Detail::FileRanks CheckpointReader::fileRanks() const { return {comm_.size(), readers_}; }

// Rank 0 reads the description for all. Ranks that will read blocks open the file, too, and compare its header with
// rank 0's. False if ranks found different files, as when a new checkpoint replaces the old one meanwhile.
// Load on the file system: one rank reads the description; about as many ranks as FileRanks allows read a header of 4
// KiB.
bool CheckpointReader::open() {
    DurableFile file;
    Detail::FileImage image;
    std::uint64_t identity = 0;
    onRankZero(comm_, [&] {
        file = DurableFile::forReading(path_);
        image = Detail::readImage(file);
        identity = Detail::identityOf(file);
    });
    comm_.broadcast(identity);
    comm_.broadcast(image.bytes);
    broadcastList(comm_, image.front);
    int different = 0;
    comm_.guarded([&] {
        content_ = Detail::contentOf(image, path_);
        const bool reads = std::any_of(content_.arrays.begin(), content_.arrays.end(), [&](const auto &array) {
            // Ranks without blocks leave the file closed.
            const Detail::BlockSpread spread(array, fileRanks());
            return spread.firstBlock(comm_.rank()) < spread.firstBlock(comm_.rank() + 1);
        });
        if (reads && comm_.rank() != 0) {
            file = DurableFile::forReading(path_);
            different = Detail::identityOf(file) == identity ? 0 : 1;
        }
        file_ = std::make_shared<const DurableFile>(std::move(file));
    });
    return comm_.allReduce(different, MPI_MAX) == 0;
}

void CheckpointReader::requireMesh(std::uint64_t mesh) const {
    DNDS_CHECK(!content_.mesh || *content_.mesh == mesh, ArgumentError,
               "{} is for another mesh: its cells, nodes or their order differ (fingerprint {:016x}, and this one has "
               "{:016x}). Read the mesh that it was written for, or ask for rows of any mesh by name (anyMesh)",
               path_, content_.mesh.value_or(0), mesh);
}

const CheckpointArray &CheckpointReader::array(std::string_view name) const {
    const auto found = std::ranges::find(content_.arrays, name, &CheckpointArray::name);
    DNDS_CHECK(found != content_.arrays.end(), ArgumentError, "{} has no array {}; it has:\n{}", path_, name,
               content_.manifest());
    return *found;
}

bool CheckpointReader::has(std::string_view name) const noexcept {
    return content_.values.contains(name) ||
           std::ranges::find(content_.arrays, name, &CheckpointArray::name) != content_.arrays.end();
}

const std::vector<index> &CheckpointReader::integers(std::string_view name) const {
    return valueOf<std::vector<index>>(content_, path_, name, "integer");
}
const std::vector<real> &CheckpointReader::numbers(std::string_view name) const {
    return valueOf<std::vector<real>>(content_, path_, name, "floating-point number");
}
const std::string &CheckpointReader::text(std::string_view name) const {
    return valueOf<std::string>(content_, path_, name, "text");
}
index CheckpointReader::integer(std::string_view name) const { return single(integers(name), path_, name); }
real CheckpointReader::number(std::string_view name) const { return single(numbers(name), path_, name); }

void CheckpointReader::read(std::string_view name, ArrayBase &array, std::span<const index> ids) const {
    readRows(name, array, ids, {}, {});
}

// Everything is received and checked before `target` changes. Order: agree on the name,
// fit type and shape, fetch rows (two sparse exchanges), check sizes, then resize and fill. Memory: the received
// rows and, if rows of this rank are among them, its blocks, with the target.
// Cost: every row moves once, from the rank of its block to the rank that asks; a row may be asked for by several.
void CheckpointReader::readRows(std::string_view name, ArrayBase &target, std::span<const index> ids,
                                std::span<const index> sizes, const std::function<void()> &resize) const {
    failTogether(comm_, [&] {
        const CheckpointArray &stored = array(name);
        ContentHash ofName;
        ofName.addText(name);
        DNDS_CHECK(
            isSameOnAll(comm_, ofName.value()), ArgumentError,
            "{}: rank {} reads {} while another rank reads another array: read arrays in the same order on all ranks",
            path_, comm_.rank(), name);
        DNDS_CHECK(meshKnown_ || !content_.mesh, ArgumentError,
                   "{} is for one mesh: open it with the fingerprint of the mesh that rows are read for "
                   "(CheckpointReadOptions::mesh), or ask for rows of any mesh by name (anyMesh)",
                   path_);
        comm_.guarded([&] { checkFit(path_, stored, target); });
        // This rank's blocks, from which it answers the others. Its failure travels with the exchange.
        RowSlab slab;
        std::exception_ptr failure;
        attempt(failure, [&] { slab = readSlab(*file_, stored, fileRanks(), comm_.rank()); });
        const Detail::ArrivedRows arrived =
            Detail::fetchRows(*CommunicatorContext::of(comm_), fileRanks(), stored, std::move(slab), ids, failure);
        index longest = 0;
        for (const auto &row : arrived.rows)
            longest = std::max(longest, static_cast<index>(row.size()) / stored.elementBytes);
        if (stored.ragged)
            longest = comm_.allReduce(longest, MPI_MAX);
        DNDS_CHECK(longest <= std::numeric_limits<rowsize>::max(), LayoutError,
                   "{}: a row of {} has {} elements, and rows of arrays have at most {}", path_, stored.name, longest,
                   std::numeric_limits<rowsize>::max());
        DNDS_CHECK(!isPaddedLayout(target.shape().layout) || target.width() == DynamicSize || longest <= target.width(),
                   LayoutError, "{}: rows of {} do not fit: one has {} elements, and {} takes {}", path_, stored.name,
                   longest, target.label(), target.width());
        comm_.guarded([&] {
            for (std::size_t i = 0; i < sizes.size(); i++) {
                // Sizes that follow from shapes of matrices, which were read before.
                const auto bytes = static_cast<index>(arrived.rows[i].size());
                DNDS_CHECK(bytes % stored.elementBytes == 0 && bytes / stored.elementBytes == sizes[i], DataError,
                           "{}: row {} of {} has {} elements, and its shape says {}", path_, ids[i], stored.name,
                           bytes / stored.elementBytes, sizes[i]);
            }
        });
        comm_.guarded([&] {
            if (resize)
                resize();
            else
                fitRows(target, stored, arrived.rows, longest);
            const RowLayout layout = target.rowLayout(MemorySpace::Host, Access::Write);
            for (index i = 0; i < target.size(); i++)
                std::ranges::copy(arrived.rows[toSize(i)], layout.parts[0].base + layout.parts[0].begin(i));
        });
    });
}

// Ids that are listed are in the file's blocks, on the ranks that read them, and are sent to their shares.
// Shares are even, disjoint and complete, so any number of ranks reads each row once.
std::vector<index> CheckpointReader::ownBlock(std::string_view name) const {
    const CheckpointArray &stored = array(name);
    RowSlab slab;
    std::vector<index> ids;
    comm_.guarded([&] {
        if (stored.listed) {
            slab = readSlab(*file_, stored, fileRanks(), comm_.rank());
        } else {
            // Ids that are not listed are row numbers.
            const IndexRange share = EvenSplit(stored.rows, comm_.size()).part(comm_.rank());
            ids.resize(static_cast<std::size_t>(share.size()));
            std::iota(ids.begin(), ids.end(), share.begin);
        }
    });
    return stored.listed ? Detail::shareIds(*CommunicatorContext::of(comm_), stored, slab) : ids;
}

// Each rank reads the blocks that it would serve.
void CheckpointReader::verify() const {
    comm_.guarded([&] {
        for (const CheckpointArray &stored : content_.arrays)
            (void)readSlab(*file_, stored, fileRanks(), comm_.rank());
    });
}

} // namespace DNDS
