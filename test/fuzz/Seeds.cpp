#include "fuzz/Seeds.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "Geom/Gmsh/GmshFile.hpp"

#ifdef DNDS_FUZZ_CGNS
#include "fuzz/CgnsTree.hpp"
#endif
#ifdef DNDS_FUZZ_CHECKPOINTS
#include "fuzz/CheckpointBytes.hpp"
#endif

#include <map>
#include <utility>

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
        for (const bool version4 : {false, true})
            for (const bool binary : {false, true}) {
                test::GmshFileOptions options;
                options.version4 = version4;
                options.binary = binary;
                const std::string kind = std::string(version4 ? "4" : "2") + (binary ? "b" : "a");
                seeds.push_back({"gmsh", name + kind, test::gmshFile(mesh, options)});
            }
    }
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
