#include "DNDS/Serialize/Checkpoint.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"
#include "DNDS/Serialize/HdfDescription.hpp"
#include "DNDS/Serialize/RowBlocks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

constexpr index pageBytes = 4096;
constexpr std::size_t longestValue = 60000; ///< an attribute has at most 64 KiB
constexpr index mostBlockRows = index{1} << 40;

/// Rows per checksum: about `blockBytes`, and whole pages if rows are fixed, so that no two ranks write to one page.
/// Depends on the array alone, not on ranks: files of any number of writers have the same blocks and checksums.
index blockRowsOf(const CheckpointArray &array, index blockBytes) {
    const index bytes = array.elements * array.elementBytes;
    if (array.rows == 0 || bytes == 0)
        return std::max<index>(1, array.rows);
    index rows = std::max<index>(1, blockBytes / std::max<index>(1, bytes / array.rows));
    if (!array.ragged) {
        const index rowBytes = array.width * array.elementBytes;
        // Least number of rows that fill whole pages.
        const index step = pageBytes / std::gcd(pageBytes, rowBytes);
        if (rows > step)
            rows -= rows % step;
    }
    return std::min(rows, mostBlockRows);
}

template <class T>
std::span<const std::byte> asBytes(const std::vector<T> &values, std::size_t begin, std::size_t count) {
    return std::as_bytes(std::span<const T>(values).subspan(begin, count));
}

/// Writes a rank's part of one dataset and the checksums of its blocks. Blocks are added in order, then written once:
/// values and checksums each by one call.
class DatasetWriter {
  public:
    DatasetWriter(const DurableFile &file, const CheckpointPlace &place, index firstBlock)
        : file_(file), place_(place), firstBlock_(firstBlock) {}

    void addBlock(std::span<const std::byte> bytes) { sums_.push_back(Detail::crc32Of(bytes)); }
    /// A hash of all checksums; the hashes of all ranks and datasets are added.
    /// Sums modulo 2^64 do not depend on order, so the total over ranks does not depend on which rank wrote which
    /// blocks.
    std::uint64_t contentHash() const {
        std::uint64_t sum = 0;
        for (std::size_t b = 0; b < sums_.size(); b++) {
            ContentHash hash;
            // With the place of each checksum, so that exchanged blocks give another sum.
            hash.add(static_cast<std::uint64_t>(place_.checksums) + sizeof sums_[b] * (toSize(firstBlock_) + b));
            hash.add(sums_[b]);
            sum += hash.value();
        }
        return sum;
    }
    // The values and the checksums of all blocks: two writes for each dataset.
    void write(index byte, std::span<const std::byte> bytes) const {
        file_.writeAt(place_.values + byte, bytes);
        file_.writeAt(place_.checksums + firstBlock_ * static_cast<index>(sizeof(std::uint32_t)),
                      asBytes(sums_, 0, sums_.size()));
    }

  private:
    const DurableFile &file_;
    CheckpointPlace place_;
    index firstBlock_;
    /// One CRC-32 a block, from `firstBlock_` on.
    std::vector<std::uint32_t> sums_;
};

