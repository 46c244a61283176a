#include "DNDS/Geom/Cgns/FaceNumbering.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <algorithm>
#include <map>

namespace DNDS::Geom::Detail {

namespace {

/// Lists for other ranks that grow in any order.
class Letters {
  public:
    std::vector<index> &to(int rank) { return lists_[rank]; }
    RankLists lists() const {
        RankLists result;
        for (const auto &[rank, list] : lists_)
            result.append(rank, list);
        return result;
    }

  private:
    std::map<int, std::vector<index>> lists_;
};

/// A use of a face, by a cell or by the boundary. All uses are numbered: uses by cells first, rank by rank.
/// 8 bytes a rank, the same on all ranks, so `rankOf` needs no message: O(log ranks).
struct Uses {
    std::vector<index> cellStarts; ///< [ranks + 1]
    index boundaryFirst;           ///< number of this rank's first use by the boundary

    index cells() const { return cellStarts.back(); }
    int rankOf(index use) const {
        return static_cast<int>(std::upper_bound(cellStarts.begin(), cellStarts.end(), use) - cellStarts.begin()) - 1;
    }
};

// One gather of counts and one scan: O(ranks) memory, small beside the faces.
Uses numberUses(CommunicatorView comm, std::size_t ofCells, std::size_t ofBoundary) {
    Uses uses;
    uses.cellStarts.push_back(0);
    for (const index count : comm.allGather(static_cast<index>(ofCells)))
        uses.cellStarts.push_back(uses.cellStarts.back() + count);
    uses.boundaryFirst = uses.cells() + comm.exclusiveScan(static_cast<index>(ofBoundary));
    return uses;
}

/// A record is the use's number, the number of corners and the corners, ascending; it goes to a rank chosen by them.
/// Faces with the same corners meet at one rank, whichever cells list them.
/// O(corners log corners) a face. Keys are sent whole, so faces are compared exactly and a collision of hashes only
/// costs time.
void address(const CsrLists<index> &faces, index firstUse, int ranks, Letters &letters) {
    std::vector<index> key;
    for (std::size_t f = 0; f < faces.size(); f++) {
        key.assign(faces[f].begin(), faces[f].end());
        std::sort(key.begin(), key.end());
        std::uint64_t hash = 0;
        for (const index corner : key)
            hash = mixBits(hash ^ static_cast<std::uint64_t>(corner));
        std::vector<index> &list = letters.to(static_cast<int>(hash % static_cast<std::uint64_t>(ranks)));
        list.insert(list.end(), {firstUse + static_cast<index>(f), static_cast<index>(key.size())});
        list.insert(list.end(), key.begin(), key.end());
    }
}

/// The position of a record in a list, and its sender.
struct Record {
    const index *at;
    int sender;

