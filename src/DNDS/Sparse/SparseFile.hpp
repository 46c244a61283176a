/// @file SparseFile.hpp
/// @brief Sparse fields on a grid in files for ParaView. For programs that link `DNDS::Files`.
#pragma once

#include "DNDS/Blocks/BlockFile.hpp"
#include "DNDS/Sparse/SparseRows.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// Position of a uniform grid: in the order x, y, z, of which x is the last dimension of the blocks.
struct GridPlacement {
    std::array<real, 3> origin{0, 0, 0};
    std::array<real, 3> spacing{1, 1, 1};
    VtkPlacement values = VtkPlacement::Cells;
};

/// Sparse fields as dense ones of a file, two for each: its values, the default where a block is absent, and
/// `<name>.allocated`, 1 where it is allocated and 0 elsewhere. Copies; stage 0.
class SparseResults {
  public:
    /// Collective; all ranks give the same fields in the same order. Throws on all ranks as `toDense` and `vtkField`.
    template <class T>
    void add(const SparseField<T> &field) {
        DNDS_CHECK(field.grid() != nullptr, ArgumentError,
                   "'{}' is on clusters of a mesh: write it with fieldsOf and a MeshWriter", field.name());
        const CommunicatorView comm = field.pattern()->context()->comm();
        const auto values = std::make_shared<BlockField<T>>(field.name(), comm, field.grid(),
                                                            BlockFieldOptions{.components = field.components()});
        const auto there = std::make_shared<BlockField<std::uint8_t>>(field.name() + ".allocated", comm, field.grid(),
                                                                      BlockFieldOptions{});
        comm.guarded([&] {
            toDense(field, *values);
            for (int b = 0; b < field.blocks(); ++b) {
                const auto flags = there->view(b);
                Detail::forEachPair(flags, flags, [&](std::uint8_t & /*same*/, std::uint8_t &flag) {
                    flag = field.isAllocated(b) ? 1 : 0;
                });
            }
            fields_.push_back(vtkField(std::as_const(*values)));
            fields_.push_back(vtkField(std::as_const(*there)));
        });
        kept_.insert(kept_.end(), {values, there});
    }
    /// Views of memory of this object.
    std::span<const VtkGridField> fields() const noexcept { return fields_; }

  private:
    std::vector<VtkGridField> fields_;
    std::vector<std::shared_ptr<const void>> kept_; ///< the dense copies that `fields_` refers to
};

/// Writes `results`, of fields on `grid`, as a VTKHDF file: see `writeVtkImage`, which it calls. Collective. Throws as
/// there; ArgumentError for a grid of several index spaces or of 4 dimensions.
inline void writeVtkImage(const CommunicatorView &comm, const std::string &path, const BlockGrid &grid,
                          const SparseResults &results, const GridPlacement &placement = {}) {
    DNDS_CHECK(grid.spaces().size() == 1 && grid.dims() <= 3, ArgumentError,
               "{}: a grid of VTK has one index space of at most 3 dimensions, this one has {} of {}", path,
               grid.spaces().size(), grid.dims());
    std::array<index, 3> cells{1, 1, 1};
    for (int d = 0; d < grid.dims(); ++d)
        cells[toSize(grid.dims() - 1 - d)] = grid.spaces().front().cells.extent(d);
    writeVtkImage(comm, path, cells, placement.origin, placement.spacing, results.fields(), placement.values);
}

/// Writes sparse fields on one grid in one call:
///
///     writeSparse("species.vtkhdf", {.spacing = {h, h, h}}, dust, soot);
///
/// For each its values, the default where a block is absent, and `<name>.allocated`, 1 where it is allocated.
/// Collective; needs memory of dense fields while it runs. Throws as above; ArgumentError for fields on different
/// grids.
template <class First, class... Rest>
void writeSparse(const std::string &path, const GridPlacement &placement, const SparseField<First> &first,
                 const SparseField<Rest> &...rest) {
    const CommunicatorView comm = first.pattern()->context()->comm();
    comm.guarded([&] {
        const bool same = first.grid() != nullptr &&
                          ((rest.grid() != nullptr && rest.grid()->signature() == first.grid()->signature()) && ...);
        DNDS_CHECK(same, ArgumentError, "{}: the fields are on different grids, or on clusters of a mesh", path);
    });
    SparseResults results;
    results.add(first);
    (results.add(rest), ...);
    writeVtkImage(comm, path, *first.grid(), results, placement);
}

} // namespace DNDS