/// Writes a rank's blocks of an array and returns a hash of their content. `before`: the bytes of lower ranks. Local.
/// An array without rows is written by rank 0, whose file is always open.
/// O(rows) time and 4 bytes a block; at most two writes for each of the three datasets. Ranks write disjoint ranges,
/// except the boundary offset that both neighbours write with the same value.
std::uint64_t writeSlab(const DurableFile &file, const CheckpointArray &array, const Detail::FileRanks &files, int rank,
                        const Detail::RowSlab &slab, index before) {
    const index firstBlock = Detail::BlockSpread(array, files).firstBlock(rank);
    constexpr auto word = static_cast<index>(sizeof(index));
    // Nothing to write, and perhaps no file that is open.
    if (slab.rows == 0 && !(array.rows == 0 && rank == 0))
        return 0;
    std::vector<index> starts;
    if (array.ragged)
        for (const index byte : slab.offsets)
            // In elements from the array's first one, over all ranks.
            starts.push_back((before + byte) / array.elementBytes);
    DatasetWriter values(file, array.values, firstBlock);
    DatasetWriter offsets(file, array.offsets, firstBlock);
    DatasetWriter ids(file, array.ids, firstBlock);
    Detail::forEachBlock(array, files, rank, [&](index, index begin, index end) {
        const auto from = static_cast<std::size_t>(begin);
        const auto count = static_cast<std::size_t>(end - begin);
        values.addBlock(slab.bytes(begin, end));
        if (array.ragged)
            offsets.addBlock(asBytes(starts, from, count + 1));
        if (array.listed)
            ids.addBlock(asBytes(slab.ids, from, count));
    });
    values.write(before, slab.values);
    if (array.ragged) // the end of the last row is the start of the next rank's first
        offsets.write(slab.first * word, asBytes(starts, 0, starts.size()));
    if (array.listed)
        ids.write(slab.first * word, asBytes(slab.ids, 0, slab.ids.size()));
    return values.contentHash() + offsets.contentHash() + ids.contentHash();
}

// Names become those of groups in HDF5.
void checkName(const std::string &name) {
    DNDS_CHECK(!name.empty() && name != "." && name.find('/') == std::string::npos && name.find('\0') == name.npos,
               ArgumentError, "'{}' is not a valid name in a checkpoint: it must not be empty or contain /", name);
}

/// A hash of everything that must be equal on all ranks.
std::uint64_t hashOf(const std::string &name, const ArrayBase &array) {
    ContentHash hash;
    hash.addText(name);
    hash.add(array.layoutHash());
    return hash.value();
}

} // namespace

/// An array that was added, and what all ranks together know of it.
struct CheckpointWriter::Source {
    std::string name;
    const ArrayBase *array;
    std::span<const index> ids;
    CheckpointArray description;
    bool idsOfPrevious = false; ///< whether, on all ranks, the ids are those of the previous array, in memory
};

CheckpointWriter::CheckpointWriter(CommunicatorView comm, std::string path, const CheckpointOptions &options)
    : comm_(comm), path_(std::move(path)), options_(options) {
    DNDS_CHECK(options.blockBytes > 0, ArgumentError, "blocks of a checkpoint cannot have {} bytes",
               options.blockBytes);
    DNDS_CHECK(options.writers >= 0, ArgumentError, "{} ranks cannot write a checkpoint: 0 leaves it to DNDS",
               options.writers);
}
CheckpointWriter::~CheckpointWriter() = default;

// A second value of a name replaces the first.
void CheckpointWriter::setValue(const std::string &name, CheckpointValue value) {
    checkName(name);
    const std::size_t bytes = std::visit([](const auto &list) { return list.size() * sizeof(list[0]); }, value);
    DNDS_CHECK(bytes <= longestValue, ArgumentError, "{} has {} bytes: a value may have at most {}; make it an array",
               name, bytes, longestValue);
    if (auto *text = std::get_if<std::string>(&value))
        DNDS_CHECK(text->find('\0') == std::string::npos, ArgumentError,
                   "{} is not a valid text: it contains a zero byte", name);
    content_.values.insert_or_assign(name, std::move(value));
}

void CheckpointWriter::add(const std::string &name, const ArrayBase &array, std::span<const index> ids) {
    sources_.push_back({name, &array, ids, {}});
}

bool CheckpointWriter::built() noexcept { return Detail::hasHdf5(); }

// The checks that need no other rank.
void CheckpointWriter::checkSources() const {
    for (const Source &source : sources_) {
        checkName(source.name);
        DNDS_CHECK(std::count_if(sources_.begin(), sources_.end(),
                                 [&](const Source &other) { return other.name == source.name; }) == 1,
                   ArgumentError, "two arrays are called {}", source.name);
        DNDS_CHECK(static_cast<index>(source.ids.size()) == source.array->size(), ArgumentError,
                   "{} has {} rows, but {} ids are given", source.name, source.array->size(), source.ids.size());
        for (const index id : source.ids)
            DNDS_CHECK(id >= 0, ArgumentError, "{}: the id {} is negative", source.name, id);
        // Before anything is written: all ranks then throw without a file.
        (void)source.array->rowLayout(MemorySpace::Host); // throws if the elements are not current on the host
    }
}

