#include "DNDS/GridFile/HdfGrid.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/GridFile/VtkFields.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <cstddef>
#include <vector>

namespace DNDS {

namespace {

/// Drops dimensions of one cell, as VTK expects for points but not for cells.
void dropFlat(const std::array<index, 3> &cells, std::vector<index> &shape, std::vector<WrittenSlab> &slabs) {
    // The dropped dimension may be the one without cells of a box.
    std::erase_if(slabs, [](const WrittenSlab &slab) { return slab.elements() == 0; });
    // Strides are empty for compact memory.
    const auto drop = [](std::vector<index> &list, std::size_t at) {
        if (!list.empty())
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (std::size_t d = 0; d < 3; d++) { // z, the first of the shape, is dropped last
        if (cells[d] > 1 || shape.size() == 1)
            continue;
        drop(shape, 2 - d);
        for (WrittenSlab &slab : slabs)
            for (std::vector<index> *list : {&slab.start, &slab.count, &slab.strides})
                drop(*list, 2 - d);
    }
}

} // namespace

// Values at cell centres become points of a grid that is shifted by half a cell and has one point less than that of
// the cells. Collective: HDF5 writes each field by all ranks together; its metadata calls need the same arguments
// everywhere.
void writeVtkImage(CommunicatorView comm, const std::string &path, const std::array<index, 3> &cells,
                   const std::array<real, 3> &origin, const std::array<real, 3> &spacing,
                   std::span<const VtkGridField> fields, VtkPlacement placement) {
    const index points = placement == VtkPlacement::Cells ? 0 : 1;
    // Readers never see half a file.
    const std::string temporary = path + ".part";
    Detail::requireSameFields(comm, path, cells, fields);
    comm.guarded([&] {
        Detail::checkVtkFields(path, cells, fields);
        if (comm.rank() == 0)
            (void)DurableFile::create(temporary, 0);
    });
    failTogether(comm, [&] {
        Detail::HdfSharedFile file(comm, temporary, false);
        Detail::HdfObject root = file.makeGroup(file.file(), "VTKHDF");
        file.writeNumbers(root.get(), "Version", std::array<index, 2>{1, 0});
        file.writeText(root.get(), "Type", "ImageData");
        std::array<index, 6> extent{};
        for (std::size_t d = 0; d < 3; d++)
            extent[2 * d + 1] = cells[d] - points;
        file.writeNumbers(root.get(), "WholeExtent", extent);
        std::array<real, 3> first = origin;
        for (std::size_t d = 0; d < 3; d++)
            first[d] += points == 1 ? spacing[d] / 2 : 0;
        file.writeNumbers(root.get(), "Origin", first);
        file.writeNumbers(root.get(), "Spacing", spacing);
        file.writeNumbers(root.get(), "Direction", std::array<real, 9>{1, 0, 0, 0, 1, 0, 0, 0, 1});
        Detail::HdfObject data = file.makeGroup(root.get(), points == 1 ? "PointData" : "CellData");
        for (const VtkGridField &field : fields) {
            std::vector<index> shape = Detail::vtkShape(cells, field);
            std::vector<WrittenSlab> slabs = field.slabs;
            if (points == 1)
                dropFlat(cells, shape, slabs);
            writeHdfGrid(file, data.get(), field.name, shape, field.kind, slabs);
        }
        data.close(); // MPI-IO cannot close a file with open objects
        root.close();
        file.close();
    });
    onRankZero(comm, [&] { renameDurably(temporary, path); });
}

} // namespace DNDS
