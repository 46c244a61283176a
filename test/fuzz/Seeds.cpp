#include "fuzz/Seeds.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"
#include "Geom/Gmsh/GmshFile.hpp"
#include "Geom/Ugrid/UgridFiles.hpp"
#include "Geom/Vtk/VtuFiles.hpp"

#ifdef DNDS_FUZZ_CGNS
#include "fuzz/CgnsTree.hpp"
#endif
#ifdef DNDS_FUZZ_CHECKPOINTS
#include "fuzz/CheckpointBytes.hpp"
#endif

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include <unistd.h>

namespace DNDS::Geom::fuzz {

namespace {

std::string su2File(const SourceMesh &mesh) {
    static const std::map<ElementType, int> vtkTypes{
        {ElementType::Bar2, 3},   {ElementType::Tri3, 5},    {ElementType::Quad4, 9}, {ElementType::Tetra4, 10},
        {ElementType::Hexa8, 12}, {ElementType::Penta6, 13}, {ElementType::Pyra5, 14}};
    const auto element = [](const ElementBlock &block, index e) {
        std::string line = std::to_string(vtkTypes.at(block.types[static_cast<std::size_t>(e)]));
        for (const index node : block.nodesOf(e))
            line += fmt::format(" {}", node);
        return line + "\n";
    };
    std::string text = fmt::format("NDIME= {}\nNELEM= {}\n", mesh.cellDimension, mesh.cells.size());
    for (index c = 0; c < mesh.cells.size(); c++)
        text += element(mesh.cells, c);
    text += fmt::format("% nodes\nNPOIN= {}\n", mesh.nodes());
    for (const auto &point : mesh.coordinates)
        text += mesh.cellDimension == 2 ? fmt::format("{} {}\n", point[0], point[1])
                                        : fmt::format("{} {} {}\n", point[0], point[1], point[2]);
    text += fmt::format("NMARK= {}\n", mesh.patches.size());
    for (std::size_t p = 0; p < mesh.patches.size(); p++) {
        std::string faces;
        int count = 0;
        for (index f = 0; f < mesh.faces.size(); f++)
            if (mesh.faceMarks[static_cast<std::size_t>(f)] == static_cast<int>(p)) {
                faces += element(mesh.faces, f);
                count++;
            }
        text += fmt::format("MARKER_TAG= {}\nMARKER_ELEMS= {}\n{}", mesh.patches[p].name, count, faces);
    }
    return text;
}

/// Features missing above: sections before the format, physical names of all forms, links, and a partitioned mesh.
std::vector<Seed> wildGmsh() {
    const std::string square = "$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n"
                               "$Elements\n5\n1 1 2 1 1 1 2\n2 1 2 2 2 2 3\n3 1 2 3 3 4 3\n4 1 2 4 4 4 1\n"
                               "5 3 2 9 1 1 2 3 4\n$EndElements\n";
    const std::string version2 = "$Comments\nby hand\n$EndComments\n$MeshFormat\n2.0 0 8\n$EndMeshFormat\n"
                                 "$PhysicalNames\n3\n2 \"east side\"\n1 3 \"north\" # note\n4 west\n"
                                 "$EndPhysicalNames\n" +
                                 square +
                                 "$Periodic\n1\n1 3 1\nAffine 1 0 0 0 0 1 0 1 0 0 1 0 0 0 0 1\n2\n3 2\n4 1\n"
                                 "$EndPeriodic\n";
    const std::string version4 =
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 5 \"wall\"\n$EndPhysicalNames\n"
        "$Entities\n0 2 1 0\n1 0 0 0 2 0 0 1 5 0\n2 0 0 0 2 1 0 0 0\n1 0 0 0 2 1 0 0 0\n$EndEntities\n"
        "$PartitionedEntities\n2\n1\n21 1\n0 3 2 0\n11 1 1 1 1 0 0 0 1 0 0 1 5 0\n"
        "12 1 1 1 2 1 0 0 2 0 0 0 0\n13 2 1 2 1 2 1 0 0 1 1 0 1 6 0\n11 2 1 1 1 0 0 0 1 1 0 0 0\n"
        "12 2 1 1 2 1 0 0 2 1 0 0 0\n$EndPartitionedEntities\n"
        "$Nodes\n1 6 1 6\n2 11 0 6\n1\n2\n3\n4\n5\n6\n0 0 0\n1 0 0\n2 0 0\n0 1 0\n1 1 0\n2 1 0\n$EndNodes\n"
        "$Elements\n6 6 1 6\n1 11 1 1\n1 1 2\n1 12 1 1\n2 2 3\n1 13 1 1\n3 2 5\n1 2 1 1\n4 4 5\n"
        "2 11 3 1\n5 1 2 5 4\n2 12 3 1\n6 2 3 6 5\n$EndElements\n"
        "$Periodic\n1\n1 2 1\n16 1 0 0 0 0 1 0 1 0 0 1 0 0 0 0 1\n0\n$EndPeriodic\n";
    return {{"gmsh", "wild2", version2}, {"gmsh", "wild4", version4}};
}

#ifdef DNDS_FUZZ_VTKHDF
std::string vtkHdfBytes(const SourceMesh &mesh) {
    const auto path =
        (std::filesystem::temp_directory_path() / fmt::format("dnds_seed_{}.vtkhdf", ::getpid())).string();
    VtkHdfWriter(CommunicatorView(MPI_COMM_SELF), path, sliceOf(mesh)).close();
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path);
    return bytes;
}
#endif

SourceMesh box(BoxCells fill, bool periodic) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {fill == BoxCells::MixedVolume ? 4 : 2, 2, 1};
    options.periodic = {false, periodic, false};
    return makeBoxMesh(options, 0, 1);
}

} // namespace