/// Combines the data of all ranks.
/// A few reductions, whatever the number of arrays: agreement, sums, extremes. Ids are 0, 1, ... if their least is 0
/// and their largest the number of rows less one; repeated ones are found when rows arrive.
/// O(rows) on each rank to find extremes. Ids of the array before are recognised by address on all ranks, which saves
/// their ranking in `writeFile`.
void CheckpointWriter::describe() {
    comm_.guarded([&] {
        for (const auto &copy : copyShapes_)
            copy();
        checkSources();
    });
    ContentHash all;
    for (const Source &source : sources_)
        all.add(hashOf(source.name, *source.array));
    ContentHash choices;
    choices.add(static_cast<std::uint64_t>(options_.blockBytes));
    choices.add(options_.mesh ? 1U : 0U);
    choices.add(options_.mesh.value_or(0));
    choices.add(static_cast<std::uint64_t>(options_.writers));
    // One bit less, as the negated value must be a number, too.
    const auto hash = static_cast<index>(all.value() >> 1U);
    const auto chosen = static_cast<index>(choices.value() >> 1U);
    std::array<index, 4> extremes{hash, -hash, chosen, -chosen};
    comm_.allReduce(extremes.data(), 4, MPI_MAX);
    DNDS_CHECK(extremes[2] == -extremes[3], ArgumentError,
               "{}: options (blockBytes, mesh, writers) differ between ranks: give the same on all ranks", path_);
    DNDS_CHECK(extremes[0] == -extremes[1], ArgumentError,
               "{}: arrays, their order or their types differ between ranks: add the same on all ranks", path_);

    // For each array: rows and elements; largest and least id, width twice, and whether its ids differ from those
    // before.
    std::vector<index> sums, most;
    for (const Source &source : sources_) {
        const ArrayBase &array = *source.array;
        index elements = 0;
        for (index i = 0; i < array.size(); i++)
            elements += array.rowSize(i);
        sums.insert(sums.end(), {array.size(), elements});
        const auto [least, largest] = std::minmax_element(source.ids.begin(), source.ids.end());
        constexpr index none = std::numeric_limits<index>::min();
        const bool fixed = isFixedLayout(array.shape().layout) && array.size() > 0;
        const index width = fixed ? array.rowSize() : none;
        const auto before = &source == sources_.data() ? std::span<const index>{} : (&source - 1)->ids;
        const bool same = before.data() == source.ids.data() && before.size() == source.ids.size();
        most.insert(most.end(), {source.ids.empty() ? none : *largest, source.ids.empty() ? none : -*least, width,
                                 fixed ? -width : none, same ? 0 : 1});
    }
    comm_.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
    comm_.allReduce(most.data(), static_cast<int>(most.size()), MPI_MAX);
    for (std::size_t s = 0; s < sources_.size(); s++) {
        const std::span<const index> own = std::span(most).subspan(5 * s, 5);
        sources_[s].idsOfPrevious = s > 0 && own[4] == 0;
        CheckpointArray &array = sources_[s].description;
        array = {};
        const ArrayShape &shape = sources_[s].array->shape();
        array.name = sources_[s].name;
        array.kind = shape.kind;
        array.elementBytes = static_cast<index>(shape.elementBytes);
        array.ragged = !isFixedLayout(shape.layout);
        array.rows = sums[2 * s];
        array.elements = sums[2 * s + 1];
        // Ids that are all row numbers need no list.
        array.listed = array.rows > 0 && (own[0] != array.rows - 1 || own[1] != 0);
        if (!array.ragged && array.rows > 0) {
            array.width = own[2];
            DNDS_CHECK(own[2] == -own[3], LayoutError, "rows of {} are {} elements wide on one rank and {} on another",
                       array.name, -own[3], own[2]);
        } else if (!array.ragged) {
            array.width = std::max<index>(0, shape.rowSize);
        }
        array.blockRows = blockRowsOf(array, options_.blockBytes);
    }
}

