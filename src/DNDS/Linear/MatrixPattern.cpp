#include "DNDS/Linear/SparseMatrix.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <limits>

namespace DNDS {

namespace {

constexpr LocalIndex noCopy = -2; // a column of which this rank has no copy

} // namespace

// Settings are compared first: with ghost rows on some ranks only, the others would not take part in the pull.
// Cost: O(entries) time and memory, 4 bytes an entry; messages for ghost rows only.
std::shared_ptr<const MatrixPattern> MatrixPattern::create(std::string name,
                                                           std::shared_ptr<const ExchangePattern> unknowns,
                                                           const Neighbours &neighbours, GhostRows ghostRows) {
    DNDS_CHECK(unknowns != nullptr, ArgumentError, "the matrix pattern '{}' needs the pattern of its unknowns", name);
    const CommunicatorView comm = unknowns->context().comm();
    return failTogether(comm, [&] {
        requireSameSettings(comm, "MatrixPattern::create", [&] {
            return std::vector<std::string>{
                fmt::format("name = {}", name),
                fmt::format("ghost rows = {}", ghostRows == GhostRows::Kept ? "kept" : "none")};
        });
        std::shared_ptr<MatrixPattern> made(new MatrixPattern(std::move(name), std::move(unknowns)));
        made->addOwnedRows(neighbours);
        made->keepsGhostRows_ = ghostRows == GhostRows::Kept;
        if (made->keepsGhostRows_)
            made->addGhostRows();
        return std::shared_ptr<const MatrixPattern>(std::move(made));
    });
}

// O(entries): `lastSeen` marks the row in which a column was met last, so that repetitions are found without a search
// and without clearing marks between rows. Invariant: entries keep the order of the list, the diagonal first.
// Scratch: 4 bytes for each owned row and ghost. Rows with a ghost column go to `border_`, the others to `inner_`.
void MatrixPattern::addOwnedRows(const Neighbours &neighbours) {
    const index locals = rows() + unknowns_->sonSize();
    DNDS_CHECK(neighbours.size() >= rows(), LayoutError, "'{}' lists the neighbours of {} rows, but there are {}",
               neighbours.label(), neighbours.size(), rows());
    DNDS_CHECK(locals <= std::numeric_limits<LocalIndex>::max(), ArgumentError,
               "'{}' has {} owned rows and ghosts on a rank: at most 2^31 - 1 are possible", name_, locals);
    const auto lists = neighbours.view();
    std::vector<LocalIndex> lastSeen(static_cast<std::size_t>(locals), -1); // the row in which a column was met last
    for (index row = 0; row < rows(); ++row) {
        const auto mine = static_cast<LocalIndex>(row);
        bool border = false;
        lastSeen[static_cast<std::size_t>(row)] = mine;
        columns_.push_back(mine);
        for (const LocalIndex column : lists[row]) {
            // No neighbour: the boundary of the mesh.
            if (column < 0)
                continue;
            DNDS_CHECK(column < locals, IndexError,
                       "'{}': row {} has the neighbour {}, outside {} owned rows and {} ghosts", name_, row, column,
                       rows(), unknowns_->sonSize());
            if (std::exchange(lastSeen[static_cast<std::size_t>(column)], mine) == mine)
                continue;
            columns_.push_back(column);
            border |= column >= rows();
        }
        DNDS_CHECK(columns_.size() <= static_cast<std::size_t>(std::numeric_limits<LocalIndex>::max()), ArgumentError,
                   "'{}' has more than 2^31 - 1 entries on a rank", name_);
        starts_.push_back(static_cast<LocalIndex>(columns_.size()));
        // Inner rows can be multiplied while ghosts are on their way.
        (border ? border_ : inner_).push_back(mine);
    }
}

// Owners send the columns of their rows as global numbers, which are turned into local numbers here. Entries keep the
// order of their owners, as pushes move values by position. Cost: one pull of a ragged array of 8 bytes an entry.
// O(entries of ghost rows), each with one look-up in the mapping. A column without a copy here gets `noCopy`, so that
// positions still agree with the owner's.
void MatrixPattern::addGhostRows() {
    const auto &mapping = unknowns_->mapping();
    DNDS_CHECK(mapping != nullptr, StateError,
               "'{}' cannot keep ghost rows: its pattern was made from lists, without global numbers", name_);
    ArrayPair<ArrayAdjacency<>> global;
    global.initPair(name_ + ": columns", unknowns_->context().comm());
    global.father->resize(rows(), [this](index row) { return static_cast<rowsize>(columns(row).size()); });
    for (index row = 0; row < rows(); ++row)
        // Rows in global numbers, as the ghosts' ranks number locally in their own way.
        std::ranges::transform(columns(row), (*global.father)[row].begin(),
                               [&](LocalIndex column) { return mapping->toGlobal(column); });
    global.transAttach();
    global.trans.usePattern(unknowns_);
    global.trans.createMPITypes();
    global.trans.pullOnce();
    const auto ghosts = std::as_const(*global.son).view();
    for (index ghost = 0; ghost < global.son->size(); ++ghost) {
        for (const index column : ghosts[ghost])
            columns_.push_back(static_cast<LocalIndex>(mapping->toLocal(column).value_or(noCopy)));
        DNDS_CHECK(columns_.size() <= static_cast<std::size_t>(std::numeric_limits<LocalIndex>::max()), ArgumentError,
                   "'{}' has more than 2^31 - 1 entries on a rank", name_);
        starts_.push_back(static_cast<LocalIndex>(columns_.size()));
    }
}

// A linear search: rows of meshes have few entries.
std::size_t MatrixPattern::find(index row, index column) const {
    DNDS_CHECK(row >= 0 && row < rows() + ghostRows(), IndexError,
               "'{}': row {} is outside {} owned rows and {} ghost rows with entries", name_, row, rows(), ghostRows());
    const auto entries = columns(row);
    const auto found = std::ranges::find(entries, column);
    DNDS_CHECK(found != entries.end() && column >= 0, IndexError,
               "'{}': row {} has no entry in column {} (both are local): the lists that the pattern was made from do "
               "not give it",
               name_, row, column);
    return static_cast<std::size_t>(starts_[static_cast<std::size_t>(row)] + (found - entries.begin()));
}

} // namespace DNDS