std::vector<Seed> makeSeeds() {
    std::vector<Seed> seeds;
    for (const auto &[name, fill] : {std::pair{"surface", BoxCells::MixedSurface},
                                     {"tetrahedra", BoxCells::Tetrahedra},
                                     {"volume", BoxCells::MixedVolume}}) {
        const SourceMesh mesh = box(fill, false);
        seeds.push_back({"su2", name, su2File(mesh)});
        for (const int version : {22, 40, 41})
            for (const bool binary : {false, true}) {
                test::GmshFileOptions options;
                options.version = version;
                options.binary = binary;
                const std::string kind = std::string(version == 22   ? "2"
                                                     : version == 40 ? "40"
                                                                     : "4") +
                                         (binary ? "b" : "a");
                seeds.push_back({"gmsh", name + kind, test::gmshFile(mesh, options)});
            }
    }
    const SourceMesh sorted = test::sortedByType(box(BoxCells::MixedVolume, false));
    seeds.push_back({"ugrid", "text", test::ugridFile(sorted, {.text = true})});
    seeds.push_back({"ugrid", "b8", test::ugridFile(sorted, {.bigEndian = true})});
    seeds.push_back({"ugrid", "lr4", test::ugridFile(sorted, {.records = true, .realBytes = 4})});
    for (Seed &seed : wildGmsh())
        seeds.push_back(std::move(seed));
    std::string zones = su2File(box(BoxCells::MixedSurface, false));
    zones = "NZONE= 2\nIZONE= 1\n" + zones + "IZONE= 2\n" + su2File(box(BoxCells::Tetrahedra, false));
    const std::string tag = "MARKER_TAG=";
    zones.replace(zones.find(tag), tag.size(), "Markertag =");
    seeds.push_back({"su2", "zones", zones});
    const SourceMesh mixed = box(BoxCells::MixedVolume, false);
    seeds.push_back({"vtu", "ascii", test::vtuFile(mixed, {.cellArrays = "<Array type=\"String\" Name=\"s\"/>\n"})});
    seeds.push_back({"vtu", "binary", test::vtuFile(mixed, {.format = "binary", .bigEndian = true, .single = true})});
    seeds.push_back({"vtu", "zlib", test::vtuFile(mixed, {.format = "appended", .compressed = true})});
    seeds.push_back({"vtu", "polyhedra", test::vtuFile(box(BoxCells::Polyhedra, false), {})});
    seeds.push_back(
        {"vtu", "raw", test::vtuFile(box(BoxCells::Polyhedra, false), {.format = "appended", .numberedFaces = true})});
#ifdef DNDS_FUZZ_VTKHDF
    seeds.push_back({"vtkhdf", "volume", vtkHdfBytes(box(BoxCells::MixedVolume, false))});
    seeds.push_back({"vtkhdf", "polyhedra", vtkHdfBytes(box(BoxCells::Polyhedra, false))});
#endif
#ifdef DNDS_FUZZ_CGNS
    for (const auto &[name, fill, periodic] : {std::tuple{"surface", BoxCells::MixedSurface, true},
                                               {"volume", BoxCells::MixedVolume, false},
                                               {"polyhedra", BoxCells::Polyhedra, false}}) {
        const CgnsNode tree = cgnsTree(box(fill, periodic));
        seeds.push_back({"adf", name, cgnsBytes(tree, test::FileType::Adf)});
        seeds.push_back({"hdf5", name, cgnsBytes(tree, test::FileType::Hdf5)});
    }
#endif
#ifdef DNDS_FUZZ_CHECKPOINTS
    seeds.push_back({"checkpoint", "layouts", soundCheckpoint()});
#endif
    return seeds;
}

} // namespace DNDS::Geom::fuzz