// The temporary file is removed on failure, by rank 0 alone.
index CheckpointWriter::write() {
    const ActivityScope activity("write of", path_);
    return failTogether(comm_, [&] {
        describe();
        const std::string temporary = path_ + ".part";
        const OnFailure undo([&] { // all ranks throw, here or when they leave
            if (comm_.rank() == 0)
                std::remove(temporary.c_str());
        });
        return writeFile(temporary);
    });
}

// Rank 0 makes the whole file except for values, at its full size; then arrays follow one after another, so that
// memory is needed for one. The header comes last: without it the file is no checkpoint. Collective; per array two or
// three sparse exchanges (ranks of ids, rows to the ranks of their blocks).
// Durability: each rank synchronises its own writes, all agree, rank 0 writes and synchronises the header, and only
// then the name changes. A crash at any time leaves the old checkpoint or the new one under the name.
index CheckpointWriter::writeFile(const std::string &temporary) {
    DurableFile file;
    Detail::FileImage image;
    std::vector<index> places(6 * sources_.size() + 1); // of datasets in the file, and its size
    onRankZero(comm_, [&] {
        content_.arrays.clear();
        for (const Source &source : sources_)
            content_.arrays.push_back(source.description);
        content_.mesh = options_.mesh;
        image = Detail::makeImage(content_);
        file = DurableFile::create(temporary, image.bytes);
        file.writeAt(0, image.front);
        places.clear();
        for (const CheckpointArray &array : content_.arrays)
            for (const CheckpointPlace &place : {array.values, array.offsets, array.ids})
                places.insert(places.end(), {place.values, place.checksums});
        places.push_back(image.bytes);
    });
    comm_.broadcast(places.data(), places.size());

    const auto context = CommunicatorContext::of(comm_);
    const Detail::FileRanks files(comm_.size(), options_.writers);
    std::exception_ptr failure; // failure of this rank, which takes part until all ranks know
    const auto unlessFailed = [&failure](auto &&body) {
        if (!failure)
            attempt(failure, body);
    };
    bool isOpen = comm_.rank() == 0;
    std::uint64_t content = 0;
    std::vector<index> rows; // of the ids
    for (std::size_t s = 0; s < sources_.size(); s++) {
        const Source &source = sources_[s];
        CheckpointArray array = source.description;
        CheckpointPlace *const all[] = {&array.values, &array.offsets, &array.ids};
        for (std::size_t k = 0; k < 3; k++)
            *all[k] = {places[6 * s + 2 * k], places[6 * s + 2 * k + 1]};
        if (!source.idsOfPrevious)
            rows = Detail::rowsOfIds(*context, files, source.ids, array.listed);
        const Detail::RowSlab slab = Detail::gatherSlab(*context, files, array, *source.array, rows, source.ids);
        const index before = comm_.exclusiveScan(slab.start(slab.rows));
        unlessFailed([&] {
            if (slab.rows > 0 && !isOpen) {
                file = DurableFile::forWriting(temporary);
                isOpen = true;
            }
            if (isOpen)
                content += writeSlab(file, array, files, comm_.rank(), slab, before);
        });
    }
    unlessFailed([&] {
        if (isOpen)
            file.flush();
    });
    comm_.agree(failure);
    content = comm_.allReduce(content, MPI_SUM);
    onRankZero(comm_, [&] {
        const std::string header = Detail::headerOf(image, content);
        file.writeAt(0, std::as_bytes(std::span(header)));
        renameDurably(temporary, path_);
    });
    return places.back();
}

} // namespace DNDS
