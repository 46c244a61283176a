#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Geom/Locate/CellGeometry.hpp"
#include "DNDS/Geom/Locate/RankQueries.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <limits>

namespace DNDS::Geom {

// Three steps: cells of the points, weights on the ranks of the cells, and a pattern by which ranks pull the values.
// O(points + samples) time and memory; two exchanges for the cells, two for the weights, and the setup of the pull.
// Weights are computed by the owner of the cell, so results do not depend on which rank asks.
Probe::Probe(const PointLocator &locator, std::span<const Point> points)
    : cellsOfMesh_(locator.mesh().cells.owned), nodesOfMesh_(locator.mesh().nodes.size()),
      locations_(locator.locate(points)), context_(CommunicatorContext::of(locator.mesh().comm)) {
    const CommunicatorView comm = locator.mesh().comm;
    std::vector<OwnedRow> asked; ///< [found points]
    failTogether(comm, [&] {
        std::vector<RankQuery> queries;
        for (std::size_t i = 0; i < points.size(); i++)
            if (locations_[i].found())
                queries.push_back({locations_[i].rank, i});
        rows_.assign(points.size(), noEntity);
        std::vector<OwnedRow> rows(points.size());
        // The rank of the cell numbers its samples in the order of the questions, and answers with the number.
        askRanks(
            *context_, queries, 4,
            [&](std::size_t i, index *words) {
                words[0] = locations_[i].cell;
                writePoint(points[i], words + 1);
            },
            1,
            [&](int, RecordReader &question, std::vector<index> &reply) {
                reply.push_back(samples());
                cells_.push_back(static_cast<LocalIndex>(question.next()));
                positions_.push_back(question.nextPoint());
                const CellGeometry &geometry = locator.geometry();
                geometry.addWeights(cells_.back(), geometry.inPlane(positions_.back()), weights_);
                starts_.push_back(static_cast<index>(weights_.size()));
            },
            [&](int rank, std::size_t i, RecordReader &reply) {
                rows[i] = {rank, reply.next()};
            });
        for (const RankQuery &query : queries)
            asked.push_back(rows[query.item]);
    });
    // A sample is a row of its cell's rank; ranks that gave points have ghosts of these rows, and pull them.
    Values &first = buffers_.try_emplace(1, "probe", comm, samples(), rowsize{1}).first->second;
    std::vector<index> reads;
    comm.guarded([&] {
        for (const OwnedRow &row : asked)
            reads.push_back(first.father->globalMapping()->toGlobal(row.rank, row.row));
    });
    const std::vector<LocalIndex> found = first.ghostsFor(reads);
    std::size_t next = 0;
    for (std::size_t i = 0; i < rows_.size(); i++)
        if (locations_[i].found())
            rows_[i] = found[next++];
}

// Within a running call: other ranks may already wait for this one's values.
void Probe::requireRows(std::string_view field, index rows, index expected) const {
    context_->running("probe", field, [&] {
        DNDS_CHECK(rows == expected, ArgumentError,
                   "'{}' has {} rows, but the mesh of this probe has {} of its entities", field, rows, expected);
    });
}

// One buffer for each width; all share the mapping of the first.
Probe::Values &Probe::bufferOf(rowsize width) {
    if (const auto made = buffers_.find(width); made != buffers_.end())
        return made->second;
    // Width 1, made by the constructor.
    Values &first = buffers_.begin()->second;
    const CommunicatorView comm = first.father->comm();
    Values buffer;
    comm.guarded([&] {
        DNDS_CHECK(width > 0, LayoutError, "a probed field has {} numbers in a row", width);
        buffer.initPair("probe", comm);
        buffer.father->resize(samples(), width);
    });
    // Ghosts and peers are those of the first buffer: no exchange of indices.
    buffer.transAttach();
    buffer.trans.borrowGGIndexing(first.trans);
    buffer.trans.createMPITypes();
    buffer.trans.initPersistentPull();
    return buffers_.try_emplace(width, std::move(buffer)).first->second;
}

// Owners evaluate all their samples, then one pull brings values to the ranks that asked.
// O(samples x width) time and one pull; no search is repeated.
std::vector<real> Probe::values(rowsize width,
                                const std::function<void(const ProbeSample &, std::span<real>)> &evaluate) {
    Values &buffer = bufferOf(width);
    context_->running("probe", buffer.father->label(), [&] {
        real *row = buffer.father->data();
        const auto count = static_cast<std::size_t>(width);
        for (std::size_t s = 0; s < cells_.size(); s++, row += width) {
            const auto nodes = std::span<const std::pair<LocalIndex, real>>(weights_).subspan(
                toSize(starts_[s]), toSize(starts_[s + 1] - starts_[s]));
            evaluate({cells_[s], positions_[s], nodes}, std::span<real>(row, count));
        }
    });
    buffer.pull();
    std::vector<real> result(rows_.size() * static_cast<std::size_t>(width), std::numeric_limits<real>::quiet_NaN());
    const auto view = std::as_const(buffer).view();
    for (std::size_t i = 0; i < rows_.size(); i++)
        if (rows_[i] != noEntity)
            for (rowsize k = 0; k < width; k++)
                result[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)] = view(rows_[i], k);
    return result;
}

} // namespace DNDS::Geom