    index use() const { return at[0]; }
    std::span<const index> key() const { return {at + 2, static_cast<std::size_t>(at[1])}; }
};

/// Answers each record with the lowest use of its face: pairs of use and lowest use.
/// Sorts by corners, then by use: a group starts with its lowest use, which must be by a cell, and has at most two
/// uses by cells. O(n log n).
RankLists findFirst(const RankLists &received, index cellUses, const std::string &origin) {
    std::vector<Record> records;
    for (std::size_t k = 0; k < received.size(); k++) {
        const std::span<const index> list = received.list(k);
        for (std::size_t i = 0; i < list.size(); i += 2 + static_cast<std::size_t>(list[i + 1]))
            records.push_back({list.data() + i, received.ranks[k]});
    }
    std::sort(records.begin(), records.end(), [](const Record &a, const Record &b) {
        const auto [x, y] = std::mismatch(a.key().begin(), a.key().end(), b.key().begin(), b.key().end());
        if (x != a.key().end() && y != b.key().end())
            return *x < *y;
        return a.key().size() != b.key().size() ? a.key().size() < b.key().size() : a.use() < b.use();
    });
    Letters answers;
    std::size_t first = 0;
    for (std::size_t k = 0; k < records.size(); k++) {
        const auto key = records[k].key();
        const auto other = records[first].key();
        if (!std::equal(key.begin(), key.end(), other.begin(), other.end()))
            first = k;
        DNDS_CHECK(records[first].use() < cellUses, DataError,
                   "{}: the boundary face of nodes {} and {} belongs to no cell", origin, key[0] + 1, key[1] + 1);
        DNDS_CHECK(k < first + 2 || records[k].use() >= cellUses, DataError,
                   "{}: more than two cells share the face of nodes {} and {}", origin, key[0] + 1, key[1] + 1);
        std::vector<index> &answer = answers.to(records[k].sender);
        answer.insert(answer.end(), {records[k].use(), records[first].use()});
    }
    return answers.lists();
}

} // namespace

// A rendezvous by the hash of the corners finds the first use of each face; the ranks of first uses number these by a
// prefix sum, and the others ask for the numbers. O(own faces log own faces) time on average. Invariant: numbers follow
// the order of first uses, so they do not depend on the number of ranks.
NumberedFaces numberFaces(CommunicatorContext &context, const CsrLists<index> &ofCells,
                          const CsrLists<index> &ofBoundary, const std::string &origin) {
    const CommunicatorView comm = context.comm();
    const Uses uses = numberUses(comm, ofCells.size(), ofBoundary.size());
    const index firstUse = uses.cellStarts[static_cast<std::size_t>(comm.rank())];
    Letters letters;
    address(ofCells, firstUse, comm.size(), letters);
    address(ofBoundary, uses.boundaryFirst, comm.size(), letters);
    const RankLists received = sparseExchange(context, letters.lists());
    RankLists answers;
    comm.guarded([&] { answers = findFirst(received, uses.cells(), origin); });
    answers = sparseExchange(context, answers);

    std::vector<index> firstOf(ofCells.size() + ofBoundary.size());
    for (std::size_t i = 0; i < answers.values.size(); i += 2) {
        const index use = answers.values[i];
        const index own =
            use < uses.cells() ? use - firstUse : use - uses.boundaryFirst + static_cast<index>(ofCells.size());
        firstOf[static_cast<std::size_t>(own)] = answers.values[i + 1];
    }

    NumberedFaces result;
    index count = 0;
    for (std::size_t i = 0; i < ofCells.size(); i++) {
        result.listedFirst.push_back(firstOf[i] == firstUse + static_cast<index>(i));
        count += result.listedFirst.back() ? 1 : 0;
    }
    result.globalSize = comm.allReduce(count, MPI_SUM);
    index next = comm.exclusiveScan(count);
    std::vector<index> numbers(firstOf.size(), InvalidIndex);
    Letters questions;
    for (std::size_t i = 0; i < firstOf.size(); i++)
        if (i < ofCells.size() && result.listedFirst[i])
            numbers[i] = next++;
        else
            questions.to(uses.rankOf(firstOf[i])).push_back(firstOf[i]);
    // Two exchanges: questions for numbers, and answers in the order of the questions.
    RankLists replies = sparseExchange(context, questions.lists());
    for (index &use : replies.values)
        use = numbers[static_cast<std::size_t>(use - firstUse)];
    replies = sparseExchange(context, replies); // in the order asked
    std::map<int, std::size_t> at;
    for (std::size_t k = 0; k < replies.size(); k++)
        at[replies.ranks[k]] = static_cast<std::size_t>(replies.starts[k]);
    for (std::size_t i = 0; i < firstOf.size(); i++)
        if (numbers[i] == InvalidIndex)
            numbers[i] = replies.values[at[uses.rankOf(firstOf[i])]++];
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(ofCells.size());
    result.ofCells.assign(numbers.begin(), middle);
    result.ofBoundary.assign(middle, numbers.end());
    return result;
}

} // namespace DNDS::Geom::Detail
