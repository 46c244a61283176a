#include "DNDS/GridFile/HdfGrid.hpp"
#include "DNDS/GridFile/VtkFields.hpp"
#include "DNDS/GridFile/VtkGridFile.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

namespace DNDS {

void writeVtkImage(CommunicatorView comm, const std::string &path, const std::array<index, 3> &cells,
                   const std::array<real, 3> &origin, const std::array<real, 3> &spacing,
                   std::span<const VtkGridField> fields, VtkPlacement placement) {
    const index points = placement == VtkPlacement::Cells ? 0 : 1;
    const std::string temporary = path + ".part";
    comm.guarded([&] {
        Detail::checkVtkFields(path, cells, fields);
        if (comm.rank() == 0)
            (void)DurableFile::create(temporary, 0);
    });
    failTogether(comm, [&] {
        Detail::HdfGridFile file(comm, temporary, false);
        Detail::HdfObject root = file.makeGroup(file.file(), "VTKHDF");
        file.writeNumbers(root.get(), "Version", std::array<index, 2>{1, 0});
        file.writeText(root.get(), "Type", "ImageData");
        file.writeNumbers(root.get(), "WholeExtent",
                          std::array<index, 6>{0, cells[0] - points, 0, cells[1] - points, 0, cells[2] - points});
        std::array<real, 3> first = origin;
        for (std::size_t d = 0; d < 3; d++)
            first[d] += points == 1 ? spacing[d] / 2 : 0;
        file.writeNumbers(root.get(), "Origin", first);
        file.writeNumbers(root.get(), "Spacing", spacing);
        file.writeNumbers(root.get(), "Direction", std::array<real, 9>{1, 0, 0, 0, 1, 0, 0, 0, 1});
        Detail::HdfObject data = file.makeGroup(root.get(), points == 1 ? "PointData" : "CellData");
        for (const VtkGridField &field : fields)
            file.writeDataset(data.get(), field.name, Detail::vtkShape(cells, field), field.kind, field.slabs);
        data.close(); // a file with open objects cannot be closed by MPI-IO
        root.close();
        file.close();
    });
    comm.guarded([&] {
        if (comm.rank() == 0)
            renameDurably(temporary, path);
    });
}

} // namespace DNDS
